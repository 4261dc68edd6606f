import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation_examples import annotations, boxes, example
from whytube.data.formats import Annotations, Box, Mark, Track
from whytube.errors import ArgumentError
from whytube.tubes import Tube


def one_by_one(track, frame):
    """Follow the rule of the module's docstring for one frame."""
    keys = sorted(track.keyframes)
    before = [key for key in keys if key <= frame]
    after = [key for key in keys if key > frame]
    if not before or track.keyframes[before[-1]].outside:
        return [0.0, 0.0, 0.0, 0.0]
    start = track.keyframes[before[-1]].corners
    if not after:
        return list(start)
    share = (frame - before[-1]) / (after[0] - before[-1])
    return [a + (b - a) * share for a, b in zip(start, track.keyframes[after[0]].corners, strict=True)]


@settings(max_examples=60, deadline=None)
@given(annotations())
def test_boxes_follow_the_rule(one):
    for track in one.tracks:
        frames = list(range(one.frames + 3))
        expected = np.array([one_by_one(track, frame) for frame in frames])
        np.testing.assert_allclose(track.boxes(frames), expected, atol=1e-9)
        tube = track.tube(one.frames)
        np.testing.assert_array_equal(tube.frames, np.flatnonzero(expected[: one.frames].any(1)))


def test_between_key_frames():
    keys = {4: Box(0, 0, 10, 10), 8: Box(8, 4, 18, 14), 10: Box(12, 0, 20, 8, outside=True), 20: Box(1, 1, 2, 2)}
    track = Track("with ball", keys)
    found = track.boxes([3, 4, 6, 8, 9, 10, 19, 20, 99, 6])
    assert found.tolist() == [
        [0, 0, 0, 0],
        [0, 0, 10, 10],
        [4, 2, 14, 12],
        [8, 4, 18, 14],
        [10, 2, 19, 11],
        [0, 0, 0, 0],
        [0, 0, 0, 0],
        [1, 1, 2, 2],
        [1, 1, 2, 2],
        [4, 2, 14, 12],
    ]
    assert track.tube(22).frames.tolist() == [4, 5, 6, 7, 8, 9, 20, 21]
    assert track.spans(22) == [(4, 8, keys[4]), (8, 10, keys[8]), (20, 22, keys[20])]


def test_what_changes_nothing_is_left_out():
    box, hidden = Box(0, 0, 1, 1), Box(5, 5, 6, 6, outside=True, occluded=True)
    track = Track("a", {9: hidden, 0: hidden, 3: box, 4: hidden, 5: hidden})
    assert track.keyframes == {3: box, 4: box.hidden()}
    assert list(Track("a", {7: box, 2: box}).keyframes) == [2, 7]
    assert Track("a", {3: box, 5: hidden}).keyframes[5] == Box(5, 5, 6, 6, outside=True), "where it moved to"


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.integers(0, 30), boxes(), min_size=1, max_size=6), st.integers(1, 30))
def test_cut_changes_nothing_that_is_seen(keys, count):
    first = min(keys)
    keys[first] = Box(*keys[first].corners)
    track = Track("a", keys)
    if first >= count:
        with pytest.raises(ArgumentError, match=f"which has {count}, got a track that starts at {first}"):
            track.cut(count)
        return
    cut = track.cut(count)
    assert max(cut.keyframes) < count
    np.testing.assert_allclose(cut.boxes(range(count)), track.boxes(range(count)), atol=1e-5)
    assert Annotations("v", (9, 9), count, None, (track,)).tracks == (cut,)


def test_seen_at_given_frames_alone():
    tube = Tube([0, 1, 5], [[0, 0, 2, 2], [1, 0, 3, 2], [9, 9, 10, 10]])
    track = Track.from_tube("a", tube, "ann")
    assert track.annotator == "ann"
    back = track.tube(8)
    assert back.frames.tolist() == [0, 1, 5]
    np.testing.assert_array_equal(back.boxes, tube.boxes)
    empty = Tube([0, 1], [[0, 0, 2, 2], [1, 1, 1, 1]])
    assert Track.from_tube("a", empty).tube(8).frames.tolist() == [0], "a box without area is none"


