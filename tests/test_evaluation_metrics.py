"""Metrics on cases small enough to work out by hand."""

import math

import numpy as np
import pytest
import torch

from whytube.errors import ArgumentError
from whytube.evaluation import metrics
from whytube.search.verify import separating_attributes
from whytube.tubes import Tube, tube_iou

A, B, C, D = range(4)


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def still(box, frames=2):
    return torch.tensor(box, dtype=torch.float64).expand(frames, 4)


def test_expected_top_ranks():
    values = tensor([0.1, 0.5, 0.3])
    hits = [[float(metrics.expected_top(values, torch.tensor(t), top=top)) for t in range(3)] for top in (1, 2, 3)]
    assert hits == [[0, 1, 0], [0, 1, 1], [1, 1, 1]]


def test_expected_top_breaks_ties_at_random():
    values = tensor([2.0, 1.0, 1.0, 1.0, 0.0])
    chance = [float(metrics.expected_top(values, torch.tensor(2), top=top)) for top in (1, 2, 3, 4)]
    assert chance == pytest.approx([0, 1 / 3, 2 / 3, 1])
    rng = np.random.default_rng(0)
    drawn = [2 in np.lexsort((rng.random(5), -values.numpy()))[:2] for _ in range(4000)]
    assert np.mean(drawn) == pytest.approx(1 / 3, abs=0.03)


def test_expected_top_over_some_places():
    values, among = tensor([9.0, 1.0, 2.0]), torch.tensor([False, True, True])
    assert metrics.expected_top(values, torch.tensor(2), top=1, among=among) == 1
    assert metrics.expected_top(values, torch.tensor(0), top=3, among=among) == 0, "does not take part"
    assert metrics.expected_top(values, torch.tensor(-1), top=3) == 0
    with pytest.raises(ArgumentError, match="`top` must be an integer of at least 1"):
        metrics.expected_top(values, torch.tensor(0), top=0)


def test_negative_class_hits_leave_out_the_positive():
    before = tensor([[0.7, 0.2, 0.1, 0.0]])
    # Asked about B, masking helps C most; asked about C too. The positive's own change never counts.
    after = tensor([[[[0.8, 0.1, 0.1, 0.0]], [[0.2, 0.3, 0.5, 0.0]]]])
    positive, negative = torch.tensor([A]), torch.tensor([[B, C]])
    assert metrics.negative_class_hits(before, after, positive, negative, top=1).tolist() == [[[0], [1]]]
    assert metrics.negative_class_hits(before, after, positive, negative, top=3).tolist() == [[[1], [1]]]
    assert metrics.class_change(before, after, negative).flatten().tolist() == pytest.approx([-0.1, 0.4])


def test_probability_and_log_probability_rank_differently():
    before = tensor([[0.7, 0.29, 0.01]])
    after = tensor([[[[0.6, 0.33, 0.07]]]])
    positive, negative = torch.tensor([A]), torch.tensor([[B]])
    assert metrics.negative_class_hits(before, after, positive, negative, top=1) == 0
    after = tensor([[[[0.6, 0.36, 0.04]]]])
    assert metrics.negative_class_hits(before, after, positive, negative, top=1) == 1
    assert metrics.negative_class_hits(before.log(), after.log(), positive, negative, top=1) == 0


def test_leading_dimensions_pass_through():
    before, after = torch.rand(2, 5), torch.rand(3, 2, 4, 1, 5)
    positive, negative = torch.tensor([0, 1]), torch.tensor([[1, 2, 3, 4], [0, 2, 3, 4]])
    hits = metrics.negative_class_hits(before, after, positive, negative, top=1)
    assert hits.shape == (3, 2, 4, 1)
    assert torch.equal(hits[1], metrics.negative_class_hits(before, after[1], positive, negative, top=1))


def test_annotated_boxes():
    box = np.array([[0, 0, 2, 2], [0, 0, 0, 0]])
    boxes, known = metrics.annotated_boxes([{"b": box, "unknown": box}, {"a": box * 0}], ("a", "b"), frames=2)
    assert boxes.shape == (2, 2, 2, 4)
    assert boxes[0, 1].tolist() == box.tolist()
    assert known.tolist() == [[False, True], [False, False]], "a track without area is none"


def test_region_iou_agrees_with_tubes():
    rng = np.random.default_rng(0)
    corners = rng.uniform(0, 8, (6, 3, 2))
    tracks = np.concatenate([corners, corners + rng.uniform(0, 6, (6, 3, 2))], -1)
    tracks[2, 0] = 0
    found = metrics.region_iou(torch.from_numpy(tracks)[:, None], torch.from_numpy(tracks))
    for i, a in enumerate(tracks):
        for j, b in enumerate(tracks):
            assert float(found[i, j]) == pytest.approx(tube_iou(Tube(range(3), a), Tube(range(3), b)))
    nothing = torch.zeros(3, 4)
    assert metrics.region_iou(nothing, nothing) == 0


