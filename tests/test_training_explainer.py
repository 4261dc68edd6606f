import json
import math
from dataclasses import asdict, replace

import pytest
import torch

from interruption import InterruptionError, interrupt_at, same
from toy_explainer import tiny_classifier
from toy_source import Tints
from whytube.data.source import PermutedTable
from whytube.errors import ArgumentError, ModelError
from whytube.explainer.explainer import OBJECTIVES
from whytube.explainer.scores import build_scores
from whytube.models import load_explainer
from whytube.models.stored import load_tensors, read_header, save_tensors
from whytube.training import EXPLAINER_RECIPES, Recipe, fit_classifier
from whytube.training.devices import ALONE
from whytube.training.explainer import _BIAS_RATE, FILE, HISTORY, _ExplainerLoop, fit_explainer
from whytube.training.loop import KIND
from whytube.training.response import FILE as RESPONSE_FILE

QUICK = Recipe(clips=360, batch_size=12, optimizer="adamw", lr=0.02, weight_decay=1e-3)
CLASSIFIER = Recipe(clips=360, batch_size=12, optimizer="adamw", lr=0.01, weight_decay=0.01, warmup=0.1)


class SharedAttributes(Tints):
    """Every class has the same attributes, so that only the clips can tell the classes apart."""

    table = torch.ones(3, 2, dtype=torch.bool)


@pytest.fixture(scope="module")
def trained():
    """Train a classifier that knows the tints."""
    model = tiny_classifier()
    fit_classifier(model, Tints(), CLASSIFIER)
    model.zero_grad(set_to_none=True)
    return model


@pytest.mark.parametrize("objective", ["two-sided", "ours"])
def test_the_loss_falls(trained, objective):
    seen = []
    explainer, history = fit_explainer(
        trained, Tints(), QUICK, objective=objective, report_every=10, progress=seen.append
    )
    assert [(r.step, r.clips) for r in seen] == [(10, 120), (20, 240), (30, 360)]
    assert history.records == seen
    assert seen[-1].loss < 0.8 * seen[0].loss
    assert explainer.objective == objective
    assert explainer.attribute_names == Tints.attribute_names
    assert torch.equal(explainer.table, Tints.table)
    assert not explainer.scores.training


def test_the_single_shape_is_trained_and_goes_on_with_itself_alone(trained, tmp_path):
    few = replace(QUICK, clips=48)
    kept = {"objective": "two-sided", "shapes": "single", "out_dir": tmp_path}
    explainer, _ = fit_explainer(trained, Tints(), few, **kept)
    assert explainer.scores.forms.shape_set == "single"
    assert len(explainer.scores.channels) == 1
    fresh = build_scores(trained, len(Tints.attribute_names), shapes="single", seed=few.seed)
    moved = (explainer.scores.class_weights[0] - fresh.class_weights[0]).abs().amax((0, 1)).flatten()
    assert moved[4] > 0, "the centre of the window is trained"
    loaded = load_explainer(tmp_path / "explainer.safetensors", trained)
    assert torch.equal(loaded.scores.class_weights[0], explainer.scores.class_weights[0])
    with pytest.raises(ModelError, match="its shapes is"):
        fit_explainer(trained, Tints(), few, **kept | {"shapes": "multiple"}, resume=True)
    with pytest.raises(ArgumentError, match="`shapes` must be one of"):
        fit_explainer(trained, Tints(), few, shapes="round")


def test_two_sided_learns_from_clips_where_the_paper_cannot(trained):
    last = {}
    for objective in ("paper", "two-sided"):
        _, history = fit_explainer(trained, SharedAttributes(), QUICK, objective=objective, report_every=10)
        last[objective] = history.records[-1].loss
    all_zero = 2 * math.log(2)  # (C - 1) log 2
    assert last["two-sided"] < 0.7 * all_zero < last["paper"]


def test_the_attributes_are_learnt(trained):
    """The best tube of w_s . h + b_s is positive for the attributes a clip has, and negative for the others."""
    source = Tints()
    explainer, history = fit_explainer(trained, source, replace(QUICK, clips=720), objective="ours")
    assert [record.step for record in history.records] == [20, 40, 60], "a record every 20 steps if nobody says more"
    batch = source.batch("test", range(12))
    with torch.no_grad():
        maps = explainer.scores.normalise(trained.features(batch.clips).maps)
        best = explainer.scores.attribute_volumes(maps).flatten(2).amax(2)
    assert ((best > 0) == batch.attributes).float().mean() > 0.9


