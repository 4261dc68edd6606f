"""Label Studio.

The shape of the tasks below is that of its documentation (the JSON of annotated tasks, and the tag VideoRectangle) and
of what its own code reads and writes: postprocessing/video.py of label-studio-tools with its tests, the video tracker
of label-studio-ml-backend, and `isInLifespan` of its editor with its tests.
"""

import json

import pytest
from hypothesis import given, settings

from annotation_examples import annotations, as_json, example, facts, there_and_back
from whytube.data.formats import Box, Mark, Track, label_studio
from whytube.errors import ArgumentError, DataError


def key(frame, x=10.0, **more):
    """Make a key frame; x in per cent."""
    place = {"x": x, "y": 25, "width": 20, "height": 25, "rotation": 0}
    return {"frame": frame, "enabled": True, **place, "time": frame / 25, **more}


def region(*sequence, labels=("with ball",), **value):
    value = {"framesCount": 40, "duration": 1.6, "sequence": list(sequence), "labels": list(labels), **value}
    names = {"id": "tJhYZLMC9G", "from_name": "box", "to_name": "video", "type": "videorectangle"}
    return {"original_length": 1.6, "value": value, **names, "origin": "manual"}


def task(*result, **annotation):
    made = {"id": 1001, "completed_by": 10, "result": list(result), "was_cancelled": False, "ground_truth": False}
    return {
        "id": 1,
        "annotations": [{**made, "lead_time": 4.288, "task": 1, **annotation}],
        "predictions": [],
        "data": {"video": "/data/upload/3/1a2b3c4d-g01.avi"},
        "meta": {},
        "project": 83,
    }


def read(*result, known=None, **annotation):
    return label_studio.read(as_json([task(*result, **annotation)]), known or facts())[0]


def test_an_export_as_label_studio_writes_it():
    asked = []

    def describe(name):
        asked.append(name)
        return facts()(name)

    one = read(region(key(1), key(5, 20, enabled=False), key(11)), known=describe)
    assert asked == ["1a2b3c4d-g01.avi"]
    assert (one.video, one.size, one.frames, one.fps) == ("g01.avi", (240, 320), 40, 25.0)
    there = Box(64, 60, 128, 120)
    keys = {0: Box(32, 60, 96, 120), 4: there, 5: there.hidden(), 10: Box(32, 60, 96, 120)}
    assert one.tracks == (Track("with ball", keys, "10"),)
    assert one.tracks[0].tube(12).frames.tolist() == [0, 1, 2, 3, 4, 10, 11], "a disabled key frame is still shown"


def test_interpolated_frames_of_an_export_are_no_key_frames():
    """`auto` marks what label-studio-tools put between key frames."""
    plain = read(region(key(1), key(5, enabled=False)))
    assert read(region(key(1), key(2, auto=True), key(3, auto=True), key(4, auto=True), key(5, enabled=False))) == plain


def test_a_project_with_another_frame_rate():
    """Label Studio counts frames at the rate of its project, 24 by default: 4 s are 96 of those, 100 of the video."""
    sequence = [key(1), key(25), key(37, enabled=False)]
    one = read(region(*sequence, framesCount=96, duration=4.0), known=facts(frames=100))
    assert list(one.tracks[0].keyframes) == [0, 25, 38, 39], "24 of theirs are 25 of ours"
    same = read(region(*sequence, framesCount=40, duration=1.7), known=facts(fps=29.97))
    assert list(same.tracks[0].keyframes) == [0, 24, 36, 37], "as many frames as the video has: they are its own"


def test_annotators_and_what_they_skipped():
    assert read(region(key(1)), completed_by={"id": 3, "email": "ann@localhost"}).annotators == ("ann@localhost",)
    assert read(region(key(1)), completed_by={"id": 3}).annotators == ("3",)
    assert read(region(key(1)), completed_by=None).annotators == ("",)
    assert read(region(key(1)), was_cancelled=True).tracks == ()


