import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from whytube.errors import ArgumentError
from whytube.tubes import (
    Tube,
    cell_boxes,
    enclosing_tube,
    random_tube,
    region_iou,
    tube_iou,
)


def tube(*boxes, start=0, times=None):
    return Tube(np.arange(start, start + len(boxes)), np.array(boxes, dtype=float).reshape(-1, 4), times)


def volume_iou(a, b, size=24, frames=8):
    """IoU by counting voxels of integer boxes."""
    volumes = np.zeros((2, frames, size, size), dtype=bool)
    for volume, one in zip(volumes, (a, b), strict=True):
        for frame, (x1, y1, x2, y2) in zip(one.frames, one.boxes.astype(int), strict=True):
            volume[frame, y1:y2, x1:x2] = True
    union = (volumes[0] | volumes[1]).sum()
    return (volumes[0] & volumes[1]).sum() / union if union else 0.0


@st.composite
def tubes(draw):
    frames = sorted(draw(st.sets(st.integers(0, 7))))
    edge = st.tuples(st.integers(0, 23), st.integers(0, 23)).map(sorted)
    pairs = [(draw(edge), draw(edge)) for _ in frames]
    return Tube(frames, [(x[0], y[0], x[1], y[1]) for x, y in pairs])


class TestTube:
    def test_arrays_are_converted_copied_and_read_only(self):
        boxes = np.array([[0, 1, 2, 3]], dtype=np.uint8)
        one = Tube([5], boxes, [0.2])
        boxes[:] = 9
        assert one.frames.dtype == np.int64
        assert one.boxes.dtype == np.float64
        assert one.boxes.tolist() == [[0, 1, 2, 3]]
        with pytest.raises(ValueError, match="read-only"):
            one.boxes[0, 0] = 1

    @pytest.mark.parametrize(
        ("frames", "boxes", "times", "message"),
        [
            ([0, 0], [[0, 0, 1, 1]] * 2, None, "strictly increasing"),
            ([-1], [[0, 0, 1, 1]], None, "strictly increasing frame indices from 0"),
            ([0.5], [[0, 0, 1, 1]], None, "list of integers"),
            ([0], [[2, 0, 1, 1]], None, r"`boxes\[0\]` must be finite"),
            ([0], [[0, 0, np.nan, 1]], None, "finite"),
            ([0, 1], [[0, 0, 1, 1]], None, r"shape \(2, 4\)"),
            ([0], [[0, 0, 1, 1]], [0.0, 1.0], "1 finite seconds"),
        ],
    )
    def test_nonsense_is_refused(self, frames, boxes, times, message):
        with pytest.raises(ArgumentError, match=message):
            Tube(frames, boxes, times)

    def test_empty(self):
        for one in (Tube([], []), Tube.from_dict(Tube([], []).to_dict())):
            assert len(one) == 0
            assert one.boxes.shape == (0, 4)
            assert one.volume == 0
            assert one.span == (0, 0)
            assert one.at([0, 1]).tolist() == [[0] * 4] * 2

    def test_volume_and_span(self):
        one = tube((0, 0, 4, 2), (1, 1, 3, 2), start=3)
        assert one.areas.tolist() == [8, 2]
        assert one.volume == 10
        assert one.span == (3, 5)

    def test_at_takes_any_order_and_repeats(self):
        one = Tube([2, 5], [[0, 0, 1, 1], [1, 1, 2, 2]])
        assert one.at([5, 3, 2, 2, 9])[:, 2].tolist() == [2, 0, 1, 1, 0]

    def test_json_round_trip(self):
        one = Tube([1, 4], [[0.123, 1, 2.5, 3], [0, 0, 1 / 3, 1]], [0.04, 0.16])
        again = Tube.from_dict(json.loads(json.dumps(one.to_dict())))
        assert again.frames.tolist() == [1, 4]
        assert again.boxes.tolist() == [[0.12, 1, 2.5, 3], [0, 0, 0.33, 1]]
        assert again.times.tolist() == [0.04, 0.16]
        assert Tube.from_dict(tube((0, 0, 1, 1)).to_dict()).times is None
        with pytest.raises(ArgumentError, match="`boxes` is missing"):
            Tube.from_dict({"frames": []})


class TestOverlap:
    def test_edges_are_exclusive(self):
        assert tube_iou(tube((0, 0, 2, 2)), tube((2, 0, 4, 2))) == 0
        assert tube_iou(tube((0, 0, 2, 2)), tube((1, 0, 3, 2))) == pytest.approx(1 / 3)

    def test_frames_without_the_other_count_in_the_union(self):
        assert tube_iou(tube((0, 0, 2, 2), (0, 0, 2, 2)), tube((0, 0, 2, 2), start=1)) == 0.5
        assert tube_iou(tube((0, 0, 2, 2)), tube((0, 0, 2, 2), start=1)) == 0

    def test_empties_overlap_nothing(self):
        nothing, flat, some = Tube([], []), tube((1, 1, 1, 5)), tube((0, 0, 2, 2))
        for a in (nothing, flat):
            for b in (nothing, flat, some):
                assert tube_iou(a, b) == tube_iou(b, a) == 0
        assert tube_iou(some, some, []) == 0

    def test_on_given_frames_only(self):
        predicted = tube(*[(0, 0, 4, 4)] * 10)
        annotated = Tube([2, 7], [[0, 0, 4, 4], [0, 0, 4, 2]])
        assert tube_iou(predicted, annotated) == pytest.approx(24 / 160)
        assert tube_iou(predicted, annotated, [2]) == 1
        assert tube_iou(predicted, annotated, [7, 2, 7]) == pytest.approx(24 / 32)

    @settings(deadline=None, max_examples=60)
    @given(tubes(), st.lists(tubes(), min_size=1, max_size=4))
    def test_agrees_with_counting_voxels(self, one, others):
        counted = [volume_iou(one, other) for other in others]
        shown = torch.from_numpy(np.stack([other.at(range(8)) for other in others]))
        assert region_iou(torch.from_numpy(one.at(range(8))), shown).tolist() == pytest.approx(counted)
        assert [tube_iou(other, one) for other in others] == pytest.approx(counted)


