import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import max_pool2d

from whytube.data.world import World
from whytube.data.world.scene import LAYERS, SPRITES_OF
from whytube.data.world.vocabulary import SLOTS, dances
from whytube.errors import ArgumentError

SMALL = World(size=64)
EVERY_CLASS = range(len(SMALL.classes))
SLOT_OF = {value: name for name, slot in SLOTS.items() for value in slot.values}


def alone(scene, entity):
    """Return the scene with every sprite taken away but those of one entity (or of none)."""
    kept = SPRITES_OF.get(entity, ())
    alpha = np.array([float(layer in kept) for layer in LAYERS], np.float32)
    return dataclasses.replace(scene, sprites=dataclasses.replace(scene.sprites, alpha=alpha))


def flattest(frames, side):
    """Return the smallest range of values (max - min, largest over colours) of any side x side window of each frame."""
    span = max_pool2d(frames, side, 1) + max_pool2d(-frames, side, 1)
    return span.amax(1).amin((1, 2))


def probe_accuracy(features, labels):
    """Fit a linear classifier on the first two thirds by least squares and return its accuracy on the rest."""
    split = len(labels) * 2 // 3
    mean, std = features[:split].mean(0), features[:split].std(0)
    inputs = np.concatenate([(features - mean) / std, np.ones((len(labels), 1))], 1)
    weights = np.linalg.lstsq(inputs[:split], np.eye(len(EVERY_CLASS))[labels[:split]], rcond=None)[0]
    return float(((inputs[split:] @ weights).argmax(1) == labels[split:]).mean())


def test_vocabulary_is_large_and_shared():
    table = SMALL.table
    assert len(SMALL.classes) >= 12
    assert len(SMALL.attribute_names) >= 20
    assert table.dtype == torch.bool
    assert table.shape == (len(SMALL.classes), len(SMALL.attribute_names))
    assert len(set(map(tuple, table.tolist()))) == len(SMALL.classes)
    assert len(set(map(tuple, table.T.tolist()))) == len(SMALL.attribute_names)
    assert table.sum(0).min() >= 2, "an attribute of one class would name the class"


@pytest.mark.parametrize("name", SMALL.classes)
def test_hard_negatives_differ_in_one_attribute_or_entity(name):
    negatives = SMALL.hard_negatives(name)
    assert len(negatives) >= 2
    for other in negatives:
        assert name in SMALL.hard_negatives(other)
        mine, theirs = SMALL.separating(name, other)
        assert SMALL.separating(other, name) == (theirs, mine)
        assert len(mine) <= 1
        assert len(theirs) <= 1
        assert mine + theirs
        assert len({SLOT_OF[attribute] for attribute in mine + theirs}) == 1


def test_hard_pairs_cover_every_slot_and_every_attribute():
    pairs = [(a, b) for a in SMALL.classes for b in SMALL.hard_negatives(a)]
    dance = dict(zip(SMALL.classes, dances(), strict=True))
    slots = {s for a, b in pairs for s, x, y in zip(SLOTS, dance[a], dance[b], strict=True) if x != y}
    assert slots == set(SLOTS)
    assert {name for a, b in pairs for name in SMALL.separating(a, b)[0]} == set(SMALL.attribute_names)


def test_a_clip_is_the_same_alone_and_in_any_batch():
    together = SMALL.batch("train", [5, 3, *range(20, 30)])
    for place, index in enumerate([5, 3]):
        single = SMALL.batch("train", [index])
        torch.testing.assert_close(single.clips[0], together.clips[place], rtol=0, atol=1e-6)
        assert single.labels[0] == together.labels[place]
    assert torch.equal(SMALL.batch("train", [5, 3, *range(20, 30)]).clips, together.clips)


def test_seeds_splits_and_indices_give_different_clips():
    clips = [SMALL.batch("train", [0, 1]).clips[0], SMALL.batch("train", [0, 1]).clips[1]]
    clips += [SMALL.batch("val", [0]).clips[0], World(size=64, seed=1).batch("train", [0]).clips[0]]
    for i, first in enumerate(clips):
        assert all((first - second).abs().mean() > 0.01 for second in clips[:i])


def test_a_scene_is_the_same_at_every_size():
    small, large = SMALL.scene("test", 7), World(size=112).scene("test", 7)
    assert small.label == large.label
    for attribute, box in small.boxes(64).items():
        np.testing.assert_allclose(box / 64, large.boxes(112)[attribute] / 112)


@pytest.mark.parametrize(("size", "frames"), [(64, 16), (112, 16), (33, 5)])
def test_batch_shapes_and_ranges(size, frames):
    batch = World(size=size, frames=frames).batch("val", range(3))
    assert batch.clips.shape == (3, 3, frames, size, size)
    assert batch.clips.dtype == torch.float32
    assert batch.clips.min() >= 0
    assert batch.clips.max() <= 1
    assert batch.labels.dtype == torch.int64
    assert torch.equal(batch.attributes, SMALL.table[batch.labels])
    for boxes, row in zip(batch.boxes, batch.attributes, strict=True):
        assert list(boxes) == [name for name, has in zip(SMALL.attribute_names, row, strict=True) if has]
        assert all(box.shape == (frames, 4) for box in boxes.values())


def test_empty_batch():
    batch = SMALL.batch("train", [])
    assert batch.clips.shape == (0, 3, 16, 64, 64)
    assert batch.attributes.shape == (0, len(SMALL.attribute_names))
    assert batch.boxes == []


