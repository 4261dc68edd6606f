"""Examples by a rule, drawn from a folder of videos."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from studies.examples import draw, examples, fall
from toy_explainer import saved_model, tiny_classifier, tiny_explainer
from whytube.data.export import export_world
from whytube.data.world import World
from whytube.errors import ArgumentError

STUDY = Path(__file__).parent.parent / "studies" / "examples.py"


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Eight small videos and a tiny model of their classes."""
    folder = tmp_path_factory.mktemp("examples")
    world = World(size=32, frames=4)
    export_world(folder / "data", count=8, size=32, frames=4, splits={"test": 1.0})
    classifier = tiny_classifier(world.classes, frames=4, size=(32, 32))
    made = tiny_explainer(classifier=classifier, words=world.attribute_names, table=world.table)
    return folder / "data", saved_model(folder / "model", made)


def test_best_and_worst_are_drawn(given, tmp_path):
    data, model = given
    words = [
        "--data",
        data,
        "--model",
        model,
        "--count",
        "5",
        "--each",
        "2",
        "--effort",
        "2",
        "--out",
        tmp_path / "out",
    ]
    subprocess.run([sys.executable, STUDY, *map(str, words)], check=True, capture_output=True)
    told = json.loads((tmp_path / "out" / "examples.json").read_text())
    names = [one["picture"] for one in told["examples"]]
    assert names == ["best-1.jpg", "best-2.jpg", "worst-1.jpg", "worst-2.jpg"]
    falls = [one["fall"] for one in told["examples"]]
    assert falls[0] >= falls[1] >= falls[3] >= falls[2]
    assert len({one["video"] for one in told["examples"]}) == 4
    assert told["videos"] == 5
    assert told["provenance"]["versions"]["torch"]
    page = (tmp_path / "out" / "index.md").read_text()
    for one in told["examples"]:
        assert one["sentence"] in page
        with Image.open(tmp_path / "out" / one["picture"]) as picture:
            assert picture.width > picture.height > 32


def test_the_order_is_that_of_the_measured_fall(given, tmp_path):
    found = examples(*map(str, given), count=4, effort="2")
    falls = [fall(explanation) for _, explanation in found]
    assert falls == sorted(falls, reverse=True)
    measured = found[0][1].reasons[0].evidence
    assert falls[0] == pytest.approx(sum(e.fall for e in measured) / len(measured))
    assert len(draw(found, tmp_path, each=9, columns=2)) == 4, "none is both best and worst"


def test_a_folder_without_test_videos_is_refused(given, tmp_path):
    export_world(tmp_path / "data", count=2, size=32, frames=4, splits={"train": 1.0})
    with pytest.raises(ArgumentError, match="there are no test videos"):
        examples(str(tmp_path / "data"), str(given[1]), count=2)
