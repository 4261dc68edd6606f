"""The two readers of videos, compared on the same clips."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from toy_explainer import saved_model, tiny_classifier, tiny_explainer
from whytube.data.export import export_world
from whytube.data.world import World

pytest.importorskip("cv2")
STUDY = Path(__file__).parent.parent / "studies" / "readers.py"


def test_both_readers_show_nearly_the_same_clips(tmp_path):
    world = World(size=32, frames=4)
    export_world(tmp_path / "data", count=4, size=64, frames=4, splits={"test": 1.0})
    classifier = tiny_classifier(world.classes, frames=4, size=(32, 32))
    made = tiny_explainer(classifier=classifier, words=world.attribute_names, table=world.table)
    model = saved_model(tmp_path / "model", made)
    out = tmp_path / "readers.json"
    words = ["--model", model, "--data", tmp_path / "data", "--count", 3, "--out", out]
    subprocess.run([sys.executable, STUDY, *map(str, words)], check=True, capture_output=True)
    told = json.loads(out.read_text())
    assert told["clips"] == 3
    assert 0 < told["mean difference of a pixel, of 255"] < 10, "they resize differently"
    assert told["largest"] < 0.05
    assert told["same top class"] == 1
    assert told["right"]["PyAV"] == told["right"]["OpenCV"]
    assert told["provenance"]["versions"]["av"]
