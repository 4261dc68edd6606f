"""The paper's loss on clips that were not trained on."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.nn.functional import softplus

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
    assert 0 < floor(torch.eye(4, dtype=torch.bool), 0.95) < floor(torch.eye(4, dtype=torch.bool), 0.5) < zero_level(4)
    assert floor(every, 0.9) == pytest.approx(zero_level(4)), "nothing to confuse"
    assert floor(torch.eye(4, dtype=torch.bool), 0.25) == pytest.approx(zero_level(4)), "c_pos says nothing about x"


def test_the_floor_is_that_of_the_best_bias():
    table = torch.tensor([[1, 1, 0], [1, 0, 1], [0, 1, 1]]).bool()
    drawn = torch.full((3, 3), 0.1, dtype=torch.float64).fill_diagonal_(0.8)
    bias = torch.zeros(3, 3, 3, dtype=torch.float64, requires_grad=True)  # d of a against b for s, antisymmetric
    optimizer = torch.optim.LBFGS([bias], max_iter=200, line_search_fn="strong_wolfe")

    def loss():
        apart = bias - bias.transpose(0, 1)
        total = 0.0
        for x, a, b, s in torch.cartesian_prod(*[torch.arange(3)] * 4).tolist():
            if a != b and table[x, s]:
                total = total + drawn[x, a] * softplus(-apart[a, b, s]) / 3 / int(table[x].sum())
        return total

    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    optimizer.step(closure)
    assert floor(table, 0.8) == pytest.approx(float(loss().detach()), rel=1e-4)


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