def boxes_of(cells, shapes, grid, frames, size):
    """Boxes of cells on one grid."""
    path, forms = torch.tensor(cells), torch.tensor(shapes, dtype=torch.float32)
    return cell_boxes(path, forms, torch.tensor([grid] * len(forms)), frames=frames, size=size).tolist()


class TestCellBoxes:
    def test_one_cell_is_the_pixels_it_covers(self):
        assert boxes_of([[0, 1, 2]], [(1, 1)], (3, 4), 1, (30, 80)) == [[40, 10, 60, 20]]

    def test_forms_are_centred_on_the_cell_and_clipped(self):
        cells = [[0, 1, 1], [1, 1, 1], [1, 0, 0], [0, 2, 3]]
        expected = [[5, 5, 25, 25], [5, 0, 25, 30], [0, 0, 15, 20], [25, 15, 40, 30]]
        assert boxes_of(cells, [(2, 2), (3, 2)], (3, 4), 4, (30, 40)) == expected

    def test_steps_outside_the_path_have_no_box(self):
        nothing = [0.0] * 4
        cells = [[-1, -1, -1], [0, 0, 0], [-1, -1, -1]]
        assert boxes_of(cells, [(1, 1)], (2, 2), 3, (8, 8)) == [nothing, [0, 0, 4, 4], nothing]
        assert boxes_of([[-1, -1, -1]] * 3, [(1, 1)], (2, 2), 3, (8, 8)) == [nothing] * 3

    def test_an_element_covers_the_frames_of_its_step(self):
        cells, nothing = [[-1, -1, -1], [0, 0, 1]], [0.0] * 4
        assert boxes_of(cells, [(1, 1)], (1, 2), 8, (4, 8)) == [nothing] * 4 + [[4, 0, 8, 4]] * 4
        assert boxes_of(cells, [(1, 1)], (1, 2), 3, (4, 8)) == [nothing] * 2 + [[4, 0, 8, 4]]

    def test_each_form_has_its_own_grid(self):
        cells, shapes = torch.tensor([[0, 1, 1], [1, 1, 1]]), torch.ones(2, 2)
        found = cell_boxes(cells, shapes, torch.tensor([[4, 4], [2, 2]]), frames=2, size=(8, 8))
        assert found.tolist() == [[2, 2, 4, 4], [4, 4, 8, 8]]


class TestControls:
    @settings(deadline=None, max_examples=50)
    @given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 40), st.integers(1, 50))
    def test_random_stays_inside_with_its_size(self, seed, height, width, gap):
        frames = np.arange(20) * gap
        one = random_tube((30, 40), (height, width), frames, rng=np.random.default_rng(seed))
        assert one.areas == pytest.approx([height * width] * 20)
        assert one.boxes.clip(0, [40, 30, 40, 30]) == pytest.approx(one.boxes)

    def test_random_is_smooth_seeded_and_moves(self):
        one, same, other = (
            random_tube((240, 320), (60, 40), np.arange(64), rng=np.random.default_rng(seed)) for seed in (1, 1, 2)
        )
        assert (one.boxes == same.boxes).all()
        assert (one.boxes != other.boxes).any()
        steps = np.abs(np.diff(one.boxes[:, :2], axis=0))
        assert steps.mean() > 0
        assert steps.max() < 40

    def test_random_matches_another_tube_box_by_box(self):
        model = tube((0, 0, 4, 2), (1, 1, 9, 9), start=3)
        sides = model.boxes[:, [3, 2]] - model.boxes[:, [1, 0]]
        one = random_tube((20, 30), sides, model.frames, rng=np.random.default_rng(0))
        assert one.areas == pytest.approx(model.areas)

    def test_no_frames_and_too_large(self):
        assert len(random_tube((8, 8), (2, 2), [], rng=np.random.default_rng(0))) == 0
        with pytest.raises(ArgumentError, match="no larger than the frame, 8 x 8"):
            random_tube((8, 8), (9, 2), [0], rng=np.random.default_rng(0))


def test_one_box_goes_around_all_of_a_frame():
    tube = enclosing_tube([4, 1, 4], [[10, 20, 30, 40], [0, 0, 2, 2], [5, 25, 12, 50]])
    assert tube.frames.tolist() == [1, 4]
    assert tube.boxes.tolist() == [[0, 0, 2, 2], [5, 20, 30, 50]]
    assert len(enclosing_tube([], [])) == 0
    with pytest.raises(ArgumentError, match=r"`boxes` must be of shape \(2, 4\), one per frame"):
        enclosing_tube([0, 1], [[1, 2, 3, 4]])