def test_labels_come_in_shuffled_rounds():
    count = len(SMALL.classes)
    labels = np.array([SMALL.scene("train", index).label for index in range(3 * count)]).reshape(3, count)
    assert (np.sort(labels, 1) == np.arange(count)).all()
    assert (labels[0] != labels[1]).any()
    assert (labels[0] != np.arange(count)).any()


def test_boxes_are_tight():
    for index in EVERY_CLASS:
        scene = SMALL.scene("train", index)
        for attribute, boxes in scene.boxes(64).items():
            if SLOT_OF[attribute] in ("lead", "partner", "guest"):
                shown, bare = SMALL.render([alone(scene, SLOT_OF[attribute]), alone(scene, None)]).clips
                changed = ((shown - bare).abs().amax(0) > 0.04).numpy()
                for mask, box in zip(changed, boxes, strict=True):
                    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
                    seen = np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])
                    assert np.abs(seen - box).max() < 2, (attribute, seen, box)


def test_boxes_stay_in_the_frame_and_mostly_apart():
    meeting = []
    for index in range(240):
        boxes = SMALL.scene("train", index).boxes(1)
        for box in boxes.values():
            assert (box[:, :2] < box[:, 2:]).all()
            assert (box > 0).all(), "an entity touches the edge"
            assert (box < 1).all(), "an entity touches the edge"
        lead, partner = (next(b for name, b in boxes.items() if SLOT_OF[name] == e) for e in ("lead", "partner"))
        common = np.minimum(lead[:, 2:], partner[:, 2:]) - np.maximum(lead[:, :2], partner[:, :2])
        meeting.append((common > 0).all(1).mean())
    assert np.mean(meeting) < 0.15


def test_entities_are_of_a_size_that_can_be_recognised():
    for index in range(48):
        boxes = SMALL.scene("val", index).boxes(64)
        longest = [np.max(box[:, 2:] - box[:, :2]) for box in boxes.values()]
        assert min(longest) > 12
        assert max(longest) < 30


def test_colour_and_place_carry_no_class():
    world = World(size=32, frames=4)
    batch = world.batch("train", range(75 * len(EVERY_CLASS)))
    places = []
    for boxes in batch.boxes:
        first = [next(b for name, b in boxes.items() if SLOT_OF[name] == entity)[0] for entity in ("lead", "partner")]
        places.append(np.concatenate([(box[:2] + box[2:]) / 2 for box in first]))
    labels = batch.labels.numpy()
    features = np.concatenate([batch.clips.mean((2, 3, 4)).numpy(), np.array(places)], 1)
    chance = 1 / len(EVERY_CLASS)
    assert probe_accuracy(features, labels) < chance + 0.025
    leaking = np.concatenate([features, (labels % 2)[:, None]], 1)
    assert probe_accuracy(leaking, labels) > chance + 0.025, "the probe must be able to find a leak"


def test_nothing_looks_like_a_flat_box():
    frames = SMALL.batch("test", EVERY_CLASS).clips.transpose(1, 2).flatten(0, 1)
    assert flattest(frames, 8).min() > 0.02
    masked = frames.clone()
    masked[:, :, 20:30, 20:30] = 0.5
    assert flattest(masked, 8).max() == 0, "the measure must see a masked box"


@pytest.mark.parametrize("place", EVERY_CLASS)
def test_a_clip_danced_as_its_hard_negative_changes_inside_the_separating_boxes_only(place):
    name = SMALL.classes[place]
    for other in SMALL.hard_negatives(name):
        first, second = (SMALL.scene("test", place, danced_as=c) for c in (name, other))
        one, two = SMALL.render([first, second]).clips
        changed = ((one - two).abs().amax(0) > 1e-3).numpy()
        assert changed.any()
        inside = np.zeros_like(changed)
        for scene, attributes in zip((first, second), SMALL.separating(name, other), strict=True):
            for attribute in attributes:
                for t, (x1, y1, x2, y2) in enumerate(scene.boxes(64)[attribute]):
                    inside[t, max(int(y1) - 1, 0) : int(y2) + 2, max(int(x1) - 1, 0) : int(x2) + 2] = True
        assert not (changed & ~inside).any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SMALL.hard_negatives("walz"), "unknown class 'walz'. Did you mean 'waltz'?"),
        (lambda: SMALL.separating("waltz", "tngo"), "unknown class 'tngo'. Did you mean 'tango'?"),
        (lambda: SMALL.scene("dev", 0), "`split` must be one of 'train', 'val', 'test', got 'dev'"),
        (lambda: SMALL.scene("val", -1), "`index` must be an integer of at least 0, got -1"),
        (lambda: World(size=8), "`size` must be an integer of at least 32, got 8"),
    ],
)
def test_errors_say_what_was_expected(call, message):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.gpu
def test_the_device_draws_the_same_clips():
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    here, there = (SMALL.batch("train", range(12), device=device).clips.cpu() for device in ("cpu", "cuda"))
    torch.testing.assert_close(here, there, rtol=0, atol=2e-3)


def test_the_page_shows_the_wheel_as_it_is():
    page = (Path(__file__).parents[1] / "docs" / "world.md").read_text()
    for name, dance in zip(SMALL.classes, dances(), strict=True):
        assert f"| {name} | {' | '.join(value or '' for value in dance)} |" in page
