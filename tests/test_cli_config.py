"""Runs written down: --config and --set, through `main`, in this process."""

import sys

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from whytube.cli import main
from whytube.cli.config import changed, read_changes
from whytube.errors import ArgumentError
from whytube.models import read_card
from whytube.models.stored import load_tensors
from whytube.training.recipe import RECIPES

RUN = """
[classifier]
recipe = "demo"
clips = 8
test = 2
half = true
set = ["frames=4", "size=[32, 32]", "width=0.0625", "flip=0.25", "pooling=mean"]

[explainer]
clips = 30
distinct = 3
objective = "two-sided"
"""


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Return a function that runs a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["whytube", *words, "--device", "cpu"])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code

    return call


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("max", "max"),
        ("", ""),
        ("112,112", [112, 112]),
        ("[2, 1]", [2, 1]),
        ("0.1,0.2", [0.1, 0.2]),
        ("a,b", "a,b"),
    ],
)
def test_a_value_is_json_or_numbers_with_commas_or_text(text, value):
    assert read_changes([f"any={text}"]) == {"any": value}


def test_a_file_gives_options_and_typed_ones_go_first(call, tmp_path):
    (tmp_path / "run.toml").write_text(RUN)
    words = ("--config", str(tmp_path / "run.toml"), "--out", "run", "--tensorboard")
    assert call("train", "classifier", *words, "--clips", "16", "--set", "width=0.125") == 0
    card = read_card("run/classifier.safetensors")
    assert card.recipe["clips"] == 16, "typed"
    assert card.recipe["flip"] == 0.25
    assert card.metrics["test clips"] == 2
    assert card.settings["width"] == 0.125, "typed after what the file sets"
    assert (card.settings["frames"], card.settings["size"], card.settings["pooling"]) == (4, [32, 32], "mean")
    assert card.provenance["config"] == "run.toml", "no path of this machine"
    stored, _ = load_tensors("run/classifier.safetensors", kind="classifier")
    assert stored["blocks.0.conv1.weight"].dtype == torch.float16
    events = EventAccumulator("run/tensorboard/classifier").Reload()
    assert [event.step for event in events.Scalars("loss")] == [2]

    assert call("train", "explainer", *words) == 0
    _, header = load_tensors("run/explainer.safetensors", kind="explainer")
    assert header["objective"] == "two-sided"
    assert header["provenance"]["config"] == "run.toml"
    events = EventAccumulator("run/tensorboard/explainer").Reload()
    assert [event.step for event in events.Scalars("loss")] == [1]


def test_only_the_same_run_is_resumed(call, tmp_path, capsys):
    (tmp_path / "run.toml").write_text(RUN)
    words = ("--config", str(tmp_path / "run.toml"), "--out", "run")
    assert call("train", "classifier", *words) == 0
    assert call("train", "explainer", *words) == 0
    assert call("train", "explainer", *words, "--resume") == 0
    assert call("train", "explainer", *words, "--resume", "--permuted-table") == 2
    assert "its data's fingerprint is" in capsys.readouterr().err.replace("\n", " ")
    assert call("train", "classifier", *words, "--resume", "--pretrained", "run/classifier.safetensors") == 2
    assert "its pretrained is None" in capsys.readouterr().err.replace("\n", " ")


FILES = {
    "run.toml": RUN,
    "broken.toml": "[classifier\n",
    "latin.toml": b"[classifier]\nrecipe = '\xe9'\n",
    "flat.toml": "classifier = 3\n",
    "typo.toml": "[classifier]\nrecipie = 'demo'\n",
    "itself.toml": "[classifier]\nconfig = 'run.toml'\n",
    "text.toml": "[classifier]\nclips = 'many'\n",
    "list.toml": "[classifier]\nclips = []\n",
    "flag.toml": "[classifier]\nhalf = 'perhaps'\n",
    "alone.toml": "[classifier]\nset = 'flip=0.5'\n",
    "recipe.toml": "[classifier]\nrecipe = 'dem'\n",
    "table.toml": "[clasifier]\nrecipe = 'demo'\n",
}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("classifier --config none.toml", "cannot read none.toml: "),
        ("classifier --config broken.toml", "cannot read broken.toml: Expected ']'"),
        ("classifier --config latin.toml", "cannot read latin.toml: "),
        ("explainer --config typo.toml", "typo.toml has no table [explainer]; it has classifier"),
        ("classifier --config flat.toml", "flat.toml has no table [classifier]"),
        (
            "classifier --config typo.toml",
            "unknown option in [classifier] of typo.toml 'recipie'. Did you mean 'recipe'?",
        ),
        ("classifier --config itself.toml", "unknown option in [classifier] of itself.toml 'config'"),
        ("classifier --config text.toml", "'--clips'"),
        ("classifier --config list.toml", "'--clips'"),
        ("classifier --config flag.toml", "'--half'"),
        ("classifier --config alone.toml", "--set"),
        ("classifier --config recipe.toml", "unknown recipe 'dem'. Did you mean 'demo'?"),
        ("classifier --config table.toml", "no table [classifier]; it has clasifier. Did you mean 'classifier'?"),
        ("classifier --set flip", "error: --set takes NAME=VALUE, got 'flip'"),
        ("classifier --set =3", "error: --set takes NAME=VALUE, got '=3'"),
        ("classifier --set lr=0.1", "error: --set changes what has no option of its own: give --lr instead of lr=0.1"),
        ("classifier --set flip=often", "`flip` must be a number from 0 to 1.0, got 'often'"),
        ("classifier --set erase_area=3", "`erase_area` must be two fractions of the frame"),
        (
            "classifier --set widht=1",
            "setting of the network 'widht'. Did you mean 'width'?",
        ),
        ("classifier --set width=wide", "the network cannot be built with width=wide: "),
        (
            "classifier --pretrained demo --set widht=1",
            "setting of the network 'widht'. Did you mean 'width'?",
        ),
        ("classifier --preset i3d --set dropout=9", "`dropout` must be at least 0 and less than 1, got 9"),
        ("classifier --set freeze=stem --tensorboard", "c3d-resnet has no stages to freeze"),
        ("classifier --set batch_sise=4", "Did you mean 'batch_size'?"),
        ("explainer --set warmpu=0.1", "unknown field of a recipe 'warmpu'. Did you mean 'warmup'?"),
        ("explainer --set width=1", "unknown field of a recipe 'width'"),
    ],
)
def test_bad_input_is_named_and_nothing_is_trained(words, message, call, tmp_path, capsys):
    for name, text in FILES.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    assert call("train", *words.split(), "--out", "run") == 2
    said = capsys.readouterr()
    assert message in said.err + said.out
    assert [path for path in (tmp_path / "run").rglob("*") if path.is_file()] == []


def test_changes_are_json_or_text():
    texts = ["a=1", "b=0.5", "c=true", "d=null", "e=[1, 2]", "f=Mixed_4e", "g=x=y", "a=2"]
    expected = {"a": 2, "b": 0.5, "c": True, "d": None, "e": [1, 2], "f": "Mixed_4e", "g": "x=y"}
    assert read_changes(texts) == expected
    assert read_changes(None, lr=0.1, clips=None) == {"lr": 0.1}


def test_changes_go_to_the_recipe_or_are_left_over():
    recipe, others = changed(RECIPES["demo"], {"flip": 0.5, "width": 2})
    assert recipe.flip == 0.5
    assert recipe.lr == RECIPES["demo"].lr
    assert others == {"width": 2}
    with pytest.raises(ArgumentError, match="`flip` must be a number from 0 to 1"):
        changed(RECIPES["demo"], {"flip": 2})
