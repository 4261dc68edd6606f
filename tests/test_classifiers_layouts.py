import pytest
import torch

from whytube.classifiers.layouts import LAYOUTS, find_layout
from whytube.errors import ModelError

T, H, W, D = 2, 3, 4, 5
SHAPES = {
    "CTHW": (1, D, T, H, W),
    "THWC": (1, T, H, W, D),
    "TCHW": (T, D, H, W),
    "(THW)C": (1, T * H * W, D),
    "(HWT)C": (1, T * H * W, D),
}


def layout(order, *, extra=0):
    shape = list(SHAPES[order])
    shape[1] += extra
    return find_layout(shape, frames=T, order=order, grid=(T, H, W) if "(" in order else None, grids=[])


@pytest.mark.parametrize("order", LAYOUTS)
def test_every_cell_comes_to_its_place(order):
    """Cell (t, i, j) of channel c carries 1000 c + 100 t + 10 i + j."""
    c, t, i, j = torch.meshgrid(*(torch.arange(n) for n in (D, T, H, W)), indexing="ij")
    maps = (1000 * c + 100 * t + 10 * i + j)[None].float().repeat(2, 1, 1, 1, 1)
    by_hand = {
        "CTHW": maps,
        "THWC": maps.permute(0, 2, 3, 4, 1),
        "TCHW": maps.permute(0, 2, 1, 3, 4).reshape(2 * T, D, H, W),
        "(THW)C": torch.stack([maps[..., a, b, e] for a in range(T) for b in range(H) for e in range(W)], 1),
        "(HWT)C": torch.stack([maps[..., a, b, e] for b in range(H) for e in range(W) for a in range(T)], 1),
    }[order]
    found = layout(order)
    assert found.grid == (T, H, W)
    assert torch.equal(found.to_map(by_hand, 2), maps)
    back = found.from_map(maps, by_hand)
    assert torch.equal(back, by_hand)
    assert back.data_ptr() != maps.data_ptr()


@pytest.mark.parametrize("order", ["(THW)C", "(HWT)C"])
def test_tokens_that_are_no_cells_stand_first(order):
    found = layout(order, extra=3)
    tokens = torch.rand(2, 3 + T * H * W, D)
    maps = found.to_map(tokens, 2)
    assert found.extra == 3
    assert torch.equal(found.from_map(maps, tokens), tokens)
    assert torch.equal(maps[0, :, 0, 0, 0], tokens[0, 3])


def test_grids_of_tokens_come_from_convolutions():
    def grid(tokens, grids, given=None):
        found = find_layout((1, tokens, D), frames=8, order=None, grid=given, grids=grids)
        return found and found.grid

    assert grid(24, [(2, 3, 4)]) == (2, 3, 4)
    assert grid(25, [(2, 3, 4)]) == (2, 3, 4)
    assert grid(25, [(2, 3, 4), (1, 5, 5)]) == (1, 5, 5), "no class token where the cells are enough"
    assert grid(24, [(2, 3, 4), (2, 4, 3)]) == (2, 4, 3), "the latest"
    assert grid(26, [(2, 3, 4)]) is None
    assert grid(26, [], (2, 3, 4)) == (2, 3, 4), "a grid that is given may have several tokens before it"
    assert grid(20, [], (2, 3, 4)) is None


@pytest.mark.parametrize("shape", [(1, 3), (2, 5, 2, 3, 4), (1, 5, 2, 1, 4), (3, 5, 3, 4), (1, 5, 1, 1, 1)])
def test_what_is_no_map(shape):
    assert find_layout(shape, frames=2, order=None, grid=None, grids=[]) is None


def test_other_shapes_than_before_are_refused():
    with pytest.raises(ModelError, match=r"shape \(2, 5, 2, 3, 5\), expected \(2, 5, 2, 3, 4\) as before"):
        layout("CTHW").to_map(torch.zeros(2, D, T, H, W + 1), 2)