def test_the_classifier_is_left_as_it_was(trained):
    before = {name: value.clone() for name, value in trained.state_dict().items()}
    fit_explainer(trained, Tints(), replace(QUICK, clips=24))
    assert all(torch.equal(value, before[name]) for name, value in trained.state_dict().items())
    assert all(weight.grad is None for weight in trained.parameters())
    assert not trained.training


@pytest.mark.parametrize("objective", ["paper", "ours"])
@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_a_resumed_run_ends_where_an_uninterrupted_one_does(tmp_path, objective, optimizer):
    recipe = replace(QUICK, clips=96, optimizer=optimizer)

    def fit(folder, **settings):
        return fit_explainer(
            tiny_classifier(), Tints(30), recipe, objective=objective, report_every=2, out_dir=folder, **settings
        )

    whole, straight = fit(tmp_path / "whole")
    with pytest.raises(InterruptionError):
        fit(tmp_path / "b", save_every=2, progress=interrupt_at(6))
    resumed, history = fit(tmp_path / "b", save_every=2, resume=True)
    assert same(resumed.scores, whole.scores)
    points = [[(r.step, r.loss, r.accuracy, r.lr) for r in h.records] for h in (history, straight)]
    assert points[0] == points[1]


def test_what_is_left_in_the_folder(tmp_path):
    classifier = tiny_classifier()
    fit_classifier(classifier, Tints(), replace(CLASSIFIER, clips=24), out_dir=tmp_path)
    curve = (tmp_path / "history.json").read_text()
    explainer, history = fit_explainer(
        classifier, Tints(), replace(QUICK, clips=24), out_dir=tmp_path, resume=True, provenance={"data": "tints"}
    )
    loaded = load_explainer(tmp_path / "explainer.safetensors", classifier)
    assert same(loaded.scores, explainer.scores)
    assert json.loads((tmp_path / HISTORY).read_text()) == history.to_dict()
    assert (tmp_path / FILE).exists()
    kept = read_header(tmp_path / "explainer.safetensors", kind="explainer")["recipe"]
    assert kept == json.loads(json.dumps(asdict(replace(QUICK, clips=24))))
    assert (tmp_path / "history.json").read_text() == curve, "the classifier's curve was overwritten"
    fit_classifier(classifier, Tints(), replace(CLASSIFIER, clips=24), out_dir=tmp_path, resume=True)


@pytest.mark.parametrize(
    ("change", "objective", "message"),
    [
        ({"lr": 0.5}, "ours", r"its lr is 0\.02, expected 0\.5\. Use the same settings, or another folder"),
        ({}, "paper", "its objective is 'ours', expected 'paper'"),
    ],
)
def test_another_run_is_not_resumed(tmp_path, change, objective, message):
    recipe = replace(QUICK, clips=24)
    fit_explainer(tiny_classifier(), Tints(), recipe, out_dir=tmp_path)
    with pytest.raises(ModelError, match=message):
        fit_explainer(
            tiny_classifier(), Tints(), replace(recipe, **change), objective=objective, out_dir=tmp_path, resume=True
        )


@pytest.mark.parametrize(
    ("classifier", "source", "message"),
    [
        (tiny_classifier(), PermutedTable(Tints()), "its data's fingerprint is"),
        (tiny_classifier(), Tints(30), "its data's fingerprint is"),
        (tiny_classifier(seed=1), Tints(), "its classifier's fingerprint is"),
    ],
)
def test_a_run_on_other_data_or_for_another_classifier_is_not_resumed(tmp_path, classifier, source, message):
    recipe = replace(QUICK, clips=24)
    fit_explainer(tiny_classifier(), Tints(), recipe, out_dir=tmp_path)
    with pytest.raises(ModelError, match=message):
        fit_explainer(classifier, source, recipe, out_dir=tmp_path, resume=True)


def test_distinct_clips_are_made_once_and_shown_often():
    source = Tints()
    fit_explainer(tiny_classifier(), source, replace(QUICK, clips=48, distinct=6))
    assert [index for _, chosen in source.asked for index in chosen] == list(range(6))


