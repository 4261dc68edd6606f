"""What names, folders, files and objects stand for, in Python and at the command line."""

import json
import os
import subprocess
import sys

import pytest
import torch
from typer.testing import CliRunner

from toy_explainer import saved_model, tiny_explainer
from video_files import make_video
from whytube.classifiers import C3DResNet
from whytube.cli.models import app
from whytube.errors import ArgumentError, ModelError
from whytube.explainer.explainer import Explainer
from whytube.models import files, list_models, load_model, read_card, save_classifier
from whytube.search.regions import RegionSearch


@pytest.fixture
def explainer():
    return tiny_explainer()


@pytest.fixture
def folder(explainer, tmp_path):
    return saved_model(tmp_path / "models" / "tiny", explainer)


def test_a_folder_and_a_name_are_a_classifier_with_its_words(explainer, folder, monkeypatch):
    assert load_model(folder).attribute_names == explainer.attribute_names
    monkeypatch.setattr(files, "SHIPPED", folder.parent)
    found = load_model("tiny", device="cpu")
    assert isinstance(found, Explainer)
    assert found.device == torch.device("cpu")
    with pytest.raises(ArgumentError, match=r"unknown model 'tinny'\. Did you mean 'tiny'\?"):
        load_model("tinny")
    with pytest.raises(ModelError, match="there is no such file"):
        load_model(folder.parent / "other")


def test_a_classifier_alone_is_explained_by_regions(explainer, folder):
    file = folder / "classifier.safetensors"
    assert isinstance(load_model(file), RegionSearch), "the file is the classifier, whatever lies beside it"
    (folder / "explainer.safetensors").unlink()
    found = load_model(folder)
    assert isinstance(found, RegionSearch)
    assert found.classifier.classes == explainer.classes
    assert not any(isinstance(module, torch.nn.BatchNorm3d) for module in found.classifier.modules()), "made fast"
    assert load_model(explainer.classifier).classifier is explainer.classifier, "an object stays as it is"


def test_objects_are_what_they_are(explainer):
    assert load_model(explainer) is explainer
    regions = RegionSearch(explainer.classifier)
    assert load_model(regions) is regions
    with pytest.raises(ArgumentError, match=r"VideoClassifier: see whytube\.wrap, got a bare Linear"):
        load_model(torch.nn.Linear(2, 2))
    with pytest.raises(ArgumentError, match=r"`model` must be a name, a path, .* got a bare int"):
        load_model(3)


def test_an_explainer_of_another_classifier_is_refused(explainer, folder):
    other = C3DResNet(explainer.classes, **explainer.classifier.settings)
    save_classifier(folder / "classifier.safetensors", other, provenance={})
    with pytest.raises(ModelError, match="it was trained for another classifier"):
        load_model(folder)


def test_names_in_a_file_of_ones_own(explainer, folder, tmp_path):
    (tmp_path / "mine.py").write_text(
        f"import whytube\nfrom whytube.search.regions import RegionSearch\n"
        f"made = whytube.load_model({str(folder)!r})\nregions = RegionSearch(made.classifier)\n"
        f"def build():\n    return made.classifier\n"
    )
    assert load_model(f"{tmp_path / 'mine.py'}:made").attribute_names == explainer.attribute_names
    for name in ("regions", "build"):
        assert isinstance(load_model(f"{tmp_path / 'mine.py'}:{name}"), RegionSearch)


def test_what_is_shipped():
    rows = {row.name: row for row in list_models()}
    assert list(rows) == ["demo", "i3d-kinetics-400", "jhmdb-i3d"]
    assert (rows["demo"].accuracy, rows["demo"].explains) == (1.0, "words and regions")
    kinetics, jhmdb = rows["i3d-kinetics-400"], rows["jhmdb-i3d"]
    assert (kinetics.architecture, kinetics.classes, kinetics.explains) == ("i3d", 400, "regions")
    assert (jhmdb.architecture, jhmdb.classes, jhmdb.explains) == ("i3d", 21, "words and regions")
    assert 24e6 < kinetics.size < 27e6, "whole, at half precision"


def test_the_card_of_published_weights():
    card = read_card("i3d-kinetics-400")
    assert card.classes[:2] == ("abseiling", "air drumming")
    assert card.classes == tuple(sorted(set(card.classes)))
    assert len(card.classes) == 400
    assert "Apache-2.0" in card.provenance["licence"]


def run(*words, **environment):
    command = [sys.executable, "-m", "whytube", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


def models(*words):
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False).stdout


def test_the_command_line(folder):
    listed = json.loads(models("list", "--json"))
    assert [row["name"] for row in listed] == ["demo", "i3d-kinetics-400", "jhmdb-i3d"]
    assert "words and regions" in models("list")
    assert len(json.loads(models("info", "i3d-kinetics-400", "--json"))["classes"]) == 400
    assert "c3d-resnet" in models("info", "demo")
    assert "c3d-resnet" in models("info", folder)
    with pytest.raises(ArgumentError, match=r"unknown model 'i3d-kinetics-40'\. Did you mean 'i3d-kinetics-400'\?"):
        models("info", "i3d-kinetics-40")


def test_a_folder_with_a_classifier_alone_at_the_command_line(folder, tmp_path):
    (folder / "explainer.safetensors").unlink()
    result = run("explain", make_video(tmp_path / "clip.mp4"), "--model", folder, "--json")
    assert result.returncode == 0, result.stderr
    assert all(reason["attribute"] == "" for reason in json.loads(result.stdout)["reasons"])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "classes"), [("jhmdb-i3d", 21), ("i3d-kinetics-400", 400)])
def test_shipped_networks_explain_with_an_empty_home(name, classes, tmp_path):
    clip = make_video(tmp_path / "clip.mp4")
    result = run("explain", clip, "--model", name, "--device", "cpu", "--json", HOME=str(tmp_path / "home"))
    assert result.returncode == 0, result.stderr
    assert len(json.loads(result.stdout)["probabilities"]) == classes
