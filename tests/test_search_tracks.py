"""Tracks: random ones and changed ones stay in the frame, within the area, and are never empty."""

import numpy as np
import pytest

from whytube.search.tracks import SIDE, SMALLEST, Tracks, changed, joined, random_tracks, tracks_of

FRAMES, SIZE = 8, (24, 32)


def drawn(seed=0, count=200, frames=FRAMES, area=0.1):
    return random_tracks(np.random.default_rng(seed), count, frames=frames, area=area)


def volumes(tracks):
    """Share of the clip's volume that each tube covers, of its boxes in pixels."""
    boxes = tracks.tubes(SIZE).astype(float)
    return (boxes[..., 2:] - boxes[..., :2]).prod(-1).sum(1) / (tracks.boxes.shape[1] * SIZE[0] * SIZE[1])


def check(tracks, area):
    assert (tracks.boxes >= -1e-9).all()
    assert (tracks.boxes <= 1 + 1e-9).all()
    assert (tracks.boxes[..., 2:] > tracks.boxes[..., :2]).all(), "also outside the span"
    assert (tracks.start >= 0).all()
    assert (tracks.stop > tracks.start).all()
    assert (tracks.stop <= tracks.boxes.shape[1]).all()
    assert (volumes(tracks) <= area + 1e-6).all()


