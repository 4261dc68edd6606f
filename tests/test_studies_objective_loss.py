"""The paper's loss on clips that were not trained on."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from studies.objective_loss import floor, loss_of, zero_level
from toy_explainer import saved_model, tiny_classifier, tiny_explainer
from toy_source import Tints
from whytube.data.world import World
from whytube.explainer.objective import class_term

STUDY = Path(__file__).parent.parent / "studies" / "objective_loss.py"


def test_it_is_the_loss_over_all_clips_alike():
    source = Tints()
    explainer = tiny_explainer("paper", words=source.attribute_names, table=source.table)
    batch = source.batch("val", range(6))
    with torch.no_grad():
        logits, maps = explainer.classifier.features(batch.clips)
        scaled = explainer.scores.normalise(maps)
        whole = class_term(explainer.scores, scaled, logits.argmax(1), batch.attributes)
    assert loss_of(explainer, source, split="val", count=6, drawn=False) == pytest.approx(float(whole), rel=1e-5)
    first = loss_of(explainer, source, split="val", count=6)
    assert first == loss_of(explainer, source, split="val", count=6)
    assert first != pytest.approx(float(whole), rel=1e-5), "another class was drawn for some clip"


def test_levels():
    every = torch.ones(4, 2, dtype=torch.bool)
    assert floor(every) == pytest.approx(zero_level(4))
    assert floor(torch.eye(4, dtype=torch.bool)) == 0


def test_as_a_program(tmp_path):
    world = World(size=32, frames=4)
    classifier = tiny_classifier(world.classes, frames=4, size=(32, 32))
    made = tiny_explainer("paper-sgd", classifier=classifier, words=world.attribute_names, table=world.table)
    with torch.no_grad():
        for weights in made.scores.parameters():
            weights.zero_()
    folder = saved_model(tmp_path / "model", made)
    words = [
        f"zeros={folder / 'explainer.safetensors'}",
        "--model",
        folder,
        "--count",
        "2",
        "--out",
        tmp_path / "o.json",
    ]
    subprocess.run([sys.executable, STUDY, *map(str, words)], check=True, capture_output=True)
    found = json.loads((tmp_path / "o.json").read_text())
    assert (
        found["losses"] == found["losses of the predicted class"] == {"zeros": pytest.approx(zero_level(24), rel=1e-5)}
    )
    assert found["levels"]["floor"] == pytest.approx(4.70, abs=0.005)
    assert found["provenance"]["versions"]["torch"]