def test_frames_that_nobody_annotated_do_not_count():
    boxes = torch.zeros(1, 2, 3, 4)
    boxes[0, 0, 1] = torch.tensor([0.0, 0, 4, 4])
    region = still([0, 0, 4, 4], 3).view(1, 1, 1, 3, 4)
    assert metrics.attribute_iou(region, boxes).tolist() == [[[[1.0, 0.0]]]]


@pytest.fixture
def scene():
    """Attributes a and b share a box at the left, c stands right, d is not there; two frames of 8 x 8."""
    boxes = torch.stack([still([0, 0, 4, 4]), still([0, 0, 4, 4]), still([4, 0, 8, 4]), still([0, 0, 0, 0])])[None]
    return boxes, torch.tensor([[True, True, True, False]])


def regions_of(*boxes):
    """One clip, one negative, k regions."""
    return torch.stack([still(box) for box in boxes])[None, None]


@pytest.mark.parametrize(
    ("word", "chances"),
    [(0, [0.5, 1, 1]), (1, [0.5, 1, 1]), (2, [0, 1, 1]), (3, [0, 0, 0]), (-1, [0, 0, 0])],
)
def test_concept_hits_share_a_box_fairly(scene, word, chances):
    boxes, known = scene
    iou = metrics.attribute_iou(regions_of([0, 0, 5, 4]), boxes)
    words = torch.tensor([[[word]]])
    assert [float(metrics.concept_hits(iou, known, words, top=top)) for top in (1, 3, 5)] == pytest.approx(chances)


def test_a_word_must_be_touched(scene):
    boxes, known = scene
    words = torch.tensor([[[0, 2, 0]]])
    iou = metrics.attribute_iou(regions_of([4, 0, 8, 4], [4, 0, 8, 4], [0, 0, 0, 0]), boxes)
    assert metrics.concept_hits(iou, known, words, top=5).tolist() == [[[0, 1, 0]]]
    assert metrics.right_box(iou, known, words).tolist() == [[[0, 1, 0]]]


def test_as_printed_a_box_that_is_not_touched_may_be_a_hit(scene):
    boxes, known = scene
    regions = regions_of([4, 0, 8, 4], [4, 0, 8, 4], [0, 0, 0, 0], [4, 0, 8, 4])
    words = torch.tensor([[[0, 2, 0, -1]]])
    printed = [metrics.printed_hits(regions, boxes, known, words, top=top)[0, 0].tolist() for top in (1, 2, 3)]
    assert printed == [[0, 1, 0, 0], [0.5, 1, 0, 0], [1, 1, 0, 0]], "a and b tie for the second place, untouched"
    ours = metrics.concept_hits(metrics.attribute_iou(regions, boxes), known, words, top=3)
    assert ours[0, 0].tolist() == [0, 1, 0, 0]
    assert metrics.printed_hits(regions, boxes, known & False, words, top=1).isnan().all()


def test_as_printed_frames_without_boxes_count():
    boxes = torch.zeros(1, 2, 3, 4, dtype=torch.float64)
    boxes[0, :, 1] = tensor([[0, 0, 4, 5], [0, 0, 8, 8]])  # a small and a large one, both in the second frame alone
    regions = still([0, 0, 8, 8], 3).clone()
    regions[1] = tensor([0, 0, 4, 8])
    regions, known, word = regions.view(1, 1, 1, 3, 4), torch.tensor([[True, True]]), torch.tensor([[[0]]])
    iou = metrics.attribute_iou(regions, boxes)
    assert iou.flatten().tolist() == pytest.approx([20 / 32, 32 / 64])
    assert metrics.concept_hits(iou, known, word, top=1).item() == 1
    # Over all frames the region has 128 pixels more, and the large box is the better one: 20 / 160 against 32 / 192.
    assert metrics.printed_hits(regions, boxes, known, word, top=1).item() == 0


def test_right_box_needs_no_luck(scene):
    boxes, known = scene
    iou = metrics.attribute_iou(regions_of([0, 0, 5, 4], [0, 0, 5, 4], [0, 0, 5, 4]), boxes)
    assert metrics.right_box(iou, known, torch.tensor([[[0, 2, 3]]])).tolist() == [[[1, 0, 0]]]


def test_clips_without_boxes_have_no_concept(scene):
    boxes, known = scene
    iou = metrics.attribute_iou(regions_of([0, 0, 5, 4]), boxes * 0)
    words = torch.tensor([[[0]]])
    assert math.isnan(metrics.concept_hits(iou, known & False, words, top=1))
    assert math.isnan(metrics.right_box(iou, known & False, words))


