"""COCO for videos.

The shape of the files below is that of the TAO data set (docs/TAO-format.txt of TrackEval), of COCO itself
(cocodataset.org, data format), and of what CVAT exports as COCO, which has frames in names and tracks in attributes.
"""

import json

import pytest
from hypothesis import given, settings

from annotation_examples import annotations, as_json, example, facts, there_and_back
from whytube.data.formats import Annotations, Box, Track, coco
from whytube.errors import ArgumentError, DataError


def file(boxes, **parts):
    """TAO's parts; boxes: (image, track, x)."""
    images = [
        {"id": 100 + n, "video_id": 5, "frame_index": n, "file_name": f"g01/{n:04d}.jpg", "width": 320, "height": 240}
        for n in range(12)
    ]
    rows = [
        {
            "id": number,
            "image_id": 100 + frame,
            "track_id": track,
            "category_id": 7,
            "bbox": [x, 20, 30, 40.5],
            "area": 1215,
            "iscrowd": 0,
        }
        for number, (frame, track, x) in enumerate(boxes)
    ]
    video = {"id": 5, "name": "g01.avi", "width": 320, "height": 240, "neg_category_ids": [], "metadata": {}}
    return {
        "info": {"year": 2026},
        "videos": [video],
        "images": images,
        "tracks": [{"id": 1, "category_id": 7, "video_id": 5}, {"id": 2, "category_id": 7, "video_id": 5}],
        "annotations": rows,
        "categories": [{"id": 7, "name": "with ball", "synset": "ball.n.01"}],
        "licenses": [],
        **parts,
    }


def read(data, describe=None):
    return coco.read(as_json(data), describe or facts())


def box(x):
    return Box(x, 20, x + 30, 60.5)


def test_a_file_as_tao_has_it():
    (one,) = read(file([(0, 1, 10), (1, 1, 12), (4, 1, 50), (4, 2, 100)]))
    assert (one.video, one.size, one.frames, one.fps) == ("g01.avi", (240, 320), 40, 25.0)
    keys = {0: box(10), 1: box(12), 2: box(12).hidden(), 4: box(50), 5: box(50).hidden()}
    assert one.tracks == (Track("with ball", keys), Track("with ball", {4: box(100), 5: box(100).hidden()}))


def test_a_file_as_cvat_exports_it():
    """No videos, frames in file names, tracks and key frames in attributes."""
    data = file([(0, 1, 10), (1, 1, 12), (2, 1, 14), (3, 1, 20)])
    del data["videos"], data["tracks"]
    for image in data["images"]:
        frame = image.pop("frame_index")
        del image["video_id"]
        image["file_name"] = f"frame_{frame:06d}.PNG"
    for row, keyframe in zip(data["annotations"], (True, False, False, True), strict=True):
        row["attributes"] = {"occluded": False, "rotation": 0.0, "track_id": row.pop("track_id"), "keyframe": keyframe}
    asked = []
    (one,) = read(data, lambda name: asked.append(name) or facts()(name))
    assert asked == [""]
    moved = {0: box(10), 1: box(12), 2: box(14), 3: box(20)}  # 10, 12, 14 are not on the way from 10 to 20
    assert one.tracks[0].keyframes == {**moved, 4: box(20).hidden()}
    data["annotations"][3]["bbox"][0] = 16
    assert read(data)[0].tracks[0].keyframes == {0: box(10), 3: box(16), 4: box(16).hidden()}


def test_hidden_boxes_and_annotators_of_datumaro():
    data = file([(0, 1, 10), (1, 1, 12), (2, 1, 14), (3, 1, 16)])
    del data["tracks"]
    for row in data["annotations"]:
        frame = row["id"]
        flags = {"keyframe": frame in (0, 3), "outside": frame == 3, "occluded": False}
        row["attributes"] = {"annotator": "ann", **flags, "track_id": row.pop("track_id")}
    (one,) = read(data)
    hidden = Box(*box(16).corners, outside=True)
    assert one.tracks == (Track("with ball", {0: box(10), 3: hidden}, "ann"),)
    assert one.tracks[0].tube(40).frames.tolist() == [0, 1, 2]


def test_plain_boxes_are_a_track_each():
    data = file([(0, 1, 10), (1, 1, 12), (1, 1, 90)])
    for row in data["annotations"]:
        del row["track_id"]
    (one,) = read(data)
    assert [list(track.keyframes) for track in one.tracks] == [[0, 1], [1, 2], [1, 2]]


