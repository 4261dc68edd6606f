"""400 classes and 100 words: what a step and a question cost does not grow with the classes, and nothing else breaks.

Work and memory are counted, not timed.
"""

import json

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from typer.testing import CliRunner

import whytube
from many_classes import Many
from toy_explainer import saved_model, tiny_classifier, tiny_explainer, tiny_maps, tiny_scores
from toy_networks import made_clip
from whytube.cli import app
from whytube.evaluation import evaluate
from whytube.explainer import explainer as explaining
from whytube.explainer.objective import class_term, drawn_negatives
from whytube.models import load_model
from whytube.report import write_report
from whytube.search.verify import ask
from whytube.training import Recipe, fit_explainer
from whytube.training.plan import Live

FEW, MANY = (24, 40), (400, 100)


def made(objective, sizes):
    source = Many(*sizes)
    classifier = tiny_classifier(source.classes)
    explainer = tiny_explainer(objective, table=source.table, classifier=classifier)
    return explainer, ask(classifier, source.batch("test", range(2)).clips)


def peak(classes, count):
    """Bytes that live at one time in a step of the class term, and those of its weights."""
    scores, maps = tiny_scores(classes), tiny_maps(4)
    positive, present = torch.arange(4), torch.ones(4, 5, dtype=torch.bool)
    negative = drawn_negatives(positive, classes, count, torch.Generator().manual_seed(0))
    weights = [*scores.class_weights, *scores.attribute_weights]
    with Live() as live:
        torch.autograd.grad(class_term(scores, maps, positive, present, negative=negative), weights)
    return live.most, sum(weight.nbytes for weight in weights)


def test_a_step_with_few_negatives_takes_no_more_memory_than_its_weights_do():
    (few, of_few), (many, of_many), (every, _) = (peak(c, n) for c, n in ((24, 8), (400, 8), (400, None)))
    assert few > 5 * (of_few + of_many), "else this says nothing"
    assert many - few <= 4 * (of_many - of_few)
    assert every > 10 * many


def work(call):
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        call()
    return counter.get_total_flops()


def test_the_tubes_of_one_pair_cost_the_same_with_any_number_of_classes():
    costs = []
    for classes in (FEW[0], MANY[0]):
        explainer, question = made("paper", (classes, FEW[1]))
        costs.append(work(lambda one=explainer, asked=question: one.attribute_tubes(asked)))
    assert costs[0] == costs[1] > 0


def test_words_of_a_class_cost_the_same_with_any_number_of_words_and_classes():
    costs = []
    for sizes in (FEW, MANY):
        explainer, question = made("ours", sizes)
        costs.append(work(lambda one=explainer, asked=question: one.word_tubes(one.places(asked), asked)))
    assert costs[0] == costs[1] > 0


@torch.no_grad()
@pytest.mark.parametrize("bytes_", [1, 1 << 30])
def test_the_asked_classes_have_the_answers_that_they_have_among_all(bytes_, monkeypatch):
    monkeypatch.setattr(explaining, "VOLUME_BYTES", bytes_)
    explainer, question = made("paper", (12, 7))
    question = ask(explainer.classifier, question.clips, negatives=4)
    boxes, values = explainer.attribute_tubes(question)
    maps = explainer.scores.normalise(question.features.maps)
    every = explainer.scores.class_volumes(maps, torch.arange(7).expand(2, 7))
    path = whytube.subpath.max_subpath_difference(every, question.positive, question.negative)
    torch.testing.assert_close(values, path.value)
    assert torch.equal(boxes, explainer.scores.forms.boxes(path.cells))


@pytest.mark.parametrize("objective", ["paper", "two-sided", "ours", "ours+class"])
def test_everything_works_with_many_classes_and_words(objective, tmp_path):
    source = Many()
    recipe = Recipe(clips=8, batch_size=4, optimizer="adamw", lr=1e-3, negatives=4, masked_runs=96)
    explainer, _ = fit_explainer(tiny_classifier(source.classes), source, recipe, objective=objective)
    model = load_model(saved_model(tmp_path / "model", explainer))
    clip = made_clip(model.classifier)
    answer = whytube.explain(clip, model, why_not="class 399")
    assert answer.negative == "class 399"
    assert {reason.attribute for reason in answer.reasons} <= {*source.attribute_names, ""}
    page = write_report(tmp_path / "page.html", explanations=[(answer, None)])
    assert page.stat().st_size < 1 << 20
    if objective == "paper":
        assert len(whytube.explain_all(clip, model)) == 399
    assert list(evaluate([model], model.classifier, source, count=1, negatives=2).methods) == [objective]
    told = CliRunner().invoke(app, ["models", "info", str(tmp_path / "model"), "--json"], catch_exceptions=False)
    assert len(json.loads(told.stdout)["classes"]) == 400
