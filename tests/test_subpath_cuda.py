"""What only a GPU can show of the layer."""

import pytest
import torch

from subpath_kernels import assert_same, tied_scores
from whytube.subpath import max_subpath


@pytest.mark.gpu
@pytest.mark.parametrize(
    "shape", [(7, 16, 9, 56, 56), (3, 2, 512, 14, 14), (50, 8, 64, 14, 14), (4, 1, 3, 1, 7), (9, 4, 16, 28, 28)]
)
@pytest.mark.parametrize("forms", ["free", "fixed"])
def test_gpu_equals_cpu_to_the_bit(shape, forms):
    scores = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    assert_same(max_subpath(scores.cuda(), forms=forms), max_subpath(scores, forms=forms))
    tied = tied_scores(1, shape)
    assert_same(max_subpath(tied.cuda(), forms=forms), max_subpath(tied, forms=forms))


@pytest.mark.gpu
def test_gpu_beyond_two_to_the_31_elements():
    shape = (90_000, 8, 16, 14, 14)  # 2.26e9
    scores = torch.zeros(shape, dtype=torch.float16, device="cuda")
    scores[-1, 7, 3:9, 13, 13] = 2.0
    found = max_subpath(scores.requires_grad_())
    assert found.value[-1] == 12.0
    assert (found.start[-1], found.stop[-1]) == (3, 9)
    found.value[-1].backward()
    assert scores.grad[-1].sum() == 6
    assert scores.grad[:-1].abs().max() == 0


@pytest.mark.gpu
def test_gpu_graph_capture():
    scores = torch.randn(20, 2, 5, 6, 6, device="cuda")
    wanted = max_subpath(scores)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = max_subpath(scores)
    graph.replay()
    assert_same(found, wanted)
