"""The layer under torch.func, forward mode, tracing and odd tensors: it works, or says what is supported."""

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import functional_call, grad, jacfwd, jacrev, jvp, vmap

from whytube.errors import ArgumentError
from whytube.subpath import (
    MaxSubpathPool,
    max_subpath,
    max_subpath_difference,
    min_subpath_difference,
    path_sum,
    top_subpaths,
)

SCORES = torch.randn(3, 2, 4, 5, 5, generator=torch.Generator().manual_seed(0))
CLASSES = torch.randn(3, 4, 2, 4, 5, 5, generator=torch.Generator().manual_seed(1))
FOUND = max_subpath(SCORES)
SLOPE = torch.func.grad(lambda s: path_sum(s, FOUND.cells).sum())(SCORES)


def test_vmap_gives_what_a_batch_gives():
    lengths = torch.tensor([1, 4, 2])
    for dim in (0, 1, -1):
        found = vmap(lambda s: tuple(max_subpath(s)), in_dims=dim)(SCORES.movedim(0, dim))
        assert all(torch.equal(a, b) for a, b in zip(found, FOUND, strict=True))
    padded = vmap(lambda s, n: max_subpath(s, lengths=n).value)(SCORES, lengths)
    assert torch.equal(padded, max_subpath(SCORES, lengths=lengths).value)
    nested = vmap(vmap(lambda s: max_subpath(s, forms="fixed").value))(CLASSES)
    assert torch.equal(nested, max_subpath(CLASSES, forms="fixed").value)
    positive, expected = torch.tensor([3, 0, 2]), None
    for search in (max_subpath_difference, min_subpath_difference):
        m = CLASSES[:, :, None]
        expected = search(m, positive)
        found = vmap(lambda a, p, search=search: tuple(search(a[None], p[None])))(m, positive)
        assert all(torch.equal(a[:, 0], b) for a, b in zip(found, expected, strict=True))
    one = vmap(lambda a: max_subpath_difference(a[None], torch.tensor([1])).value)(CLASSES[:, :, None])
    assert torch.equal(one[:, 0], max_subpath_difference(CLASSES[:, :, None], torch.tensor([1, 1, 1])).value)
    assert torch.equal(vmap(lambda s: top_subpaths(s, 2).value)(SCORES), top_subpaths(SCORES, 2).value)
    with pytest.raises(ArgumentError, match="NaN"):
        vmap(lambda s: max_subpath(s).value)(SCORES * torch.nan)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")  # torch's own, when forward mode is first used
def test_derivatives_forward_and_backward():
    tangent = torch.randn(SCORES.shape, generator=torch.Generator().manual_seed(2))
    along = (SLOPE * tangent).flatten(1).sum(1)
    assert torch.equal(grad(lambda s: max_subpath(s).value.sum())(SCORES), SLOPE)
    assert torch.equal(vmap(grad(lambda s: max_subpath(s).value))(SCORES), SLOPE)
    for jacobian in (jacrev, jacfwd):
        assert torch.equal(jacobian(lambda s: max_subpath(s).value)(SCORES).sum(0), SLOPE)
    value, slope = jvp(lambda s: max_subpath(s).value, (SCORES,), (tangent,))
    torch.testing.assert_close((value, slope), (FOUND.value, along))
    with forward_ad.dual_level():
        dual = forward_ad.unpack_dual(max_subpath(forward_ad.make_dual(SCORES, tangent)).value)
        top = forward_ad.unpack_dual(top_subpaths(forward_ad.make_dual(SCORES, tangent), 1).value)
    torch.testing.assert_close(dual.tangent, along)
    torch.testing.assert_close(top.tangent[:, 0], along)
    m, positive = CLASSES[:, :, None], torch.tensor([0, 1, 2])
    value, slope = jvp(lambda m: min_subpath_difference(m, positive).value, (m,), (m,))
    torch.testing.assert_close(slope, value)
    assert torch.equal(functional_call(MaxSubpathPool(), {}, (SCORES,)), FOUND.value)


def test_meta_inference_and_compiled():
    meta = max_subpath(SCORES.to("meta"))
    assert [(x.shape, x.dtype, x.device.type) for x in meta] == [(x.shape, x.dtype, "meta") for x in FOUND]
    assert path_sum(SCORES.to("meta"), meta.cells).shape == (3,)
    with torch.inference_mode():
        assert torch.equal(max_subpath(SCORES.clone().requires_grad_()).value, FOUND.value)
        inside = SCORES.clone()
    assert torch.equal(max_subpath(inside).value, FOUND.value)
    compiled = torch.compile(lambda s: path_sum(s, max_subpath(s).cells), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(SCORES), FOUND.value)


@pytest.mark.filterwarnings("ignore")  # torch calls these kinds of tensors prototypes
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s: s.to(torch.float8_e4m3fn), "float64, float32, float16 or bfloat16: convert it first"),
        (lambda s: s.to(torch.float8_e5m2), "float64, float32, float16 or bfloat16: convert it first"),
        (lambda s: s.to_sparse(), r"dense: call to_dense\(\), got torch.sparse_coo"),
        (lambda s: torch.nested.nested_tensor(list(s)), "dense: pad it, and give `lengths`, got a nested tensor"),
        (lambda s: torch.nested.nested_tensor(list(s), layout=torch.jagged), "dense: pad it"),
        (lambda s: torch.quantize_per_tensor(s, 0.1, 0, torch.qint8), "a floating-point tensor, got torch.qint8"),
        (lambda s: s + 0j, "a floating-point tensor, got torch.complex64"),
    ],
)
def test_what_is_not_supported_is_said(make, message):
    odd = make(SCORES)
    for call in (max_subpath, lambda s: top_subpaths(s, 1), lambda s: path_sum(s, FOUND.cells), MaxSubpathPool()):
        with pytest.raises(ArgumentError, match=f"`scores` must be {message}"):
            call(odd)


@pytest.mark.parametrize(
    "wrong", [(2, 0, 0), (0, 5, 0), (0, 0, 5), (0, -1, 0), (-1, 0, 0), (-7, -7, -7), (0, 0, 10**9)]
)
def test_path_sum_reads_no_cell_outside_the_grid(wrong):
    cells = FOUND.cells.clone()
    cells[1, 2] = torch.tensor(wrong)
    with pytest.raises(ArgumentError, match=r"`cells` must be \(form, row, column\) below \(2, 5, 5\), or -1"):
        path_sum(SCORES, cells)
    unseen = vmap(path_sum)(SCORES, cells)  # nobody can look at values here
    assert unseen.isnan().tolist() == [False, True, False]


def test_in_the_smallest_grid_a_cell_outside_is_not_read_either():
    """Whatever stands in for such a cell must be inside the grid: here only the first is."""
    unseen = vmap(path_sum)(torch.ones(2, 1, 1, 1, 1), torch.tensor([[[0, 0, 0]], [[0, 0, 7]]]))
    assert unseen[0] == 1
    assert unseen[1].isnan()


def test_path_sum_says_what_cells_are():
    for cells, message in (
        (FOUND.cells.double(), "an integer tensor"),
        (torch.cat([FOUND.cells, FOUND.cells], 1), r"of shape \(\.\.\., T, 3\) with T = 4"),
        (FOUND.cells.to("meta"), "on the device of `scores`, cpu"),
    ):
        with pytest.raises(ArgumentError, match=f"`cells` must be {message}"):
            path_sum(SCORES, cells)
    assert torch.equal(path_sum(SCORES, FOUND.cells.to(torch.int32)), FOUND.value)