def test_corners_are_rounded_once():
    box = Box(0.1 + 0.2, -0.0, 1 / 3 + 7, 2)
    assert box.corners == (0.3, 0.0, 7.333333, 2.0)
    assert math.copysign(1, box.y1) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Box(1, 1, 1, 2), "`box` must be x1,y1,x2,y2 with x1 < x2 and y1 < y2, got 1,1,1,2"),
        (lambda: Box(math.nan, 1, 2, 2), "`x1` must be a finite number, got nan"),
        (lambda: Box(0, 1, 2e6, 2), "`x2` must be from -1000000 to 1000000 pixels, got 2e+06"),
        (lambda: Box(0, 0, 1, 1, outside=1), "`outside` must be True or False, got 1"),
        (lambda: Track("a", {}), "`keyframes` must be frames with their boxes, at least one, got {}"),
        (lambda: Track("a", {0: (0, 0, 1, 1)}), "`keyframes[0]` must be a Box, got (0, 0, 1, 1)"),
        (lambda: Track("a", {-1: Box(0, 0, 1, 1)}), "`keyframes` must be an integer from 0 to 2147483647, got -1"),
        (lambda: Track("a", {0: Box(0, 0, 1, 1, outside=True)}), "at least one not outside, got 1 outside"),
        (lambda: Track("a ", {0: Box(0, 0, 1, 1)}), "without blanks around it, got 'a '"),
        (lambda: Track("", {0: Box(0, 0, 1, 1)}), "`attribute` must be text of at most 255 printable letters"),
        (lambda: Mark("a\nb"), "`attribute` must be text of at most 255 printable letters"),
        (lambda: Mark("a", annotator=3), "`annotator` must be text, got 3"),
        (lambda: Annotations("v", (0, 5), 3), "`size[0]` must be an integer of at least 1, got 0"),
        (lambda: Annotations("v", (5, 5), 0), "`frames` must be an integer from 1 to 2147483647, got 0"),
        (lambda: Annotations("v", (5, 5), 1, 0.0), "`fps` must be from 0.001 to 1000000 frames per second"),
        (lambda: Annotations("v", (5, 5), 1, None, (3,)), "`tracks` must be a list of Track, got (3,)"),
        (lambda: Annotations("v", (5, 5), 1, None, (), (Mark("a"), Mark("a", False))), "got 2 of 'a' by ''"),
    ],
)
def test_what_is_wrong_is_said(make, message):
    with pytest.raises(ArgumentError) as caught:
        make()
    assert message in str(caught.value)


def test_order_does_not_matter():
    one = example()
    turned = Annotations(one.video, one.size, one.frames, one.fps, one.tracks[::-1], one.marks[::-1])
    assert turned == one
    assert one.annotators == ("", "ann", "bob")
    assert one.of("bob").tracks == (one.tracks[2],)
    assert one.of("bob").marks == (Mark("on water", False, "bob"),)


def test_who_draws_says_it_is_there():
    box = {0: Box(0, 0, 1, 1)}
    tracks = (Track("a", box, "ann"), Track("b", box, "ann"), Track("c", box, "ann"))
    marks = (Mark("a", False, "bob"), Mark("b", False, "ann"), Mark("c", False, "bob"), Mark("c", False, "eve"))
    assert Annotations("v", (9, 9), 1, None, tracks, (*marks, Mark("d"))).present == {
        "a": True,  # one each
        "b": False,  # their own mark counts
        "c": False,  # two against one
        "d": True,
    }


def test_one_tube_per_attribute():
    """Around all things of an annotator, then the mean over annotators."""
    mine = (Track("a", {0: Box(0, 0, 2, 2)}, "ann"), Track("a", {2: Box(4, 4, 6, 6)}, "ann"))
    theirs = Track.from_boxes("a", {3: Box(2, 2, 8, 8)}, "bob")
    never = Track("b", {1: Box(0, 0, 1, 1)}, "bob")
    tubes = Annotations("v", (9, 9), 5, None, (*mine, theirs, never)).tubes()
    assert tubes["a"].frames.tolist() == [0, 1, 2, 3, 4]
    assert tubes["a"].boxes.tolist() == [[0, 0, 2, 2], [0, 0, 2, 2], [0, 0, 6, 6], [1, 1, 7, 7], [0, 0, 6, 6]]
    assert tubes["b"].frames.tolist() == [1, 2, 3, 4]