@pytest.mark.parametrize("area", [0.01, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("frames", [1, 2, 8, 16])
def test_random_tracks_stay_in_the_frame_and_within_the_area(area, frames):
    tracks = drawn(frames=frames, area=area)
    assert len(tracks) == 200
    check(tracks, area)


def test_random_tracks_differ_in_place_size_span_and_shape():
    tracks = drawn()
    found = volumes(tracks)
    assert found.min() >= SMALLEST * 0.1 * 0.7
    assert found.max() > 0.09
    assert set(tracks.stop - tracks.start) == set(range(FRAMES // 4, FRAMES + 1))
    sides = tracks.boxes[:, 0, 2:] - tracks.boxes[:, 0, :2]
    assert (sides[:, 0] > sides[:, 1]).any()
    assert (sides[:, 0] < sides[:, 1]).any()
    assert (tracks.boxes[:, 0] != tracks.boxes[:, -1]).any(1).mean() > 0.9, "they move"


@pytest.mark.parametrize("area", [0.01, 0.1, 1.0])
def test_changed_tracks_stay_in_the_frame_and_within_the_area(area):
    rng, tracks = np.random.default_rng(1), drawn(area=area)
    for _ in range(20):
        tracks = changed(tracks, rng, area=area)
        check(tracks, area)


def test_every_track_is_changed_in_some_way():
    tracks = drawn()
    other = changed(tracks, np.random.default_rng(2), area=1.0)
    moved = (np.abs(other.boxes - tracks.boxes) > 1e-9).any((1, 2))
    span = (other.start != tracks.start) | (other.stop != tracks.stop)
    assert (moved | span).mean() > 0.9, "a change of the span may be none"
    assert 0.2 < span.mean() < 0.8
    sides, others = (t.boxes[..., 2:] - t.boxes[..., :2] for t in (tracks, other))
    kept = np.isclose(sides, others).all((1, 2))
    assert 0.2 < kept.mean() < 0.8, "some are resized, others not"


def test_the_generator_alone_decides():
    assert np.array_equal(drawn(3).boxes, drawn(3).boxes)
    assert not np.array_equal(drawn(3).boxes, drawn(4).boxes)
    first, again = (changed(drawn(3), np.random.default_rng(5), area=0.1) for _ in range(2))
    assert np.array_equal(first.boxes, again.boxes)
    assert np.array_equal(first.start, again.start)


def test_tubes_become_tracks_and_tubes_again():
    tracks = drawn()
    tubes = tracks.tubes(SIZE)
    assert tubes.shape == (200, FRAMES, 4)
    there = tubes[..., 2] > tubes[..., 0]
    assert np.array_equal(there.sum(1), tracks.stop - tracks.start)
    assert not tubes[~there].any()
    back = tracks_of(tubes, SIZE)
    assert np.array_equal(back.start, tracks.start)
    assert np.array_equal(back.stop, tracks.stop)
    np.testing.assert_allclose(back.tubes(SIZE), tubes, atol=1e-4)


def test_outside_its_span_a_track_stays_where_it_was():
    tube = np.zeros((1, 4, 4), np.float32)
    tube[0, 1], tube[0, 2] = [4, 6, 8, 12], [8, 6, 12, 12]
    track = tracks_of(tube, SIZE)
    assert (track.start[0], track.stop[0]) == (1, 3)
    np.testing.assert_allclose(track.boxes[0, 0], np.array([4, 6, 8, 12]) / [32, 24, 32, 24])
    np.testing.assert_allclose(track.boxes[0, 3], np.array([8, 6, 12, 12]) / [32, 24, 32, 24])


def test_a_tube_that_is_too_large_shrinks_about_its_centre():
    boxes = np.tile([0.2, 0.2, 0.8, 0.6], (1, 4, 1))
    large = Tracks(boxes, np.array([0]), np.array([4]))
    small = large.within(0.06)
    assert volumes(small)[0] == pytest.approx(0.06)
    np.testing.assert_allclose((small.boxes[..., :2] + small.boxes[..., 2:]) / 2, np.tile([0.5, 0.4], (1, 4, 1)))
    sides = small.boxes[0, 0, 2:] - small.boxes[0, 0, :2]
    assert sides[0] / sides[1] == pytest.approx(1.5), "its shape stays"
    short = Tracks(boxes, np.array([1]), np.array([2])).within(0.06)
    np.testing.assert_allclose(short.boxes, boxes, err_msg="a short one may be larger")
    np.testing.assert_allclose(large.within(0.5).boxes, boxes)


def test_small_boxes_do_not_vanish():
    tracks, rng = drawn(count=50, area=1.0), np.random.default_rng(0)
    tracks = Tracks(np.tile([0.5, 0.5, 0.5 + SIDE, 0.5 + SIDE], (50, FRAMES, 1)), tracks.start, tracks.stop)
    for _ in range(10):
        tracks = changed(tracks, rng, area=1.0)
    assert ((tracks.boxes[..., 2:] - tracks.boxes[..., :2]) >= SIDE - 1e-9).all()


def test_parts_are_put_together_and_taken_apart():
    first, second = drawn(0, 3), drawn(1, 2)
    both = joined([first, second])
    assert len(both) == 5
    assert np.array_equal(both[3:].boxes, second.boxes)
    assert np.array_equal(both[np.array([4, 0])].start, [second.start[1], first.start[0]])


def test_changes_are_as_large_as_they_are_said_to_be():
    """Moves and bends of a twelfth of the frame, sides by a factor of e to the 0.3, spans by a quarter of the clip."""
    count, frames = 4000, 9
    boxes = np.tile([0.4, 0.45, 0.6, 0.55], (count, frames, 1))
    still = Tracks(boxes, np.full(count, 2), np.full(count, 7))
    other = changed(still, np.random.default_rng(0), area=1.0)
    centres = (other.boxes[..., :2] + other.boxes[..., 2:]) / 2
    move = centres[:, frames // 2] - [0.5, 0.5]
    bend = centres - centres[:, frames // 2, None]
    inside = (np.abs(centres - 0.5) < 0.3).all((1, 2))  # not pushed back by the border
    assert inside.mean() > 0.8
    np.testing.assert_allclose(bend[inside], bend[inside, -1:] * np.linspace(-1, 1, frames)[:, None], atol=1e-9)
    grown = np.log((other.boxes[:, 0, 2:] - other.boxes[:, 0, :2]) / [0.2, 0.1])
    shift = np.stack([other.start - 2, other.stop - 7], 1)
    for change, deviation in ((move, 1 / 12), (bend[:, -1], 1 / 12), (grown, 0.3)):
        done = (np.abs(change) > 1e-9).all(1)
        assert 0.45 < done.mean() < 0.55, "a track is changed in two of four ways on average"
        np.testing.assert_allclose(change[done].std(0), deviation, rtol=0.1)
        np.testing.assert_allclose(change[done].mean(0), 0, atol=deviation / 10)
    for end in range(2):
        assert set(shift[:, end]) == {-2, -1, 0, 1, 2}
    assert abs(np.corrcoef(shift[shift.any(1)].T)[0, 1]) < 0.1, "the first and the last frame change on their own"
    ways = sum((np.abs(change) > 1e-9).any(1).astype(int) for change in (move, bend[:, -1], grown, shift))
    assert ways.max() == 3


def test_a_span_never_leaves_the_clip():
    edge = Tracks(np.tile([0.4, 0.4, 0.6, 0.6], (500, 8, 1)), np.full(500, 7), np.full(500, 8))
    other = changed(edge, np.random.default_rng(0), area=1.0)
    assert other.start.min() == 5
    assert (other.start.max(), other.stop.max()) == (7, 8)
    assert (other.stop > other.start).all()
    front = changed(Tracks(edge.boxes, np.zeros(500, int), np.ones(500, int)), np.random.default_rng(0), area=1.0)
    assert (front.start.min(), front.stop.min(), front.stop.max()) == (0, 1, 3)


def test_random_tracks_go_straight_and_not_far():
    tracks = drawn(count=4000, frames=9, area=0.02)
    centres = (tracks.boxes[..., :2] + tracks.boxes[..., 2:]) / 2
    away = centres - centres[:, 4, None]
    free = ((tracks.boxes > 0.01) & (tracks.boxes < 0.99)).all((1, 2))
    np.testing.assert_allclose(away[free], away[free, -1:] * np.linspace(-1, 1, 9)[:, None], atol=1e-9)
    np.testing.assert_allclose((centres[free, -1] - centres[free, 0]).std(0), 1 / 12, rtol=0.15)
    sides = tracks.boxes[:, 0, 2:] - tracks.boxes[:, 0, :2]
    wide = np.log(sides[:, 0] / sides[:, 1])
    assert wide.mean() == pytest.approx(0, abs=0.05)
    assert wide.std() == pytest.approx(2 * 0.3, rel=0.15)
    starts = tracks.start[(tracks.stop - tracks.start) == 5]
    assert set(starts) == set(range(5)), "anywhere in the clip"


def test_tubes_are_in_pixels_of_width_and_height():
    track = Tracks(np.tile([0.25, 0.5, 0.75, 1.0], (1, 3, 1)), np.array([1]), np.array([2]))
    assert track.tubes(SIZE)[0].tolist() == [[0] * 4, [8, 12, 24, 24], [0] * 4]
