"""Pre-training on one data set and going on with another, from the command line: docs/method.md has the commands."""

import json
import sys

import pytest
import torch

from layout_files import make_dataset
from whytube.cli import main
from whytube.models import load_model
from whytube.models.files import read_card
from whytube.models.stored import load_tensors, read_header

TINY = ("--set", "width=0.0625", "--set", "frames=4", "--set", "size=[32,32]", "--preset", "c3d-resnet-small")
BRIEF = ("--clips", "8", "--set", "batch_size=4", "--device", "cpu")


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Run a command in an empty folder, which must succeed; returns what it printed."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["whytube", *words])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        assert end.value.code == 0, said.err
        return said.out

    return call


def test_a_network_of_one_data_set_goes_on_with_another(call, tmp_path):
    make_dataset(tmp_path / "actions")
    call("train", "classifier", "--data", "world", "--seed", "7", "--out", "first", "--test", "4", *TINY, *BRIEF)
    again = ("--data", "actions", "--out", "second")
    call("train", "classifier", *again, "--pretrained", "first", "--lr", "0", "--test", "0", *BRIEF)
    card = read_card("second")
    assert card.classes == ("dunk", "surf", "vault")
    assert card.provenance["pretrained"] == "first"
    first, _ = load_tensors("first/classifier.safetensors", kind="classifier")
    second, _ = load_tensors("second/classifier.safetensors", kind="classifier")
    body = [name for name in first if not name.startswith("head.") and "running" not in name and "num_" not in name]
    assert all(torch.equal(first[name], second[name]) for name in body), "with a rate of 0 the body is the first one's"
    assert second["head.0.weight" if "head.0.weight" in second else "head.weight"].shape[0] == 3

    call("train", "explainer", *again, "--set", "masked_runs=0", *BRIEF)
    assert read_header("second/explainer.safetensors", kind="explainer")["attributes"] == [
        "with ball",
        "jumping",
        "indoor",
    ]
    assert load_model("second").attribute_names == ("with ball", "jumping", "indoor")
    options = ("--count", "0", "--negatives", "all", "--effort", "1", "--peers", "centre", "--device", "cpu", "--json")
    found = json.loads(call("evaluate", "--model", "second", "--data", "actions", *options))
    assert found["provenance"]["settings"]["negatives"] == 2
    assert {"ours", "centre"} == set(found["methods"])