def test_words_and_the_pair_of_classes():
    table = torch.tensor([[1, 1, 0], [1, 0, 0], [1, 1, 1]], dtype=torch.bool)
    positive, negative = torch.tensor([A]), torch.tensor([[B, C]])
    apart = separating_attributes(table, positive, negative)
    assert apart.tolist() == [[[False, True, False], [False, False, False]]]
    words = torch.tensor([[[1, 0, 2, -1], [1, 0, 2, -1]]])
    assert metrics.attribute_in_class(table, positive, words).tolist() == [[[1, 1, 0, 0]] * 2]
    hits = metrics.attribute_separates(apart, words)
    assert hits[0, 0].tolist() == [1, 0, 0, 0]
    assert hits[0, 1].isnan().all(), "C has all that A has: no word can separate"


def test_pointing_and_iou_with_the_true_box(scene):
    boxes, known = scene
    apart = torch.tensor([[[False, False, True, True]]])
    regions = regions_of([4, 0, 8, 4], [3, 0, 7, 4], [0, 0, 4, 4], [0, 0, 0, 0])
    iou = metrics.attribute_iou(regions, boxes)
    assert metrics.true_box_iou(iou, known, apart)[0, 0].tolist() == pytest.approx([1, 3 / 5, 0, 0])
    assert metrics.pointing(regions, boxes, known, apart)[0, 0].tolist() == [1, 1, 0, 0]
    unknown = torch.tensor([[[False, False, False, True]]])
    assert metrics.true_box_iou(iou, known, unknown).isnan().all()
    assert metrics.pointing(regions, boxes, known, unknown).isnan().all()


def test_the_actor_counts_in_annotated_frames():
    actors = torch.zeros(2, 4, 4)
    actors[0, :2] = torch.tensor([0.0, 0, 4, 4])
    on, beside, elsewhere, nothing = torch.zeros(4, 4, 4)
    on[0], on[1], on[3] = torch.tensor([[0.0, 0, 4, 4], [2, 0, 6, 4], [0, 0, 4, 4]])  # a centre on the edge is outside
    beside[:2] = torch.tensor([1.0, 0, 5, 4])
    elsewhere[2:] = torch.tensor([0.0, 0, 4, 4])
    regions = torch.stack([on, beside, elsewhere, nothing]).expand(2, 1, 4, 4, 4)
    hits = metrics.actor_pointing(regions, actors)
    assert hits[0, 0, :2].tolist() == [0.5, 1.0], "the last frame has no actor, and does not count"
    assert hits[0, 0, 2:].isnan().all(), "no frame of the region has an actor"
    iou = metrics.actor_iou(regions, actors)
    assert iou[0, 0].tolist() == pytest.approx([24 / (48 + 32 - 24), 24 / (32 + 32 - 24), 0, 0])
    assert hits[1].isnan().all()
    assert iou[1].isnan().all(), "a clip without boxes of an actor"


def test_change_of_a_tube_between_negatives():
    left, right, half = still([0, 0, 4, 4]), still([4, 0, 8, 4]), still([0, 0, 4, 2])
    regions = torch.stack([left, left, half])[None, :, None]
    assert metrics.tube_change(regions).flatten().tolist() == pytest.approx([0.25, 0.25, 0.5])
    assert metrics.tube_change(torch.stack([left, right])[None, :, None]).flatten().tolist() == [1, 1]
    ranked = torch.stack([torch.stack([left, right]), torch.stack([left, half])])[None]
    assert metrics.tube_change(ranked).tolist() == [[[0, 1], [0, 1]]], "ranks are compared with their like"
    assert metrics.tube_change(left[None, None, None]).isnan().all(), "there is no other negative"


def test_area_and_frames():
    region = torch.zeros(4, 4)
    region[1] = torch.tensor([-2.0, 0, 4, 4])
    assert float(metrics.tube_area(region, size=(8, 16))) == pytest.approx(16 / 128 / 4)
    assert float(metrics.tube_frames(region)) == 0.25
    assert float(metrics.tube_area(torch.zeros(4, 4), size=(8, 8))) == 0


def test_ties_count_as_hits_where_asked():
    iou = torch.tensor([0.5, 0.5, 0.7, 0.0]).view(1, 1, 1, 4).double()
    known = torch.ones(1, 4, dtype=torch.bool)
    tied = {
        word: [metrics.tied_hits(iou, known, torch.tensor([[[word]]]), top=top).item() for top in (1, 2, 3)]
        for word in range(4)
    }
    assert tied == {0: [0, 1, 1], 1: [0, 1, 1], 2: [1, 1, 1], 3: [0, 0, 0]}
    shared = metrics.concept_hits(iou, known, torch.tensor([[[1]]]), top=2)
    assert shared.item() == 0.5


