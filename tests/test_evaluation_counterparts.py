"""What is due to what: the paper's tubes with our search, and ours without one."""

from dataclasses import replace

import pytest
import torch

from test_explainer import ask
from toy_explainer import tiny_classifier, tiny_explainer
from toy_source import Tints
from whytube.errors import ArgumentError
from whytube.evaluation import evaluate, make_methods
from whytube.evaluation.methods import COUNTERPARTS, Called, Remembered, Unverified, Verified, available
from whytube.evaluation.methods.counterparts import _each_once
from whytube.explainer.explainer import OBJECTIVES
from whytube.explainer.places import place_boxes
from whytube.search.anytime import Effort
from whytube.search.masked import masked_logits
from whytube.search.response import untrained_response
from whytube.search.score import value
from whytube.search.verify import SELECTING_FILLS
from whytube.tubes import region_iou


@pytest.fixture
def paper():
    return tiny_explainer("paper")


def test_every_objective_has_one():
    assert set(COUNTERPARTS.values()) == set(OBJECTIVES)
    assert {"paper+verified", "paper-sgd+verified", "ours-unverified", "ours+class-unverified"} <= set(COUNTERPARTS)


@torch.no_grad()
def test_scores_of_a_tube_are_added_up_along_it(paper):
    question, forms = ask(paper), paper.scores.forms
    own = place_boxes(forms)
    once = torch.tensor([int((own == box).all(1).sum()) == 1 for box in own]).nonzero()[:, 0]  # at edges boxes repeat
    places = once[torch.randint(len(once), (3, 2, 5, 2), generator=torch.Generator().manual_seed(0))]
    found = paper.tube_scores(question, own[places])
    volumes = paper.scores.class_volumes(question.features.maps, torch.arange(4).expand(3, 4))
    for b, n, r in torch.cartesian_prod(*(torch.arange(size) for size in (3, 2, 5))).tolist():
        apart = volumes[b, question.positive[b]] - volumes[b, question.negative[b, n]]  # (S, K, t, H, W)
        expected = sum(apart[:, :, t].flatten(1)[:, places[b, n, r, t]] for t in range(2))
        torch.testing.assert_close(found[b, n, r], expected)


def test_scores_of_no_tube_are_zero(paper):
    question = ask(paper)
    assert not paper.tube_scores(question, torch.zeros(3, 2, 1, 2, 4)).any()


def test_the_papers_tubes_are_tried_and_the_classifier_decides(paper):
    question = ask(paper)
    method = Verified(paper.with_effort(Effort(tubes=12)), "paper+verified")
    found = method(question, 2)
    assert found.boxes.shape == (3, 2, 2, 2, 4)
    assert (found.masked_clips >= 24).all()
    tried = torch.ones(3, 2, 2, dtype=torch.bool)
    runs = [
        masked_logits(paper.classifier, question, found.boxes, tried, fill=fill, exact=False)
        for fill in SELECTING_FILLS
    ]
    measured = torch.stack([value(question, logits) for logits in runs]).mean(0)
    there = found.scores > -torch.inf
    assert there[..., 0].all()
    torch.testing.assert_close(found.scores[there], measured[there], rtol=1e-3, atol=1e-3)
    best = paper.tube_scores(question, found.boxes).argmax(-1)
    assert torch.equal(found.attribute_ids[..., 0], best[..., 0]), "named by the largest score along it"
    assert (found.attribute_ids[..., 0] != found.attribute_ids[..., 1]).all()


def test_proposals_are_the_papers(paper, monkeypatch):
    import whytube.evaluation.methods.counterparts as module

    question, seen = ask(paper), []

    def search(*words, given, **options):
        seen.extend(given)
        return real(*words, given=given, **options)

    real = module.search
    monkeypatch.setattr(module, "search", search)
    Verified(paper, "paper+verified")(question, 1)
    boxes, values = paper.attribute_tubes(question)
    assert torch.equal(seen[0][0], boxes)
    assert torch.equal(seen[0][1], values.isfinite())
    assert len(seen) == 2, "and those of the map, as ours has them"


def test_words_are_said_once():
    scores = torch.tensor([[[[3.0, 2, 1], [3, 1, 2], [3, 2, 1], [9, 8, 7]]]])
    assert _each_once(scores).tolist() == [[[0, 2, 1, 1]]]


def test_ours_without_a_search_tries_nothing():
    ours = tiny_explainer("ours")
    question = ask(ours)
    calls = []
    handle = ours.classifier.register_forward_pre_hook(lambda *_: calls.append(1))
    found = Unverified(ours, "ours-unverified")(question, 2)
    handle.remove()
    assert not calls
    assert found.masked_clips is None
    places = ours.places(question)
    boxes, exists = ours.word_tubes(places, question)
    for b, n, r in (found.scores > -torch.inf).nonzero().tolist():
        same = region_iou(found.boxes[b, n, r], boxes[b, n]) > 0.999
        assert (same & exists[b, n]).any(), "a tube of a word that A has and B lacks"
        word = int(found.attribute_ids[b, n, r])
        fit = places.fits_or_raw(found.boxes)[b, n, r, places.attribute_ids[b] == word]
        assert float(found.scores[b, n, r]) == pytest.approx(float(fit), abs=1e-5)
        of_word = places.fits_or_raw(boxes)[b, n, :, places.attribute_ids[b] == word][:, 0]
        own = torch.arange(boxes.shape[2]) // 2 == int((places.attribute_ids[b] == word).nonzero())
        assert float(found.scores[b, n, r]) == pytest.approx(float(of_word[own].max()), abs=1e-5)
    assert (found.scores[..., 0] >= found.scores[..., 1]).all()


def test_predictions_are_those_of_whatever_explainer_has_learnt_them(paper):
    ours = tiny_explainer("ours", classifier=paper.classifier)
    learnt = replace(ours, response=untrained_response(paper.classifier))
    (made,) = make_methods(["paper+verified"], paper.classifier, Tints(), like=paper, explainers={"ours": learnt})
    assert made.response is learnt.response
    (made,) = make_methods(["paper+verified"], paper.classifier, Tints(), like=paper)
    assert made.response is None


def test_they_stand_in_a_table():
    source, how = Tints(), Effort(tubes=4)
    told = {"classifier": tiny_classifier(), "words": source.attribute_names, "table": source.table}
    ours, paper = (tiny_explainer(name, **told).with_effort(how) for name in ("ours", "paper"))
    own = Remembered(ours)
    names = ["ours-unverified", "paper+verified", "old+verified"]
    with pytest.raises(ArgumentError, match=r"unknown method 'old\+verified'"):
        make_methods(names, ours.classifier, source, like=own)
    assert available(["centre", *names[:2]], {"ours": ours}) == ["centre", "ours-unverified"]
    with pytest.raises(ArgumentError, match=r"`paper\+verified` must be beside an explainer called 'paper'"):
        make_methods(names[:2], ours.classifier, source, like=own)
    made = make_methods(names[:2], ours.classifier, source, like=own, explainers={"paper": paper})
    assert [type(method) for method in made] == [Unverified, Verified]
    methods = [own, Called(paper, "paper"), *made]
    found = evaluate(methods, ours.classifier, source, count=2, negatives=2, fills=("mean", "zero")).methods
    assert list(found) == ["ours", "paper", "ours-unverified", "paper+verified"]
    cost = {name: one.figure("masked_clips").mean for name, one in found.items()}
    assert cost["paper"] == cost["ours-unverified"] == 0
    assert cost["paper+verified"] == pytest.approx(cost["ours"], rel=0.2)