def test_the_features_are_standardised_where_the_objective_says_so():
    for name, objective in OBJECTIVES.items():
        explainer, _ = fit_explainer(tiny_classifier(), Tints(), replace(QUICK, clips=12), objective=name)
        changed = bool((explainer.scores.get_buffer("gain0") != 1).any())
        assert changed == objective.standardise


def test_positive_classes_are_sampled_from_what_the_classifier_says(monkeypatch):
    asked = []

    def spy(objective, scores, maps, positive, present, *, negative, sides):
        asked.append(positive)
        return {"none": scores.attribute_bias.sum()}

    monkeypatch.setattr("whytube.training.explainer.loss_terms", spy)
    classifier = tiny_classifier()
    classifier.head[-1].weight.data.zero_()
    classifier.head[-1].bias.data.copy_(torch.tensor([0.7, 0.2, 0.1]).log())
    fit_explainer(classifier, Tints(), replace(QUICK, clips=1200, batch_size=100))
    shares = torch.bincount(torch.cat(asked), minlength=3) / 1200
    torch.testing.assert_close(shares, torch.tensor([0.7, 0.2, 0.1]), rtol=0, atol=0.05)


class OwnAttributes(Tints):
    """Clips with attributes of their own, which are not those of their class."""

    def batch(self, split, indices, device="cpu"):
        chosen = list(indices)
        own = torch.tensor([[index % 2 == 0, index % 5 == 0] for index in chosen])
        return replace(super().batch(split, chosen, device), attributes=own)


def test_attributes_are_the_clips_own(monkeypatch):
    """S(x) of section 3.4 is neither the row of the sampled c_pos in the table nor that of the true class."""
    given = []

    def spy(objective, scores, maps, positive, present, *, negative, sides):
        given.append((positive, present))
        return {"none": scores.attribute_bias.sum()}

    monkeypatch.setattr("whytube.training.explainer.loss_terms", spy)
    source = OwnAttributes()
    fit_explainer(tiny_classifier(), source, replace(QUICK, clips=24, batch_size=24), objective="paper")
    shown = source.batch("train", source.asked[0][1])
    ((positive, present),) = given
    assert torch.equal(present, shown.attributes)
    assert not torch.equal(present, Tints.table[positive])
    assert not torch.equal(present, Tints.table[shown.labels])


@pytest.mark.parametrize("objective", ["paper", "ours"])
def test_divergence_is_said(objective):
    with pytest.raises(ModelError, match=r"training diverged .*Lower the learning rate"):
        fit_explainer(tiny_classifier(), Tints(), replace(QUICK, lr=1e30, optimizer="sgd"), objective=objective)


def test_wrong_arguments():
    with pytest.raises(ArgumentError, match="`classifier` must be for the classes of the source"):
        fit_explainer(tiny_classifier(("a", "b")), Tints(), QUICK)
    with pytest.raises(ArgumentError, match="`source` must be one with clips to train on"):
        fit_explainer(tiny_classifier(), Tints(0), QUICK)
    with pytest.raises(ArgumentError, match=r"unknown objective 'our'\. Did you mean 'ours'\?"):
        fit_explainer(tiny_classifier(), Tints(), QUICK, objective="our")
    for name in ("report_every", "save_every"):
        with pytest.raises(ArgumentError, match=f"`{name}` must be an integer of at least 1, got 0"):
            fit_explainer(tiny_classifier(), Tints(), QUICK, **{name: 0})


def test_a_recipe_by_name_or_the_default(monkeypatch):
    monkeypatch.setitem(EXPLAINER_RECIPES, "demo", replace(QUICK, clips=24))
    monkeypatch.setitem(EXPLAINER_RECIPES, "quick", replace(QUICK, clips=12))
    assert fit_explainer(tiny_classifier(), Tints())[1].records[-1].clips == 24
    assert fit_explainer(tiny_classifier(), Tints(), "quick")[1].records[-1].clips == 12
    with pytest.raises(ArgumentError, match=r"unknown recipe 'quik'\. Did you mean 'quick'\?"):
        fit_explainer(tiny_classifier(), Tints(), "quik")


def test_a_class_bias_has_a_rate_of_its_own(trained):
    loop = _ExplainerLoop(trained, Tints(), QUICK, ("paper", "multiple"), torch.device("cpu"), ALONE)
    weights, bias = loop.optimizer.param_groups
    assert [one is loop.scores.class_bias for one in bias["params"]] == [True]
    assert len(weights["params"]) + 1 == len(list(loop.scores.parameters()))
    loop.on_step = None
    loop._take_step()
    assert bias["lr"] == pytest.approx(_BIAS_RATE * weights["lr"])
    plain = _ExplainerLoop(trained, Tints(), QUICK, ("paper-sgd", "multiple"), torch.device("cpu"), ALONE)
    assert len(plain.optimizer.param_groups) == 1


