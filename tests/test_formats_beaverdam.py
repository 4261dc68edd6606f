"""BeaverDam.

The shape of the lists below is what its page sends and its server keeps (annotator/static/datasources.js of
antingshen/BeaverDam); what hides a box is read in annotator/static/annotation.js and player.js.
"""

import json

import pytest
from hypothesis import given, settings

from annotation_examples import annotations, as_json, example, facts, there_and_back
from whytube.data.formats import Annotations, Box, Mark, Track, beaverdam
from whytube.errors import ArgumentError, DataError


def key(frame, x=10, **more):
    return {"x": x, "y": 20, "w": 30, "h": 40.5, "frame": frame, "continueInterpolation": True, **more}


def thing(*keyframes, **more):
    return {"keyframes": list(keyframes), "type": "with ball", "color": "#f28a9d", "id": "#f28a9d", **more}


def read(*things, **known):
    return beaverdam.read(as_json(list(things)), facts(**known))[0]


def test_a_list_as_beaverdam_keeps_it():
    one = read(thing(key(0.48), key(0.1604, 50, state="standing"), key(0.96, continueInterpolation=False)))
    assert (one.video, one.size, one.frames, one.fps) == ("g01.avi", (240, 320), 40, 25.0)
    keys = {4: Box(50, 20, 80, 60.5), 12: Box(10, 20, 40, 60.5), 24: Box(10, 20, 40, 60.5, outside=True)}
    assert one.tracks == (Track("with ball", keys),)


def test_a_box_is_hidden_from_the_time_on_at_which_it_was_deleted():
    """BeaverDam puts the hiding key frame 0.02 s before the frame at which somebody pressed delete."""
    for fps in (10.0, 25.0, 30.0, 60.0):
        one = read(thing(key(0.0), key(30 / fps - 0.02, continueInterpolation=False)), fps=fps)
        hidden = max(one.tracks[0].keyframes)
        assert hidden == (29 if fps == 60.0 else 30)
        assert (hidden - 1) / fps < 30 / fps - 0.02 <= hidden / fps + 1e-9
    one = read(thing(key(0.4), key(0.4, continueInterpolation=False)))
    assert one.tracks[0].tube(40).frames.tolist() == [10], "a frame that was drawn stays"


def test_what_the_server_is_sent_and_what_it_exports():
    dense = {"frames": [{"frame": 0, "frameid": 0, "x": 1, "y": 1, "w": 1, "h": 1, "refid": 0}]}
    sent = {"annotation": [thing(key(0), **dense)], "metrics": {}, "hitId": None}
    (one,) = beaverdam.read(as_json(sent), facts())
    assert one == read(thing(key(0)))


def test_an_image_list_counts_frames():
    one = read(thing(key(0), key(7)), fps=None)
    assert list(one.tracks[0].keyframes) == [0, 7]


def test_things_that_are_nowhere_seen_are_left_out():
    assert read(thing(), thing(key(1, continueInterpolation=False))).tracks == ()


@settings(max_examples=60, deadline=None)
@given(annotations())
def test_there_and_back(one):
    """Exact: x + w is rounded to 1e-6 pixel, as every corner is, and seconds to the nearest frame."""
    assert there_and_back("beaverdam", one) == [one]


def test_what_beaverdam_needs_is_there():
    things = json.loads(beaverdam.write([example()]))
    assert len(things) == 3
    for made in things:
        assert {"keyframes", "type", "id"} <= made.keys()
        for row in made["keyframes"]:
            assert {"x", "y", "w", "h", "frame", "continueInterpolation"} <= row.keys()
    ball = next(made for made in things if made.get("annotator") == "ann")
    assert [row["frame"] for row in ball["keyframes"]] == [0.08, 0.32, 0.48, 0.8], "seconds, at 25 frames a second"
    assert [row["continueInterpolation"] for row in ball["keyframes"]] == [True, True, False, True]


def test_marks_without_a_box():
    one = Annotations("v.mp4", (48, 64), 20, None, (), (Mark("jumping"),))
    assert there_and_back("beaverdam", one) == [one]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'[{"keyframes": [', "cut off, or not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (as_json(7), "`the file` must be a list, got 7"),
        (as_json({"things": []}), "`annotation` must be a list, got nothing"),
        (as_json(["thing"]), "`[0]` must be an object, got 'thing'"),
        (as_json([{"type": "a"}]), "`[0].keyframes` must be a list, got nothing"),
        (as_json([thing(key("soon"))]), "`[0].keyframes[0].frame` must be a finite number, got 'soon'"),
        (as_json([thing(key(0, w=0))]), "`[0].keyframes[0]` must be a box with w and h above 0"),
        (as_json([thing(key(0, x=1e300))]), "`[0].keyframes[0].x` must be a finite number, got 1e+300"),
        (b'[{"type": "a", "keyframes": [{"x": NaN, "y": 0, "w": 1, "h": 1, "frame": 0}]}]', "finite number, got nan"),
        (as_json([thing(key(0, continueInterpolation=3))]), "continueInterpolation` must be true or false, got 3"),
        (as_json([thing(key(0), type=None)]), "`[0].type` must be text, got nothing"),
        (as_json([thing(key(99))]), "frames of the video, which has 40, got a track that starts at 2475"),
    ],
)
def test_damaged_files(data, message):
    with pytest.raises((DataError, ArgumentError)) as caught:
        beaverdam.read(data, facts())
    assert message in str(caught.value)


def test_it_must_be_known_which_video_it_is():
    with pytest.raises(DataError, match="the file does not say the name and the size and the number of frames"):
        beaverdam.read(as_json([thing(key(0))]))
