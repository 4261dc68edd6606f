"""Tables of docs/training.md and docs/speed.md are those of the files under results/."""

import json
from pathlib import Path

import pytest

from benchmarks import many_device, masked, reading

ROOT = Path(__file__).parent.parent
TRAINING, SPEED = ((ROOT / "docs" / f"{name}.md").read_text() for name in ("training", "speed"))


def measured(name):
    return json.loads((ROOT / "results" / f"{name}.json").read_text())


@pytest.mark.parametrize("name", ["reading-cpu", "reading-h200"])
def test_how_long_a_training_waits_for_clips(name):
    assert reading.table(measured(name)) in TRAINING


def test_many_classes_on_a_gpu():
    found = measured("many-h200")
    assert found["provenance"]["commit"] in TRAINING
    for line in many_device.device_table(found["rows"], found["fits"]):
        assert line.replace(", all counted", "") in TRAINING


@pytest.mark.parametrize("name", ["masked-cpu", "masked-h200"])
def test_masked_clips(name):
    assert masked.table(measured(name)) in SPEED


@pytest.mark.parametrize("name", ["answer-cpu", "answer-h200"])
def test_a_whole_answer(name):
    found = measured(name)
    assert found["provenance"]["commit"] in SPEED
    for row in found["rows"]:
        shares = (row["network"], row["shares"]["verification"], row["shares"]["predictions"])
        seconds = [f"{row[what]:.2f}" for what in ("seconds", "command") if what in row]
        cells = [row["effort"], str(row["tubes"]), *seconds]
        cells += [f"{100 * share:.0f} %" for share in shares]
        assert "| " + " | ".join(cells).replace("| 0.", "| .") + " |" in SPEED


def test_longer_runs_of_the_papers_objective():
    losses, judged = measured("paper-loss-lengths"), measured("world-64-paper-lengths")["methods"]
    assert losses["provenance"]["commit"] in TRAINING
    for run, name, clips in (
        ("adamw:1e-3", "AdamW .001", 2000),
        ("adamw:1e-3:6000", "AdamW .001", 6000),
        ("sgd:1e-4:6000", "SGD .0001", 6000),
    ):
        rises = judged[f"paper {run}"]["negative_class_accuracy"]
        loss, predicted = (losses[kind][run] for kind in ("losses", "losses of the predicted class"))
        cells = f"{clips // 4:,} | {clips:,} | {loss:.1f} | {predicted:.1f} | {rises['top1']:.2f} / {rises['top3']:.2f}"
        assert f"| {name} | {cells} |" in TRAINING
