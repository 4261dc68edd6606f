import pytest
import torch

from toy_explainer import tiny_classifier
from whytube.explainer.scores import SHAPE_SETS, SHAPES, TAPS, Forms, build_scores, shape_parts, shape_windows
from whytube.subpath import max_subpath

FORMS = Forms(grids=((2, 4, 6), (2, 2, 3)), size=(32, 48), frames=2)


def box(forms, form, row, col):
    """Box of a cell that stands still."""
    cells = torch.tensor([form, row, col]).expand(forms.grid[0], 3)
    boxes = forms.boxes(cells)
    assert (boxes == boxes[0]).all()
    return boxes[0].tolist()


def test_windows_are_overlaps_that_sum_to_one():
    windows = shape_windows()
    assert windows.shape == (4, 9)
    torch.testing.assert_close(windows.sum(1), torch.ones(4))
    for (height, width), window in zip(SHAPES, windows, strict=True):
        for (dy, dx), weight in zip(TAPS, window, strict=True):
            # Share of a unit cell centred at d that [-extent / 2, extent / 2] covers.
            shares = [
                max(0.0, min(d + 0.5, extent / 2) - max(d - 0.5, -extent / 2))
                for d, extent in ((dy, height), (dx, width))
            ]
            torch.testing.assert_close(weight, torch.tensor(shares[0] * shares[1] / (height * width)))


def test_parts_reproduce_the_windows():
    parts = shape_parts()
    for window, part in zip(shape_windows(), parts, strict=True):
        rebuilt = [part[abs(dx) + 2 * abs(dy)] for dy, dx in TAPS]
        assert torch.equal(window, torch.stack(rebuilt))


def test_forms_are_scales_times_shapes():
    assert FORMS.count == 8
    assert FORMS.grid == (2, 4, 6)


@pytest.mark.parametrize(
    ("form", "row", "col", "expected"),
    [
        (0, 1, 2, [12, 4, 28, 20]),  # 2x2 cells of 8 pixels around (x, y) = (20, 12)
        (1, 1, 2, [8, 4, 32, 20]),  # 2 high, 3 wide
        (2, 1, 2, [12, 0, 28, 24]),  # 3 high, 2 wide
        (3, 1, 2, [8, 0, 32, 24]),
        (4, 1, 2, [8, -8, 40, 24]),  # cells of 16 pixels: (1, 2) lies in (0, 1), centred at (24, 8)
        (4, 0, 3, [8, -8, 40, 24]),  # and so does its neighbour
        (7, 3, 5, [16, 0, 64, 48]),
        (0, 0, 0, [-4, -4, 12, 12]),
    ],
)
def test_a_box_is_centred_on_its_own_scales_cell_and_clipped(form, row, col, expected):
    x1, y1, x2, y2 = expected
    assert box(FORMS, form, row, col) == [max(x1, 0), max(y1, 0), min(x2, 48), min(y2, 32)]


def test_outside_the_path_boxes_are_zero():
    cells = torch.tensor([[[3, 1, 1], [-1, -1, -1]], [[-1, -1, -1], [-1, -1, -1]]])
    boxes = FORMS.boxes(cells)
    assert boxes.shape == (2, 2, 4)
    assert boxes[0, 0].any()
    assert not boxes[0, 1].any()
    assert not boxes[1].any()


def test_an_element_covers_the_frames_of_its_step():
    forms = Forms(grids=((2, 4, 4),), size=(16, 16), frames=5)
    boxes = forms.boxes(torch.tensor([[0, 1, 1], [0, 2, 2]]))
    assert boxes.shape == (5, 4)
    first, second = [2, 2, 10, 10], [6, 6, 14, 14]
    assert boxes.tolist() == [first, first, first, second, second]


def test_a_cell_takes_the_value_of_the_coarse_cell_it_lies_in():
    forms = Forms(grids=((4, 4, 6), (2, 2, 3)), size=(32, 48), frames=4)
    coarse = torch.arange(12.0).view(2, 2, 3)
    common = forms.to_common(coarse, 1)
    assert common.shape == (4, 4, 6)
    for t, i, j in [(0, 0, 0), (1, 3, 5), (2, 1, 2), (3, 2, 4)]:
        assert common[t, i, j] == coarse[t // 2, i // 2, j // 2]
        scale, row, col = forms.scale_cells(torch.tensor([5, i, j]))
        assert (int(scale), int(row), int(col)) == (1, i // 2, j // 2)
    fine = torch.rand(4, 4, 6)
    assert forms.to_common(fine, 0) is fine


def test_grids_need_not_divide_each_other():
    forms = Forms(grids=((1, 5, 5), (1, 2, 3)), size=(30, 30), frames=1)
    common = forms.to_common(torch.arange(6.0).view(1, 2, 3), 1)
    for i in range(5):
        for j in range(5):
            _, row, col = forms.scale_cells(torch.tensor([4, i, j]))
            assert common[0, i, j] == 3 * row + col


def test_the_single_shape_is_one_cell():
    forms = Forms(grids=((2, 4, 6),), size=(32, 48), frames=2, shapes=SHAPE_SETS["single"])
    assert (forms.count, forms.shape_set, FORMS.shape_set) == (1, "single", "multiple")
    assert box(forms, 0, 1, 2) == [16, 8, 24, 16], "the cell itself, 8 x 8 pixels"
    assert box(forms, 0, 3, 5) == [40, 24, 48, 32]
    window = torch.zeros(1, 9)
    window[0, TAPS.index((0, 0))] = 1
    assert torch.equal(shape_windows(forms.shapes), window), "of the window its centre alone"
    assert shape_parts(forms.shapes).tolist() == [[1, 0, 0, 0]]


def test_scores_of_the_single_shape_have_the_last_map_alone():
    classifier = tiny_classifier()
    many, one = (build_scores(classifier, 3, shapes=shapes) for shapes in ("multiple", "single"))
    grids = [tuple(shape[1:]) for shape in classifier.map_shapes()]
    assert list(many.forms.grids) == grids
    assert list(one.forms.grids) == grids[-1:] != grids
    assert list(one.channels) == [classifier.map_shapes()[-1][0]]


def coarse_steps(columns):
    """Sum and columns of the best path, where a coarse map of 2 x 8 scores one column a step and no other."""
    steps = len(columns)
    forms = Forms(grids=((steps, 4, 16), (steps, 2, 8)), size=(32, 128), frames=steps)
    coarse = torch.full((steps, 2, 8), -10.0)
    for step, column in enumerate(columns):
        coarse[step, 0, column] = 1.0
    volumes = torch.full((forms.count, steps, 4, 16), -10.0)
    volumes[4] = forms.to_common(coarse, 1)
    found = max_subpath(volumes)
    _, _, column = forms.scale_cells(found.cells)
    return float(found.value), column[found.cells[:, 0] >= 0].tolist()


def test_a_tube_moves_one_cell_of_the_fine_grid_a_step_whatever_its_scale():
    """As k = 1 of section 3.5: a coarse tube crosses a cell of its own in two steps, as far in pixels as a fine one."""
    slow, fast = [1, 1, 2, 2, 3, 3], [1, 2, 3, 4, 5, 6]
    assert coarse_steps(slow) == (6.0, slow), "one coarse cell every second step can be followed"
    value, columns = coarse_steps(fast)
    assert (value, len(columns)) == (2.0, 2), "one coarse cell every step cannot: from edge to edge once, no further"
    still = [3] * 6
    assert coarse_steps(still) == (6.0, still)
