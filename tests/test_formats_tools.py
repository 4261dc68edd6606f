"""Our files in the hands of the tools' own libraries, where they are installed: they are no dependencies of whytube.

pip install datumaro label-studio-sdk pycocotools
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from annotation_examples import example, facts
from whytube.data.formats import Track, coco, write_annotations

pytestmark = pytest.mark.filterwarnings("ignore")
DOCS = (Path(__file__).resolve().parents[1] / "docs" / "data.md").read_text(encoding="utf-8")
CORNERS = ("x", "y", "width", "height")


def tubes():
    """Return label, annotator and number of every track -> its tube in the example's 40 frames."""
    return {(track.attribute, track.annotator, at): track.tube(40) for at, track in enumerate(example().tracks)}


def test_pycocotools_finds_every_box(tmp_path, capsys):
    tool = pytest.importorskip("pycocotools.coco")
    data = tool.COCO(str(write_annotations(tmp_path / "coco.json", example(), format="coco")))
    capsys.readouterr()
    image_of = {image["frame_index"]: image["id"] for image in data.dataset["images"]}
    found = 0
    for (label, _, at), tube in tubes().items():
        (category,) = data.getCatIds(catNms=[label])
        for frame, box in zip(tube.frames.tolist(), tube.boxes, strict=True):
            rows = data.loadAnns(data.getAnnIds(imgIds=[image_of[frame]], catIds=[category]))
            (row,) = [row for row in rows if row["track_id"] == at + 1]
            np.testing.assert_allclose(np.add(row["bbox"], [0, 0, *row["bbox"][:2]]), box, atol=1e-9)
            found += 1
    assert found == len(data.anns) == 110


def test_label_studio_shows_the_same_boxes(tmp_path):
    tool = pytest.importorskip("label_studio_sdk._extensions.label_studio_tools.postprocessing.video")
    (task,) = json.loads(write_annotations(tmp_path / "ls.json", example(), format="label-studio").read_text())
    seen = 0
    for annotation in task["annotations"]:
        regions = [region for region in annotation["result"] if region["type"] == "videorectangle"]
        for region in tool.extract_key_frames(regions):
            (label,), who = region["value"]["labels"], annotation["whytube"]["annotator"]
            (tube,) = [tube for (name, by, _), tube in tubes().items() if (name, by) == (label, who)]
            rows = region["value"]["sequence"]
            assert [row["frame"] - 1 for row in rows] == tube.frames.tolist()
            boxes = np.array([[row[key] for key in CORNERS] for row in rows]) * [3.2, 2.4, 3.2, 2.4]
            boxes[:, 2:] += boxes[:, :2]
            np.testing.assert_allclose(boxes, tube.boxes, atol=1e-9)
            seen += 1
    assert seen == 3


def test_label_studio_takes_our_tasks(tmp_path):
    """They fit the labeling interface of docs/data.md."""
    tool = pytest.importorskip("label_studio_sdk.label_interface")
    (interface,) = re.findall(r"```xml\n(.*?)```", DOCS, flags=re.DOTALL)
    interface = interface.replace('<Label value="with ball"/>', '<Label value="with ball"/><Label value="with board"/>')
    interface = interface.replace('<Choice value="with ball"/>', '<Choice value="jumping"/><Choice value="on water"/>')
    config = tool.LabelInterface(interface)
    config.validate()
    (task,) = json.loads(write_annotations(tmp_path / "ls.json", example(), format="label-studio").read_text())
    assert config.validate_task({"data": task["data"]})
    for annotation in task["annotations"]:
        assert config.validate_annotation({"result": annotation["result"]})


def test_datumaro_reads_our_cvat_files_and_we_read_its_coco(tmp_path):
    tool = pytest.importorskip("datumaro")
    (tmp_path / "cvat").mkdir()
    write_annotations(tmp_path / "cvat" / "annotations.xml", example(), format="cvat")
    data = tool.Dataset.import_from(str(tmp_path / "cvat"), "cvat")
    labels = data.categories()[tool.AnnotationType.label]
    tracks = example().tracks
    keys = [set() for _ in tracks]
    for item in data:
        for box in item.annotations:
            at, frame = box.attributes["track_id"], item.attributes["frame"]
            key = tracks[at].keyframes[frame]
            assert labels[box.label].name == tracks[at].attribute
            assert box.attributes.get("annotator", "") == tracks[at].annotator
            assert (box.attributes["outside"], box.attributes["occluded"]) == (key.outside, key.occluded)
            assert (box.x, box.y, box.x + box.w, box.y + box.h) == pytest.approx(key.corners, abs=0.01)
            keys[at].add(frame)
    assert keys == [set(track.keyframes) for track in tracks]
    picture = tool.components.media.Image.from_numpy(np.zeros((240, 320, 3), np.uint8))
    pictured = [item.wrap(media=picture) for item in data]
    other = tool.Dataset.from_iterable(pictured, categories=data.categories())
    other.export(str(tmp_path / "coco"), "coco_instances", save_media=False)
    (written,) = (tmp_path / "coco" / "annotations").glob("*.json")
    (one,) = coco.read(written.read_bytes(), facts())
    for found, track in zip(one.tracks, tracks, strict=True):
        there = {frame: box for frame, box in track.keyframes.items() if not box.outside}
        alone = Track.from_boxes(track.attribute, there, track.annotator)  # it wrote the key frames only
        assert (found.attribute, found.annotator) == (alone.attribute, alone.annotator)
        np.testing.assert_allclose(found.boxes(range(40)), alone.boxes(range(40)), atol=0.01)