def test_a_run_from_before_the_class_bias_is_not_resumed(tmp_path):
    recipe = replace(QUICK, clips=24)
    fit_explainer(tiny_classifier(), Tints(), recipe, objective="paper-sgd", out_dir=tmp_path)
    tensors, header = load_tensors(tmp_path / FILE, kind=KIND)
    header["run"]["objective"] = "paper"
    save_tensors(tmp_path / FILE, tensors, header, kind=KIND)
    with pytest.raises(ModelError, match="its class bias is None, expected True"):
        fit_explainer(tiny_classifier(), Tints(), recipe, objective="paper", out_dir=tmp_path, resume=True)


def test_the_papers_recipe_is_the_papers():
    recipe = EXPLAINER_RECIPES["paper"]
    assert (recipe.optimizer, recipe.lr, recipe.momentum, recipe.weight_decay) == ("sgd", 0.1, 0.9, 1e-3)
    assert recipe.batch_size == 30


def test_channels_are_measured_on_eight_batches(trained):
    """Scores see maps with mean 0, and a deviation of 1 over the root of the channels, whatever the training."""
    source = Tints()
    explainer, _ = fit_explainer(trained, source, replace(QUICK, clips=12), objective="two-sided")
    measured = [indices for split, indices in source.asked if split == "train"][:8]
    with torch.no_grad():
        maps = [trained.features(source.batch("train", indices).clips).maps for indices in measured]
    for scale, channels in enumerate(explainer.scores.channels):
        h = torch.cat([each[scale] for each in maps]).transpose(0, 1).flatten(1)
        torch.testing.assert_close(explainer.scores.get_buffer(f"mean{scale}"), h.mean(1), rtol=1e-3, atol=1e-4)
        gain = 1 / (h.std(1, correction=0).clamp_min(1e-3) * math.sqrt(channels))
        torch.testing.assert_close(explainer.scores.get_buffer(f"gain{scale}"), gain, rtol=1e-2, atol=1e-3)


def test_what_is_passed_on(tmp_path):
    """Steps are told, the response is trained where the objective verifies, the file keeps what is known of the run."""
    steps = []
    explainer, history = fit_explainer(
        tiny_classifier(),
        Tints(),
        replace(QUICK, clips=36, masked_runs=192),
        out_dir=tmp_path,
        report_every=2,
        on_step=lambda *step: steps.append(step),
        provenance={"data": "tints"},
    )
    assert steps == [(1, 3), (2, 3), (3, 3), (1, 2), (2, 2)], "then those of the response"
    assert (tmp_path / RESPONSE_FILE).exists()
    assert [record.step for record in history.records] == [2, 3]
    assert explainer.response is not None
    header = read_header(tmp_path / "explainer.safetensors", kind="explainer")
    assert header["provenance"]["data"] == "tints"
    assert header["metrics"] == {"loss": history.records[-1].loss}
    assert (
        fit_explainer(tiny_classifier(), Tints(), replace(QUICK, clips=12, masked_runs=96), objective="paper")[
            0
        ].response
        is None
    )


def test_a_new_run_does_not_take_up_an_old_response(tmp_path):
    recipe = replace(QUICK, clips=12)
    fit_explainer(tiny_classifier(), Tints(), recipe, out_dir=tmp_path)
    (tmp_path / RESPONSE_FILE).write_text("of an earlier run")
    fit_explainer(tiny_classifier(), Tints(), recipe, out_dir=tmp_path, objective="paper")
    assert not (tmp_path / RESPONSE_FILE).exists()


def test_the_seed_decides_where_training_starts():
    recipe = replace(QUICK, clips=12, lr=1e-9, seed=5)
    explainer, _ = fit_explainer(tiny_classifier(), Tints(), recipe, objective="paper-sgd")
    start, other = (build_scores(tiny_classifier(), 2, seed=seed).class_weights[0] for seed in (5, 0))
    torch.testing.assert_close(explainer.scores.class_weights[0], start)
    assert (explainer.scores.class_weights[0] - other).abs().max() > 1e-3