def test_tracks_may_be_numbered_for_each_category():
    data = file([(0, 1, 10), (0, 1, 50)])
    data["categories"].append({"id": 8, "name": "jumping"})
    data["annotations"][1]["category_id"] = 8
    assert sorted(track.attribute for track in read(data)[0].tracks) == ["jumping", "with ball"]


@settings(max_examples=60, deadline=None)
@given(annotations())
def test_there_and_back(one):
    """Exact: x + width is rounded to 1e-6 pixel, as every corner is."""
    assert there_and_back("coco", one) == [one]


def test_several_videos():
    other = Annotations("b.mp4", (48, 64), 3, None, (Track("jumping", {1: Box(1, 2, 3, 4)}),))
    empty = Annotations("c.mp4", (48, 64), 3)
    assert there_and_back("coco", example(), other, empty) == [example(), other, empty]


def test_what_readers_of_coco_need_is_there():
    made = json.loads(coco.write([example()]))
    images, categories = ({row["id"]: row for row in made[part]} for part in ("images", "categories"))
    assert len(images) == len(made["images"])
    tracks = {row["id"] for row in made["tracks"]}
    assert {row["track_id"] for row in made["annotations"]} == tracks
    seen = {}
    for row in made["annotations"]:
        assert {"id", "image_id", "category_id", "bbox", "area", "iscrowd"} <= row.keys()
        if categories[row["category_id"]]["name"] == "with ball" and row["bbox"][1] == 20:
            seen[images[row["image_id"]]["frame_index"]] = row["bbox"]
    assert sorted(seen) == [*range(2, 12)], "all frames, not the key frames alone, and none while it is hidden"
    assert seen[5] == pytest.approx([13, 20, 22.25, 24.25]), "half way between frames 2 and 8"


def test_edited_by_another_tool():
    made = json.loads(coco.write([example()]))
    row = next(row for row in made["annotations"] if row["bbox"][:2] == pytest.approx([13, 20]))
    row["bbox"][0] = 14.0
    (one,) = coco.read(as_json(made))
    ball = next(track for track in one.tracks if track.annotator == "ann")
    assert list(ball.keyframes) == [2, 3, 4, 5, 6, 7, 8, 12, 20]
    assert ball.boxes([4, 5, 6])[:, 0] == pytest.approx([12, 14, 14])


def test_too_many_boxes_for_one_file():
    one = Annotations("v", (9, 9), 2_000_000, None, (Track("a", {0: Box(0, 0, 1, 1)}),))
    with pytest.raises(DataError, match="2000000 boxes are too many for one file"):
        coco.write([one])


def without(data, part, key):
    return {**data, part: [{k: v for k, v in row.items() if k != key} for row in data[part]]}


GOOD = file([(0, 1, 10)])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "cut off, or not JSON"),
        (as_json([]), "`the file` must be an object, got []"),
        (as_json({"images": []}), "`categories` must be a list, got nothing"),
        (
            as_json(without(GOOD, "annotations", "image_id")),
            "`annotations[0].image_id` must be a finite number, got nothing",
        ),
        (as_json({**GOOD, "images": []}), "`annotations[0].image_id` must be the id of one of its `images`, got 100"),
        (as_json({**GOOD, "categories": []}), "category_id` must be the id of one of its `categories`, got 7"),
        (as_json({**GOOD, "videos": [{"id": 6}]}), "`video_id` must be the id of one of its `videos`, got 5"),
        (as_json(without(GOOD, "annotations", "bbox")), "`annotations[0].bbox` must be a list, got nothing"),
        (as_json(without(GOOD, "images", "frame_index")), "`images[0]` must be an image with a frame_index, or called"),
        (as_json(file([(0, 1, 1), (0, 1, 2)])), "`annotations[1]`: its track has a box at frame 0 already"),
        (as_json(file([(0, 1, "x")])), "`annotations[0].bbox[0]` must be a finite number, got 'x'"),
        (
            as_json({**GOOD, "tracks": [{"id": 1, "category_id": 7, "hidden": [[1]]}]}),
            "must be [frame, x1, y1, x2, y2]",
        ),
    ],
)
def test_damaged_files(data, message):
    with pytest.raises((DataError, ArgumentError)) as caught:
        coco.read(data, facts())
    assert message in str(caught.value)
