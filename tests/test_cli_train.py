"""What `train classifier` says of the network that it saved."""

import json
from functools import partial

import pytest
import torch
from typer.testing import CliRunner

from toy_source import Tints
from whytube.classifiers import C3DResNet
from whytube.cli import app
from whytube.cli.train import _save_and_judge
from whytube.data.export import export_world
from whytube.errors import ArgumentError, WhytubeError
from whytube.models import load_classifier, load_explainer, load_model, read_card, save_classifier
from whytube.training import Recipe, evaluate_classifier, fit_classifier

TINY = 1e-9
"""Nothing is left of filters of this size in float16."""


@pytest.fixture(scope="module")
def model():
    """Train a network; then make its first filters tiny and what normalises them large, for the same answers."""
    torch.manual_seed(0)
    made = C3DResNet(Tints.classes, width=1 / 16, frames=2, size=(16, 16), stem_stride=2, pools=(1, 2, 1, 2))
    fit_classifier(made, Tints(), Recipe(clips=480, batch_size=12, optimizer="adamw", lr=0.01, warmup=0.1))
    norm = made.norm
    with torch.no_grad():
        gain = norm.weight / (norm.running_var + norm.eps).sqrt()
        made.stem.weight.mul_(TINY)
        norm.running_mean.mul_(TINY)
        norm.running_var.mul_(TINY**2)
        norm.weight.copy_(gain / TINY * (norm.running_var + norm.eps).sqrt())
    return made


@pytest.mark.parametrize("half", [False, True])
def test_the_accuracy_is_of_what_the_file_holds(model, tmp_path, half):
    path = tmp_path / "classifier.safetensors"
    save = partial(save_classifier, path, model, provenance={"data": "tints"}, half=half)
    metrics = _save_and_judge(save, Tints(), {"test": 30, "val": 6}, torch.device("cpu"), batch_size=8, seconds=2.0)
    assert {"test clips": 30, "val clips": 6, "seconds": 2.0}.items() <= metrics.items()
    assert metrics["val accuracy"] == evaluate_classifier(load_classifier(path), Tints(), "val", 6).accuracy
    assert read_card(path).metrics == metrics
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert metrics["test accuracy"] == evaluate_classifier(load_classifier(path), Tints(), "test", 30).accuracy
    assert evaluate_classifier(model, Tints(), "test", 30).accuracy > 0.9
    assert (metrics["test accuracy"] > 0.9) == (not half)


def test_words_are_taught_from_the_shell(tmp_path):
    data, out = tmp_path / "dances", tmp_path / "taught"
    export_world(data, count=12, size=64)
    for name in ("attributes.csv", "boxes.csv"):
        path = data / name
        path.write_text(path.read_text().replace("with mushroom", "with a fungus"))
    words = ["train", "words", "--data", str(data), "--out", str(out), "--steps", "5", "--json"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    told = json.loads(result.stdout)
    assert {word["word"]: word["new"] for word in told["words"]}["with a fungus"]
    assert told["after"]["boxes"] == told["before"]["boxes"] > 0
    names = load_model(out).attribute_names
    assert names == (*load_model("demo").attribute_names, "with a fungus")
    with pytest.raises(WhytubeError, match="exists already"):
        CliRunner().invoke(app, words, catch_exceptions=False)


def test_a_model_without_words_cannot_be_taught(tmp_path):
    words = ["train", "words", "--model", "i3d-kinetics-400", "--data", "world", "--out", str(tmp_path / "taught")]
    with pytest.raises(WhytubeError, match="has no words to teach"):
        CliRunner().invoke(app, words, catch_exceptions=False)
    assert not (tmp_path / "taught").exists()


def test_another_explainer_takes_what_masking_does_from_the_first(tmp_path):
    small = ["--set", "batch_size=4", "--set", "place_steps=2", "--boxes", "1", "--clips", "4"]
    words = ["train", "explainer", "--classifier", "demo", "--out", str(tmp_path), *small]
    ran = CliRunner().invoke(app, [*words, "--response", "demo", "--json"])
    assert ran.exit_code == 0, ran.output
    shipped = load_model("demo", device="cpu")
    made = load_explainer(tmp_path / "explainer.safetensors", shipped.classifier)
    assert made.response.cost == shipped.response.cost
    assert all(
        torch.equal(a, b) for a, b in zip(made.response.parameters(), shipped.response.parameters(), strict=True)
    )
    assert json.loads(ran.stdout)["provenance"]["response"].startswith("demo ")
    with pytest.raises(WhytubeError, match=r"its response is '.*', expected None"):
        CliRunner().invoke(app, [*words, "--resume"], catch_exceptions=False)
    with pytest.raises(WhytubeError, match="none for an objective that tries no tubes"):
        CliRunner().invoke(
            app, [*words, "--overwrite", "--objective", "paper", "--response", "demo"], catch_exceptions=False
        )


def test_words_are_taught_by_one_process(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(WhytubeError, match="without torchrun"):
        CliRunner().invoke(
            app, ["train", "words", "--data", "world", "--out", str(tmp_path / "new")], catch_exceptions=False
        )


@pytest.mark.parametrize(
    ("name", "message"), [("jhmdb-i3d", "another one"), ("i3d-kinetics-400", "another one"), ("nothing", "nothing")]
)
def test_masking_does_other_things_to_other_classifiers(tmp_path, name, message):
    words = ["train", "explainer", "--classifier", "demo", "--out", str(tmp_path / "new"), "--response", name]
    with pytest.raises(WhytubeError, match=message):
        CliRunner().invoke(app, words, catch_exceptions=False)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("words", "again"), [((), True), (("--distinct", "4"), False)])
def test_clips_that_a_training_keeps_are_not_kept_a_second_time(tmp_path, monkeypatch, words, again):
    asked = []

    def opened(data, **how):
        asked.append(how["again"])
        raise ArgumentError("enough")

    monkeypatch.setattr("whytube.cli.train.open_source", opened)
    with pytest.raises(ArgumentError, match="enough"):
        CliRunner().invoke(app, ["train", "classifier", "--out", str(tmp_path / "run"), *words], catch_exceptions=False)
    assert asked == [again]
