import numpy as np
import pytest
import torch

from whytube.training.augment import (
    crop_randomly,
    erase_randomly,
    flip_randomly,
    framed,
    framed_boxes,
    hasten_randomly,
    light_randomly,
    sided_names,
)

AREA = (0.02, 0.25)


@pytest.fixture
def clips():
    return torch.rand(40, 3, 8, 32, 24, generator=torch.Generator().manual_seed(0))


def changed(before, after):
    """Where any channel differs: (B, T, H, W)."""
    return (before != after).any(1)


def test_what_is_erased_is_a_box_per_frame_of_the_wanted_area(clips):
    erased = erase_randomly(clips, probability=1.0, area=AREA, rng=np.random.default_rng(0))
    places = changed(clips, erased)
    for clip in places:
        frames = [t for t in range(8) if clip[t].any()]
        assert frames == list(range(frames[0], frames[-1] + 1)), "a tube has no holes in time"
        for t in frames:
            rows, columns = clip[t].any(1).nonzero(), clip[t].any(0).nonzero()
            box = clip[t, rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
            assert box.all()
            assert 0.01 < box.numel() / (32 * 24) < 0.3
    assert erased.min() >= 0
    assert erased.max() <= 1


def test_spans_and_fills_vary(clips):
    erased = erase_randomly(clips, probability=1.0, area=AREA, rng=np.random.default_rng(0))
    lasting = changed(clips, erased).flatten(2).any(2).sum(1)
    assert len(lasting.unique()) > 2
    black = (erased.amax(1) == 0).flatten(1).any(1)
    assert black.sum() == 10, "a quarter of the clips is filled with zero"


def test_probability(clips):
    some = erase_randomly(clips, probability=0.5, area=AREA, rng=np.random.default_rng(1))
    touched = changed(clips, some).flatten(1).any(1).sum()
    assert 10 < touched < 30
    none = erase_randomly(clips, probability=0.0, area=AREA, rng=np.random.default_rng(1))
    assert none is clips


def test_the_source_clips_stay_and_the_seed_decides(clips):
    before = clips.clone()
    first, again, other = (
        erase_randomly(clips, probability=1.0, area=AREA, rng=np.random.default_rng(seed)) for seed in (3, 3, 4)
    )
    assert torch.equal(clips, before)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_whole_frame_may_go(clips):
    erased = erase_randomly(clips[:4], probability=1.0, area=(1.0, 1.0), rng=np.random.default_rng(0))
    assert erased.shape == clips[:4].shape


def test_flips(clips):
    flipped = flip_randomly(clips, probability=0.5, rng=np.random.default_rng(0))
    same = (flipped == clips).flatten(1).all(1)
    mirrored = (flipped == clips.flip(-1)).flatten(1).all(1)
    assert (same ^ mirrored).all()
    assert 5 < mirrored.sum() < 35


def test_names_with_a_side():
    names = ["Turn left", "one_hand_right", "upright", "righteous", "spinning counter-clockwise", "leftward step"]
    assert sided_names(names) == ("Turn left", "one_hand_right", "spinning counter-clockwise", "leftward step")


def test_the_world_has_no_sides():
    from whytube.data.world import World

    world = World(size=32)
    assert sided_names((*world.classes, *world.attribute_names)) == ()


def test_a_crop_is_a_part_of_the_frame_at_its_size():
    ramp = torch.linspace(0, 1, 24).expand(50, 3, 4, 32, 24)  # x itself, so that values say where pixels came from
    cropped = crop_randomly(ramp, area=0.25, rng=np.random.default_rng(0))
    assert cropped.shape == ramp.shape
    reach = (cropped[..., -1] - cropped[..., 0])[:, 0, 0, 0]
    assert reach.min() > 0.4, "half of the width at least, but for the change of shape"
    assert reach.max() <= 1
    assert reach.std() > 0.05
    assert torch.equal(cropped[:, :, 0], cropped[:, :, 3]), "all frames are cut alike"
    whole = crop_randomly(ramp, area=1.0, rng=np.random.default_rng(0))
    assert ((whole[..., -1] - whole[..., 0]) > 0.85).all()


def test_a_stretch_of_time_is_in_order_and_long_enough():
    frames = torch.arange(16.0).view(1, 1, 16, 1, 1).expand(60, 3, 16, 2, 2)
    shown = hasten_randomly(frames, span=0.5, rng=np.random.default_rng(0))[:, 0, :, 0, 0]
    steps = shown.diff(dim=1)
    assert ((steps == 0) | (steps == 1)).all()
    reach = shown[:, -1] - shown[:, 0]
    assert reach.min() >= 7
    assert len(reach.unique()) > 4
    assert torch.equal(hasten_randomly(frames, span=1.0, rng=np.random.default_rng(0)), frames)


def test_light_stays_within_its_strength(clips):
    lit = light_randomly(clips, strength=0.3, rng=np.random.default_rng(0))
    ratio = lit.mean((1, 2, 3, 4)) / clips.mean((1, 2, 3, 4))
    assert ratio.min() > 0.65
    assert ratio.max() < 1.35
    assert ratio.std() > 0.05
    torch.testing.assert_close(light_randomly(clips, strength=0.0, rng=np.random.default_rng(0)), clips)


@pytest.mark.parametrize(
    ("side", "middle"),
    [((1.0, 1.0), (0.0, 0.0)), ((-1.0, 1.0), (0.0, 0.0)), ((0.5, 0.75), (0.25, -0.25)), ((-0.5, 0.75), (0.25, 0.25))],
)
def test_boxes_go_where_their_pixels_go(side, middle):
    """A white box on black stays inside of where its corners went, whatever part is kept, mirrored or not."""
    clip, box = torch.zeros(1, 3, 2, 64, 48), torch.tensor([20.0, 24.0, 28.0, 40.0])
    clip[..., 24:40, 20:28] = 1
    sides, middles = np.array([side]), np.array([middle])
    shown = framed(clip, sides, middles)[0, 0, 0]
    x1, y1, x2, y2 = framed_boxes(box, sides[0], middles[0], size=(64, 48)).tolist()
    rows, columns = (shown > 0.5).any(1).nonzero(), (shown > 0.5).any(0).nonzero()
    found = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    assert [x1, y1, x2, y2] == pytest.approx([int(edge) for edge in found], abs=1.01)
    assert (x2 - x1) * (y2 - y1) == pytest.approx(8 * 16 / abs(np.prod(side)), rel=1e-5)


def test_a_box_that_is_hardly_seen_is_none():
    boxes = torch.tensor(
        [[0.0, 0.0, 10.0, 10.0], [22.0, 0.0, 30.0, 10.0], [18.0, 0.0, 28.0, 10.0], [0.0, 0.0, 0.0, 0.0]]
    )
    right_half = framed_boxes(boxes, np.array([0.5, 1.0]), np.array([0.5, 0.0]), size=(20, 40))
    expected = torch.tensor([[0.0, 0, 0, 0], [4, 0, 20, 10], [0, 0, 16, 10], [0, 0, 0, 0]])
    torch.testing.assert_close(right_half, expected, rtol=0, atol=1e-5)
