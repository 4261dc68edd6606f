"""Tubes for other tools: COCO's JSON by its published structure, and supervision's Detections."""

import json
import subprocess
import sys

import numpy as np
import pytest

from explanation_examples import FRAMES, explanation, reason
from whytube.tubes.export import detection_fields


def test_coco_has_the_published_structure():
    why = explanation(reason("with cat"), reason("spinning", start=3), reason("", start=5), reason("no", moved=False))
    data = json.loads(json.dumps(why.to_coco(), allow_nan=False))
    assert {"info", "licenses", "images", "annotations", "categories"} == set(data)
    assert data["info"]["description"] == why.sentence
    assert [image["frame_index"] for image in data["images"]] == list(why.frames)
    assert data["images"][1] | {"frame_index": 0} == {
        "id": 2,
        "file_name": "a/000002.jpg",
        "width": 48,
        "height": 48,
        "frame_index": 0,
    }
    assert [c["name"] for c in data["categories"]] == ["with cat", "spinning", "region"]
    for rows in (data["images"], data["annotations"], data["categories"]):
        ids = [row["id"] for row in rows]
        assert ids == list(range(1, len(rows) + 1)), "ids are unique, from 1"
    images, categories = ({row["id"] for row in data[name]} for name in ("images", "categories"))
    assert len(data["annotations"]) == FRAMES + (FRAMES - 3) + (FRAMES - 5)
    for row in data["annotations"]:
        assert row["image_id"] in images
        assert row["category_id"] in categories
        width, height = row["bbox"][2:]
        assert row["area"] == pytest.approx(width * height)
        assert row["iscrowd"] == 0
    assert data["annotations"][1]["bbox"] == [9, 20, 16, 12]
    assert [row["track_id"] for row in data["annotations"]] == [1] * 6 + [2] * 3 + [3]


def test_coco_of_an_answer_that_nothing_explains_has_no_boxes():
    data = explanation(reason("no", moved=False)).to_coco()
    assert data["annotations"] == data["categories"] == []
    assert len(data["images"]) == FRAMES


def test_the_arrays_of_detections():
    fields = detection_fields([[1, 2, 3, 4], [5, 6, 7, 8]], [0, 2], data={"class_name": ["cat", "mat"]})
    assert fields["xyxy"].shape == (2, 4)
    assert fields["xyxy"].dtype == np.float32
    assert fields["class_id"].tolist() == [0, 2]
    assert fields["tracker_id"].tolist() == [1, 3]
    assert fields["data"]["class_name"].tolist() == ["cat", "mat"]
    empty = detection_fields([], [], data={"class_name": []})
    assert empty["xyxy"].shape == (0, 4)
    assert all(len(value) == 0 for value in (empty["class_id"], empty["tracker_id"], empty["data"]["class_name"]))


def test_detections_of_supervision():
    supervision = pytest.importorskip("supervision")
    why = explanation(reason("with cat"), reason("spinning", start=3))
    late, early = why.to_detections(8), why.to_detections(0)
    assert isinstance(late, supervision.Detections)
    assert late.xyxy.tolist() == [[12, 20, 28, 32], [12, 20, 28, 32]]
    assert late["class_name"].tolist() == ["with cat", "spinning"]
    assert len(early) == 1
    assert len(why.to_detections(1)) == 0, "a frame between those that were sampled"
    whole = why.reasons[0].tube.to_detections()
    assert len(whole) == FRAMES
    assert whole.data["frame"].tolist() == list(why.frames)
    picture = np.zeros((48, 48, 3), np.uint8)
    assert supervision.BoxAnnotator().annotate(picture.copy(), late).any()


def test_without_supervision_the_error_says_what_to_install():
    script = (
        "import sys; sys.modules['supervision'] = None\n"
        "from whytube.tubes import Tube\n"
        "Tube([0], [[0, 0, 1, 1]]).to_detections()"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "ArgumentError: detections need supervision, which is not installed: pip install supervision" in ran.stderr