def test_what_is_smaller_than_a_pixel_still_counts():
    small = still([1, 1, 1.5, 1.5]).view(1, 1, 1, 2, 4)
    actors = still([1, 1, 1.5, 1.5])[None]
    assert metrics.actor_pointing(small, actors).item() == 1
    assert metrics.actor_iou(small, actors).item() == 1
    boxes, known = actors[:, None], torch.tensor([[True]])
    assert metrics.attribute_iou(small, boxes).item() == 1
    assert metrics.pointing(small, boxes, known, torch.tensor([[[True]]])).item() == 1
    assert metrics.tube_frames(small).item() == 1
    assert metrics.annotated_boxes([{"a": small.view(2, 4).numpy()}], ("a",), frames=2)[1].item()


def test_a_centre_lies_in_a_box_from_its_first_to_before_its_last_pixel():
    corners = [([2, 3], 1), ([1.9, 3], 0), ([2, 2.9], 0), ([5.9, 6.9], 1), ([6, 5], 0), ([5, 7], 0)]
    regions = torch.stack([still([x - 1, y - 1, x + 1, y + 1]) for (x, y), _ in corners])[None, None]
    found = metrics.actor_pointing(regions, still([2, 3, 6, 7])[None])
    assert found.flatten().tolist() == [hit for _, hit in corners]


def test_pointing_counts_frames_with_boxes_of_any_attribute():
    """Of three frames of a region, two have boxes; in one of these its centre is in the box that answers."""
    boxes = torch.zeros(1, 2, 4, 4)
    boxes[0, 0, 1], boxes[0, 1, 2] = torch.tensor([0.0, 0, 4, 4]), torch.tensor([0.0, 0, 4, 4])
    known, apart = torch.tensor([[True, True]]), torch.tensor([[[True, False]]])
    region = still([0, 0, 4, 4], 4).clone()
    region[3] = 0
    late = torch.zeros(4, 4)
    late[3] = torch.tensor([0.0, 0, 4, 4])
    regions = torch.stack([region, late.double(), torch.zeros(4, 4).double()])[None, None]
    found = metrics.pointing(regions, boxes.double(), known, apart)[0, 0]
    assert found[0] == 0.5
    assert found[1].isnan(), "no box was drawn where the region is"
    assert found[2] == 0
    other = metrics.pointing(regions, boxes.double(), torch.tensor([[False, True]]), apart)
    assert other.isnan().all(), "the attribute that answers is not annotated"


def test_cases_of_a_batch_do_not_mix():
    """Figures of several clips and negatives are those of each alone."""
    generator = torch.Generator().manual_seed(0)

    def tubes(*shape):
        low = torch.rand(*shape, 3, 2, generator=generator, dtype=torch.float64) * 6
        there = torch.rand(*shape, 3, 1, generator=generator) < 0.7
        return torch.where(there, torch.cat([low, low + 1 + 3 * torch.rand(low.shape, generator=generator)], -1), 0)

    regions, boxes, actors = tubes(4, 2, 3), tubes(4, 5), tubes(4)
    known = (torch.rand(4, 5, generator=generator) < 0.7) & (boxes.sum((2, 3)) > 0)
    known[3] = False
    apart = torch.rand(4, 2, 5, generator=generator) < 0.5
    ids = torch.randint(-1, 5, (4, 2, 3), generator=generator)
    table, positive = torch.rand(6, 5, generator=generator) < 0.5, torch.tensor([3, 1, 5, 0])

    def figures(b, n, r):
        """Work out what the slices b, n and r of the three dimensions give."""
        shown, said, clip = regions[b, n, r], ids[b, n, r], (boxes[b], known[b], apart[b, n])
        iou = metrics.attribute_iou(shown, clip[0])
        return [
            metrics.concept_hits(iou, clip[1], said, top=2),
            metrics.tied_hits(iou, clip[1], said, top=2),
            metrics.right_box(iou, clip[1], said),
            metrics.true_box_iou(iou, clip[1], clip[2]),
            metrics.pointing(shown, *clip),
            metrics.actor_pointing(shown, actors[b]),
            metrics.actor_iou(shown, actors[b]),
            metrics.attribute_in_class(table, positive[b], said),
            metrics.attribute_separates(clip[2], said),
            metrics.tube_area(shown, size=(8, 10)),
            metrics.tube_frames(shown),
        ]

    every = slice(None)
    whole = figures(every, every, every)
    for b, n, r in np.ndindex(4, 2, 3):
        alone = figures(*(slice(i, i + 1) for i in (b, n, r)))
        for together, single in zip(whole, alone, strict=True):
            torch.testing.assert_close(together[b, n, r], single[0, 0, 0], equal_nan=True)
    assert all(0 < figure.nanmean() < 1 for figure in whole)
