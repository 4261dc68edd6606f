"""The cost of an answer is counted, however the method runs the classifier."""

import copy

import pytest
import torch

from toy_explainer import tiny_classifier
from toy_squares import Adder
from whytube.classifiers import C3DResNet
from whytube.evaluation.runs import counted, watched
from whytube.search.grad_cam import contrastive_maps
from whytube.search.response import back_share
from whytube.search.verify import ask, best_regions


@pytest.fixture
def model():
    return tiny_classifier()


def clips(count):
    return torch.rand(count, 3, 2, 16, 16, generator=torch.Generator().manual_seed(0))


def test_every_way_to_run_it_counts_once(model):
    with counted(model) as runs, torch.no_grad():
        model(clips(3))
        assert runs.clips == 3
        model.features(clips(2))
        model.forward(clips(1))
        assert runs.clips == 6
    model(clips(3))
    assert runs.clips == 6, "only what happens in the block"


def test_copies_count_too(model):
    fast, other = model.for_inference(), copy.deepcopy(model)
    with counted(model) as runs, torch.no_grad():
        fast(clips(2))
        other(clips(1))
        copy.deepcopy(model)(clips(1))
    assert runs.clips == 4


def test_parts_of_runs(model):
    cut = model.response_cut
    share = back_share(model, cut)
    with counted(model) as runs, torch.no_grad():
        first = model.front(clips(1), cut)
        model.back(first, cut)
        assert runs.clips == pytest.approx(1), "both parts of a run are a run"
        model.back(first.repeat(5, 1, 1, 1, 1), cut)
        assert runs.clips == pytest.approx(1 + 5 * share), "a second part is a share of a run"
        model(clips(2))
        assert runs.clips == pytest.approx(3 + 5 * share)
        model.front(clips(9), cut)
        assert runs.clips == pytest.approx(3 + 5 * share + 9 * (1 - share)), "first parts alone are not free"


def test_gradients_count_as_two_more(model):
    with counted(model) as runs:
        x = clips(2).requires_grad_()
        logits = model(x)
        assert runs.clips == 6
        torch.autograd.grad(logits[:, 0].sum(), x, retain_graph=True)
        assert runs.clips == 6, "the first is paid for"
        torch.autograd.grad(logits[:, 1].sum(), x)
        assert runs.clips == 10
    question = ask(model, clips(2), negatives=2)
    with counted(model) as runs:
        contrastive_maps(model, question.clips, question.positive, question.negative)
    assert runs.clips == 2 * (3 + 2)


def test_verification_counts_different_tubes(model):
    question = ask(model, clips(2), negatives=2)
    tubes = torch.zeros(3, 2, 4)
    for m in range(3):
        tubes[m] = torch.tensor([m, m, m + 6, m + 6])
    boxes = tubes[None, None].expand(2, 2, -1, -1, -1)
    with counted(model) as runs:
        best_regions(model, question, boxes, torch.ones(2, 2, 3, dtype=torch.bool), 1)
    assert runs.clips == 2 * 3 * 2, "clips, tubes and fills; a tube for two negatives is masked once"


def test_the_class_is_as_it_was_also_after_errors():
    before = dict(vars(C3DResNet)), dict(vars(Adder))
    for kind in (C3DResNet, Adder):
        with watched(kind, lambda _name, _given, result: result):
            assert "forward" in vars(kind)
        with pytest.raises(KeyError), watched(kind, lambda _name, _given, result: result):
            raise KeyError
    assert (dict(vars(C3DResNet)), dict(vars(Adder))) == before


def test_a_run_that_fails_does_not_hide_the_next(model):
    with counted(model) as runs, torch.no_grad():
        with pytest.raises(Exception):  # noqa: B017, PT011 - whatever torch says
            model(torch.rand(1, 5, 2, 16, 16))
        model(clips(1))
    assert runs.clips == 1
