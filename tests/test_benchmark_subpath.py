import pytest
import torch

from benchmarks.subpath import compose_by_index
from whytube.subpath.reference import compose


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("radius", [0, 2])
def test_the_composition_by_index_is_the_composition(fixed, radius):
    base = torch.randn((6, 3, 5, 4, 7), generator=torch.Generator().manual_seed(0))
    values, grads = [], []
    for layer in (compose, compose_by_index):
        scores = base.clone().requires_grad_()
        value = layer(scores, radius=radius, fixed=fixed)
        value.sum().backward()
        values.append(value.detach())
        grads.append(scores.grad)
    assert torch.equal(*values)
    assert torch.equal(*grads)
