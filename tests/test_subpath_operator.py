"""The layer as torch sees it: gradients, registration, export, compilation, the choice of kernel, wrong arguments."""

from functools import partial

import numpy as np
import pytest
import torch

from subpath_kernels import DEVICE
from whytube.errors import ArgumentError
from whytube.subpath import (
    MaxSubpathPool,
    max_subpath,
    max_subpath_difference,
    min_subpath_difference,
    top_subpaths,
    use_backend,
)
from whytube.subpath.operator import backend_for


def test_gradcheck_twice():
    scores = torch.randn(2, 2, 3, 3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: max_subpath(x).value, scores)
    assert torch.autograd.gradgradcheck(lambda x: max_subpath(x).value.square(), scores)
    m = torch.randn(2, 3, 2, 3, 2, 2, dtype=torch.float64, requires_grad=True)
    positive = torch.tensor([2, 0])
    assert torch.autograd.gradcheck(lambda x: min_subpath_difference(x, positive).value, m)
    assert torch.autograd.gradgradcheck(lambda x: min_subpath_difference(x, positive).value.square(), m)


def test_operator_registration():
    scores = torch.randn(2, 2, 3, 3, 3)
    torch.library.opcheck(torch.ops.whytube.subpath.default, (scores, None, None, None, 1, 1, False, True))
    m = torch.randn(6, 2, 3, 3, 3)
    arguments = (m, torch.tensor([0, 2]), None, torch.tensor([3, 2]), 3, 1, True, False)
    torch.library.opcheck(torch.ops.whytube.subpath.default, arguments)


class Scorer(torch.nn.Module):
    """A larger model around the layer: convolution, search, sigmoid."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv3d(3, 4, 3, padding=1)
        self.pool = MaxSubpathPool()

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.pool(self.conv(clips)))


def test_export():
    model, clips = Scorer().eval(), torch.randn(2, 3, 4, 6, 6)
    batch = torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(model, (clips,), dynamic_shapes=({0: batch},))
    more = torch.randn(5, 3, 4, 6, 6)
    torch.testing.assert_close(program.module()(more), model(more))
    assert any("whytube.subpath" in str(node.target) for node in program.graph.nodes)


def test_compile_through_forward_and_backward():
    model, clips = Scorer(), torch.randn(2, 3, 4, 6, 6)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    compiled(clips).sum().backward()
    ours = model.conv.weight.grad.clone()
    model.zero_grad()
    model(clips).sum().backward()
    torch.testing.assert_close(ours, model.conv.weight.grad)
    assert ours.abs().sum() > 0


def test_choice_of_kernel(monkeypatch):
    assert backend_for(torch.device("cpu")) == "cpu"
    assert backend_for(torch.device("meta")) == "reference"
    with use_backend("reference"):
        assert backend_for(torch.device("cpu")) == "reference"
    monkeypatch.setenv("WHYTUBE_SUBPATH_BACKEND", "reference")
    assert backend_for(torch.device("cpu")) == "reference"
    monkeypatch.setenv("WHYTUBE_SUBPATH_BACKEND", "gpu")
    with pytest.raises(ArgumentError, match="WHYTUBE_SUBPATH_BACKEND"):
        backend_for(torch.device("cpu"))


scores = torch.zeros(2, 1, 3, 2, 2, device=DEVICE)
m = torch.zeros(2, 3, 1, 3, 2, 2, device=DEVICE)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(max_subpath, torch.zeros(3, 2, 2)), r"`scores` must be of shape \(..., K, T, H, W\), got \(3, 2, 2\)"),
        (partial(max_subpath, np.zeros((1, 3, 2, 2))), "`scores` must be a tensor .* got ndarray"),
        (partial(max_subpath, scores.long()), "`scores` must be a floating-point tensor, got torch.int64"),
        (partial(max_subpath, torch.zeros(1, 0, 2, 2)), "non-empty in K, T, H and W"),
        (partial(max_subpath, scores, radius=4), "`radius` must be an integer from 0 to 3, got 4"),
        (partial(max_subpath, scores, radius=1.0), "`radius` must be an integer from 0 to 3, got 1.0"),
        (partial(max_subpath, scores, forms="any"), "`forms` must be one of 'free', 'fixed', got 'any'"),
        (partial(max_subpath, scores, lengths=torch.tensor([1])), r"`lengths` must be of the batch's shape \(2,\)"),
        (partial(max_subpath, scores, lengths=torch.tensor([1.0, 2.0])), "`lengths` must be an integer tensor"),
        (partial(max_subpath, scores, lengths=torch.tensor([1, 4])), "`lengths` must be from 0 to 3, got values"),
        (partial(max_subpath_difference, m, torch.tensor([0, 3])), "`positive` must be from 0 to 2"),
        (partial(max_subpath_difference, m, torch.tensor([0])), r"`positive` must be of shape \(B,\) with B = 2"),
        (partial(max_subpath_difference, m, torch.tensor([0, 1]), torch.tensor([[5], [0]])), "`negative` must be from"),
        (
            partial(max_subpath_difference, m, torch.tensor([0, 1]), lengths=torch.tensor([2])),
            r"`lengths` must be of the batch's shape \(2,\), got \(1\)",
        ),
        (
            partial(max_subpath_difference, m, torch.tensor([0, 1]), lengths=torch.tensor([2.0, 1.0])),
            "`lengths` must be an integer tensor",
        ),
        (partial(max_subpath_difference, m[:, :1], torch.tensor([0, 0])), "at least two classes"),
        (partial(top_subpaths, scores, 0), "`k` must be an integer of at least 1, got 0"),
    ],
)
@pytest.mark.parametrize("name", ["auto", "reference"])
def test_bad_arguments_are_named(name, call, message):
    with use_backend(name), pytest.raises(ArgumentError, match=message):
        call()
