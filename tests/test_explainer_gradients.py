"""The gradient of tube scores, against the paper's pool written out and against autograd."""

import pytest
import torch

from toy_explainer import CHANNELS, GRIDS, tiny_maps, tiny_scores
from whytube.explainer.gradients import path_bags, pooled
from whytube.explainer.scores import SHAPES, TAPS, shape_windows
from whytube.subpath import max_subpath_difference, path_sum

PATHS = torch.tensor(
    [
        [[0, 0, 0], [3, 1, 1], [5, 2, 2]],  # a corner, then another shape, then another scale
        [[-1, -1, -1], [7, 3, 5], [2, 3, 5]],
        [[6, 1, 3], [-1, -1, -1], [-1, -1, -1]],
        [[-1, -1, -1]] * 3,
    ]
)
ITEM = torch.tensor([0, 1, 1, 0])


@pytest.fixture
def scores():
    return tiny_scores()


def kernel_gradients(scores, maps, cells, rows, grad, count):
    """Gradient of all paths at once in the kernels of `count` volumes a clip: per scale (B * count, 9, d)."""
    bags = path_bags(scores, maps, cells, rows[0] // count, grad)
    return [pooled(one, slice(None), rows, len(maps[0]) * count) for one in bags]


def naive_pool(maps, cells, b):
    """Sum of a path's windows, element by element: per scale (9, d)."""
    pooled = [torch.zeros(9, d, dtype=torch.float64) for d in CHANNELS]
    for t, (form, row, col) in enumerate(cells.tolist()):
        if form < 0:
            continue
        scale, window = form // len(SHAPES), shape_windows()[form % len(SHAPES)].double()
        height, width = GRIDS[scale][1:]
        row, col = row * height // GRIDS[0][1], col * width // GRIDS[0][2]
        for tap, (dy, dx) in enumerate(TAPS):
            if 0 <= row + dy < height and 0 <= col + dx < width:
                pooled[scale][tap] += window[tap] * maps[scale][b, :, t, row + dy, col + dx]
    return pooled


def test_the_gradient_in_a_kernel_is_the_pool_along_the_path(scores):
    """One volume per path; a clip's volumes without a path get zero."""
    maps, grad = tiny_maps(), torch.tensor([1.0, -2.0, 3.0, 5.0]).double()
    rows = ITEM * 4 + torch.arange(4)
    found = kernel_gradients(scores, maps, PATHS[None], rows[None], grad, 4)
    assert [g.shape for g in found] == [(8, 9, 3), (8, 9, 2)]
    for scale, gradient in enumerate(found):
        expected = torch.zeros_like(gradient)
        for n, b in enumerate(ITEM.tolist()):
            expected[rows[n]] = grad[n] * naive_pool(maps, PATHS[n], b)[scale]
        torch.testing.assert_close(gradient, expected)


def test_the_value_of_a_path_is_weights_times_pool(scores):
    maps, attributes, positive = tiny_maps(), torch.tensor([[0, 3], [4, 1]]), torch.tensor([2, 0])
    kernels = scores.class_kernels(attributes)
    path = max_subpath_difference(scores.volumes(maps, kernels), positive)  # (B, C - 1, s)
    for n, value in enumerate(path.value.flatten()):
        b, negative, place = n // 6, n // 2 % 3, n % 2
        negative += negative >= positive[b]
        cells = path.cells.flatten(0, 2)[n]
        row = (b * 4 + torch.stack([positive[b], negative])) * 2 + place
        found = kernel_gradients(scores, maps, cells[None, None], row[:, None], torch.ones(1).double(), 8)
        total = sum((kernel.flatten(0, 2) * gradient).sum() for kernel, gradient in zip(kernels, found, strict=True))
        torch.testing.assert_close(total, value)


@pytest.mark.parametrize("grids", [GRIDS, ((4, 4, 4), (2, 2, 2)), ((3, 5, 4), (3, 3, 3), (3, 1, 2)), ((1, 1, 1),)])
@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("signs", [1, 2])
def test_it_equals_autograd_on_any_path(grids, sides, signs):
    generator = torch.Generator().manual_seed(sides)
    channels = range(2, 2 + len(grids))
    scores, maps = tiny_scores(grids=grids, channels=channels), tiny_maps(3, grids=grids, channels=channels)
    kernels = [torch.randn(3, 4, 9, d, generator=generator).double().requires_grad_() for d in channels]
    limits = (scores.forms.count, *grids[0][1:])
    cells = torch.stack([torch.randint(n, (sides, 7, grids[0][0]), generator=generator) for n in limits], -1)
    cells[torch.rand(cells.shape[:-1], generator=generator) < 0.3] = -1
    clip, rows = torch.randint(3, (7,), generator=generator), torch.randint(4, (signs, 7), generator=generator)
    rows, grad = clip * 4 + rows, torch.randn(7, generator=generator).double()
    along = scores.volumes(maps, kernels).flatten(0, 1)[rows]  # (signs, N, K, T, H, W)
    sums = sum(path_sum(along, one) for one in cells)
    value = sums[0] - sums[1] if signs == 2 else sums[0]
    expected = torch.autograd.grad(value, kernels, grad)
    found = kernel_gradients(scores, maps, cells, rows, grad, 4)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b.flatten(0, 1))


def test_paths_in_parts_give_the_same(scores):
    maps, grad = tiny_maps(), torch.tensor([1.0, -2.0, 3.0, 5.0]).double()
    whole = kernel_gradients(scores, maps, PATHS[None], ITEM[None], grad, 1)
    for bags, expected in zip(path_bags(scores, maps, PATHS[None], ITEM, grad), whole, strict=True):
        parts = [pooled(bags, part, ITEM[None, part], 2) for part in (slice(0, 1), slice(1, 4))]
        torch.testing.assert_close(sum(parts), expected)


def test_places_exist_also_where_the_weight_is_zero(scores):
    fine, coarse = path_bags(scores, tiny_maps(), PATHS[None], ITEM, torch.ones(4).double())
    for bags in (fine, coarse):
        assert ((bags.places >= 0) & (bags.places < len(bags.features))).all()
    weight = (fine.weight + coarse.weight).transpose(1, 2)  # (N, T, 9)
    assert (weight[PATHS[..., 0] < 0] == 0).all()
    assert weight[0, 0].count_nonzero() == 4, "a corner has four neighbours, itself included"
    torch.testing.assert_close(weight[0, 1], shape_windows()[3].double())
    assert coarse.weight[0, :, 2].any(), "of the second scale"
    assert not fine.weight[0, :, 2].any(), "and of that alone"