def test_labels_and_choices():
    one = read(region(key(1), labels=["with ball", "jumping"]))
    assert [track.attribute for track in one.tracks] == ["jumping", "with ball"]
    names = {"to_name": "video", "type": "choices"}
    chosen = [
        {"value": {"choices": ["jumping"]}, "from_name": "present", **names},
        {"value": {"choices": ["on water"]}, "from_name": "absent", **names},
        {"value": {"choices": ["good"]}, "from_name": "quality", **names},
        {"value": {"ranges": []}, "type": "timelinelabels"},
    ]
    assert read(*chosen).marks == (Mark("jumping", True, "10"), Mark("on water", False, "10"))


def test_a_single_task():
    assert label_studio.read(as_json(task(region(key(1)))), facts()) == [read(region(key(1)))]


@settings(max_examples=60, deadline=None)
@given(annotations())
def test_there_and_back(one):
    """Exact: per cent times the side is rounded to 1e-6 pixel, as every corner is."""
    assert there_and_back("label-studio", one) == [one]


def test_what_label_studio_needs_is_there():
    (made,) = json.loads(label_studio.write([example()]))
    assert made["data"]["video"] == "videos/Dunk/g01.avi"
    regions = [part for annotation in made["annotations"] for part in annotation["result"]]
    assert {part["type"] for part in regions} == {"videorectangle", "choices"}
    for part in regions:
        assert {"id", "from_name", "to_name", "type", "value"} <= part.keys()
    ball = next(part for part in made["annotations"][1]["result"] if part["type"] == "videorectangle")["value"]
    assert {"framesCount", "duration", "sequence", "labels"} == ball.keys()
    assert [(row["frame"], row["enabled"]) for row in ball["sequence"]] == [
        (3, True),
        (9, True),
        (12, False),
        (21, True),
    ]
    assert ball["sequence"][0]["x"] == pytest.approx(100 * 10 / 320)
    assert ball["sequence"][0]["height"] == pytest.approx(100 * 24.25 / 240)
    assert ball["sequence"][2]["x"] == pytest.approx(100 * 19 / 320), "on its way to where it is hidden"


def test_edited_in_label_studio():
    """What the tool changes is read, also where whytube wrote the file."""
    (made,) = json.loads(label_studio.write([example()]))
    (board,) = made["annotations"][0]["result"]
    board["value"]["sequence"].append(key(31, 50, enabled=False))
    (one,) = label_studio.read(as_json([made]))
    changed = next(track for track in one.tracks if not track.annotator)
    assert list(changed.keyframes) == [0, 30, 31]
    assert changed.keyframes[30].corners == (160, 60, 224, 120)
    assert [track for track in one.tracks if track.annotator] == [t for t in example().tracks if t.annotator]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[", "cut off, or not JSON"),
        (as_json(["task"]), "`[0]` must be an object, got 'task'"),
        (as_json([{"data": {"video": "v.mp4"}}]), "`[0].annotations` must be a list, got nothing"),
        (as_json([task(region(key(0)))]), "sequence[0].frame` must be an integer of at least 1, got 0"),
        (as_json([task(region(key(1.5)))]), "sequence[0].frame` must be an integer of at least 1, got 1.5"),
        (as_json([task(region(key(1, width=0)))]), "sequence[0]` must be a box with width and height above 0"),
        (as_json([task(region(key(1, rotation=30)))]), "rotation` must be 0: boxes are upright here, got 30"),
        (as_json([task(region(key(1), labels=[]))]), "`[0].annotations[0].result[0]` must be a region with a label"),
        (as_json([task(region(key(1), labels=[3]))]), "result[0].value.labels[0]` must be text, got 3"),
        (as_json([task(region(key(1)), completed_by=[1])]), "completed_by` must be an id or an address, got [1]"),
        (as_json([task(region(key(99)))]), "which has 40, got a track that starts at 98"),
    ],
)
def test_damaged_files(data, message):
    with pytest.raises((DataError, ArgumentError)) as caught:
        label_studio.read(data, facts())
    assert message in str(caught.value)


def test_per_cent_need_a_size():
    with pytest.raises(
        DataError, match=r"does not say the size and the number of frames of the video '1a2b3c4d-g01.avi'"
    ):
        label_studio.read(as_json([task(region(key(1)))]))
