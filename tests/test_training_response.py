"""The response to masking: it learns, goes on where it stopped, and lies in the explainer's file."""

from dataclasses import replace

import pytest
import torch

from interruption import InterruptionError, interrupt_at, same
from toy_explainer import tiny_classifier
from toy_source import Tints
from toy_squares import Adder, Squares
from whytube.errors import ModelError
from whytube.models import load_explainer, save_explainer
from whytube.models.stored import load_tensors, read_header, save_tensors
from whytube.search.response import build_response
from whytube.training import Recipe
from whytube.training.explainer import fit_explainer
from whytube.training.response import CLIPS, FILE, TUBES, fit_response

STEP = CLIPS * TUBES
QUICK = Recipe(clips=24, batch_size=12, optimizer="adamw", lr=0.02, masked_runs=2 * STEP)
CPU = torch.device("cpu")


def source():
    return Tints(24)


def test_the_loss_falls():
    seen = []
    model = tiny_classifier()
    response = fit_response(model, source(), replace(QUICK, masked_runs=60 * STEP), device=CPU, progress=seen.append)
    assert [record.step for record in seen] == list(range(3, 61, 3))
    assert sum(record.loss for record in seen[-6:]) < 0.85 * sum(record.loss for record in seen[:6])
    assert not response.training
    assert not same(response, build_response(model))


def test_the_classifier_is_left_as_it_was():
    model = tiny_classifier().train()
    model.stem.weight.requires_grad_(False)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    fit_response(model, source(), QUICK, device=CPU)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(weight.grad is None for weight in model.parameters())
    assert [name for name, weight in model.named_parameters() if not weight.requires_grad] == ["stem.weight"]


@pytest.mark.parametrize("runs", [0])
def test_without_runs_none_is_trained(tmp_path, runs):
    assert fit_response(tiny_classifier(), source(), replace(QUICK, masked_runs=runs), device=CPU) is None
    explainer, _ = fit_explainer(tiny_classifier(), source(), replace(QUICK, masked_runs=runs), out_dir=tmp_path)
    assert explainer.response is None
    assert not (tmp_path / FILE).exists()
    assert load_explainer(tmp_path / "explainer.safetensors", tiny_classifier()).response is None


def test_networks_without_parts_have_none():
    assert fit_response(Adder(), Squares(12), QUICK, device=CPU) is None


def test_objectives_that_do_not_search_need_none():
    explainer, _ = fit_explainer(tiny_classifier(), source(), QUICK, objective="paper")
    assert explainer.response is None


def test_the_few_steps_of_a_laptop_are_kept_one_by_one(tmp_path, monkeypatch):
    monkeypatch.setattr("whytube.training.loop.SAVE_SECONDS", 0.0)  # a step takes minutes there
    recipe = replace(QUICK, masked_runs=5 * STEP)
    with pytest.raises(InterruptionError):
        fit_response(tiny_classifier(), source(), recipe, device=CPU, folder=tmp_path, progress=interrupt_at(3))
    seen = []
    fit_response(tiny_classifier(), source(), recipe, device=CPU, folder=tmp_path, resume=True, progress=seen.append)
    assert [record.step for record in seen] == [4, 5]


def test_a_resumed_run_ends_where_an_uninterrupted_one_does(tmp_path, monkeypatch):
    recipe = replace(QUICK, masked_runs=45 * STEP)
    whole = fit_response(tiny_classifier(), source(), recipe, device=CPU)
    monkeypatch.setattr("whytube.training.loop.SAVE_SECONDS", 0.0)
    with pytest.raises(InterruptionError):
        fit_response(tiny_classifier(), source(), recipe, device=CPU, folder=tmp_path, progress=interrupt_at(21))
    assert (tmp_path / FILE).exists()
    seen = []
    resumed = fit_response(
        tiny_classifier(), source(), recipe, device=CPU, folder=tmp_path, resume=True, progress=seen.append
    )
    assert [record.step for record in seen] == list(range(24, 46, 3))
    assert same(resumed, whole)
    with pytest.raises(ModelError, match="Use the same settings, or another folder"):
        fit_response(tiny_classifier(), source(), QUICK, device=CPU, folder=tmp_path, resume=True)
    with pytest.raises(ModelError, match="its classifier's fingerprint is"):
        fit_response(tiny_classifier(seed=1), source(), recipe, device=CPU, folder=tmp_path, resume=True)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    explainer, _ = fit_explainer(tiny_classifier(), source(), QUICK, out_dir=folder)
    return explainer, folder / "explainer.safetensors"


def test_it_lies_in_the_explainers_file(trained, tmp_path):
    explainer, path = trained
    assert explainer.response is not None
    loaded = load_explainer(path, explainer.classifier)
    assert same(loaded.response, explainer.response)
    assert same(loaded.scores, explainer.scores)
    assert (loaded.response.cut, loaded.response.cost) == (explainer.response.cut, explainer.response.cost)
    assert read_header(path, kind="explainer")["response"]["cut"] == "block4"
    again = save_explainer(tmp_path / "again.safetensors", loaded, provenance={})
    assert same(load_explainer(again, explainer.classifier).response, explainer.response)


def changed(path, out, *, header=None, tensors=None):
    """Write an explainer's file anew with other entries of its response, or other tensors."""
    stored, told = load_tensors(path, kind="explainer")
    stored = {name: value for name, value in {**stored, **(tensors or {})}.items() if value is not None}
    response = told["response"] | (header or {})
    return save_tensors(out, stored, told | {"response": response}, kind="explainer")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"header": {"cut": "block9"}}, "It was trained for the stage 'block9'"),
        ({"header": {"channels": 7}}, "it does not fit the classifier's maps"),
        ({"header": {"channels": 10**14}}, "it does not fit the classifier's maps"),
        ({"header": {"channels": 0}}, "its header is damaged"),
        ({"header": {"channels": "many"}}, "its header is damaged"),
        ({"header": {"cost": 1.5}}, "its header is damaged"),
        ({"header": {"cost": None}}, "its header is damaged"),
        ({"header": {"further": 1}}, "its header is damaged"),
        ({"tensors": {"response.keep": None}}, "it does not fit the classifier's maps"),
        ({"tensors": {"response.keep": torch.zeros(3, 8)}}, "it does not fit the classifier's maps"),
        ({"tensors": {"response.more": torch.zeros(1)}}, "it does not fit the classifier's maps"),
    ],
)
def test_damaged_files_are_refused(trained, tmp_path, change, message):
    explainer, path = trained
    with pytest.raises(ModelError, match=message):
        load_explainer(changed(path, tmp_path / "other.safetensors", **change), explainer.classifier)


def test_tensors_of_a_response_that_is_not_named_are_refused(trained, tmp_path):
    explainer, path = trained
    stored, told = load_tensors(path, kind="explainer")
    other = save_tensors(tmp_path / "other.safetensors", stored, told | {"response": None}, kind="explainer")
    with pytest.raises(ModelError, match="it does not fit the classifier's maps"):
        load_explainer(other, explainer.classifier)
