"""What masking does, predicted: exact where features are pixels, at its share of the cost."""

import pytest
import torch
from torch import nn

from toy_explainer import tiny_classifier
from toy_source import Tints
from toy_squares import SIZE, Adder, Parted, Squares, ask
from whytube.classifiers.base import Features, VideoClassifier
from whytube.errors import ArgumentError
from whytube.explainer.explainer import Explainer
from whytube.explainer.scores import build_scores
from whytube.search import verify
from whytube.search.anytime import Effort
from whytube.search.masked import masked_logits
from whytube.search.response import FILTERS, Predictor, Response, back_share, build_response, untrained_response


class Layers(VideoClassifier):
    """Two convolutions of one tap and a linear layer."""

    architecture = "layers"
    cuts = ("first", "second")
    response_cut = "first"

    def __init__(self):
        super().__init__(("a", "b"), frames=2, size=(4, 4))
        self.first, self.second, self.head = nn.Conv3d(3, 4, 1), nn.Conv3d(4, 8, 1), nn.Linear(8, 2)

    @property
    def settings(self):
        return {}

    def features(self, clips):
        h = self.front(clips, "first")
        return Features(self.back(h, "first"), (h,))

    def front(self, clips, cut):
        h = self.first(clips).relu()
        return h if cut == "first" else self.second(h).relu()

    def back(self, x, cut):
        return self.head((self.second(x).relu() if cut == "first" else x).mean((2, 3, 4)))


def aligned(count, tubes, seed=0):
    """Tubes (B, M, T, 4) whose boxes are on the cells of 4 x 4 pixels; each misses a frame."""
    generator = torch.Generator().manual_seed(seed)
    low = torch.randint(0, 5, (count, tubes, 1, 2), generator=generator)
    boxes = torch.cat([low, low + torch.randint(1, 4, low.shape, generator=generator)], -1) * 4.0
    boxes = boxes.repeat(1, 1, 4, 1)
    boxes[:, :, 3] = 0
    return boxes


@torch.no_grad()
def test_untrained_it_is_masking_where_features_are_pixels():
    model = Parted().eval()
    clips = Squares().batch("test", range(3)).clips
    question = verify.ask(model, clips)
    boxes = aligned(3, 5)
    every = torch.ones(3, 5, dtype=torch.bool)
    predictor = Predictor(model, build_response(model), clips)
    masked = masked_logits(model, question, boxes, every, fill="zero")
    torch.testing.assert_close(predictor(boxes), masked, atol=1e-4, rtol=1e-4)
    assert (masked - question.features.logits[:, None]).abs().max() > 1, "masking does something"


@torch.no_grad()
def test_a_part_of_a_cell_changes_in_part():
    model = Parted().eval()
    clips = torch.full((1, 3, 4, SIZE, SIZE), 0.5)
    predictor = Predictor(model, build_response(model), clips)
    whole, half = (torch.tensor([8.0, 8, 8 + side, 16]).expand(1, 1, 4, 4) for side in (8, 4))
    before = model(clips)
    torch.testing.assert_close(2 * (before - predictor(half)[0]), before - predictor(whole)[0], rtol=1e-3, atol=1e-4)
    none = torch.zeros(1, 1, 4, 4)
    torch.testing.assert_close(predictor(none)[0], before)


@torch.no_grad()
def test_black_features_are_put_where_the_tube_is():
    torch.manual_seed(0)
    model = Layers().eval()
    response = build_response(model)
    black = model.front(torch.zeros(1, 3, 2, 4, 4), "first").mean((0, 2, 3, 4))
    torch.testing.assert_close(response.put[:, 0], black)
    clips = torch.rand(2, 3, 2, 4, 4)
    question = verify.ask(model, clips)
    boxes = torch.tensor([1.0, 0, 3, 2]).expand(2, 1, 2, 4)
    masked = masked_logits(model, question, boxes, torch.ones(2, 1, dtype=torch.bool), fill="zero")
    torch.testing.assert_close(Predictor(model, response, clips)(boxes), masked, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_predictions_of_a_batch_are_those_of_its_clips():
    model = tiny_classifier(frames=4, size=(32, 32))
    clips = Tints(size=32, frames=4).batch("test", range(3)).clips
    response = untrained_response(model)
    boxes = aligned(3, 11)  # more than are predicted at a time
    together = Predictor(model, response, clips)(boxes)
    assert together.shape == (3, 11, 3)
    for b in range(3):
        alone = Predictor(model, response, clips[b : b + 1])(boxes[b : b + 1])
        torch.testing.assert_close(alone[0], together[b], rtol=1e-4, atol=1e-4)


def test_predicting_leaves_the_network_in_its_mode():
    model = tiny_classifier().train()
    clips = Tints().batch("test", [0]).clips
    predictor = Predictor(model, build_response(model), clips)
    predictor(torch.tensor([2.0, 2, 8, 8]).expand(1, 2, 2, 4))
    assert model.training
    assert all(weight.grad is None for weight in model.parameters())


def test_the_share_of_the_second_part():
    model = Layers()
    cells = 2 * 4 * 4
    first, second, head = 12 * cells, 32 * cells, 16
    assert back_share(model, "first") == pytest.approx((second + head) / (first + second + head))
    assert back_share(model, "second") == pytest.approx(head / (first + second + head))
    assert build_response(model).cost == back_share(model, "first")
    assert not any(module._forward_hooks for module in model.modules())
    shares = [back_share(tiny_classifier(), cut) for cut in tiny_classifier().cuts]
    assert shares == sorted(shares, reverse=True)
    assert 0 < shares[-1] < shares[0] < 1


def test_networks_without_cuts_have_none():
    model = Adder().eval()
    assert build_response(model) is None
    assert untrained_response(model) is None
    with pytest.raises(ArgumentError, match="adder cannot be run in parts"):
        model.front(torch.rand(1, 3, 4, 32, 32), "cells")
    scores = build_scores(model, 4)
    explainer = Explainer(model, scores.eval(), Squares.attribute_names, Squares.table, "ours")
    with pytest.raises(ArgumentError, match="`predicted` must be a network that can be run in parts, got adder"):
        explainer.predicted()


def test_an_untrained_one_is_built_once_and_the_same_each_time():
    model = tiny_classifier()
    assert untrained_response(model) is untrained_response(model)
    first, again = build_response(model), build_response(model)
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in first.state_dict().items())


def test_shapes_and_gradients_of_a_response():
    response = Response("cells", 5, 0.25)
    h, covered = torch.rand(2, 5, 3, 6, 7), torch.zeros(2, 3, 6, 7)
    assert torch.equal(response(h, covered), h), "nothing is masked, nothing changes"
    covered[:, 1, 2:4, 2:4] = 1
    found = response(h, covered)
    assert found.shape == h.shape
    assert not found[:, :, 1, 2:4, 2:4].any()
    found.sum().backward()
    assert response.keep.grad.shape == response.put.grad.shape == (5, FILTERS)
    assert all(weight.grad is not None for weight in response.parameters())


def test_a_search_of_a_network_in_parts_takes_predictions():
    question, _ = ask(1, negatives=1)
    model = Parted().eval()
    from whytube.search.regions import RegionSearch

    found = RegionSearch(model)(question, 1)
    assert (found.masked_clips == Effort().masked_clips(untrained_response(model))).all()
    assert found.scores.isfinite().all()


def test_what_is_kept_and_put_is_seen_through_filters():
    """It is h' = relu(h (1 - A m) + B m), worked out cell by cell; the first filter is the coverage itself."""
    torch.manual_seed(0)
    response = Response("cells", 2, 0.5)
    with torch.no_grad():
        response.keep.normal_(std=0.5)
        response.put.normal_()
    h, covered = torch.randn(1, 2, 3, 5, 6), torch.rand(1, 3, 5, 6)
    assert torch.equal(response.filters(covered[:, None])[:, 0], covered)
    found = response(h, covered)
    padded = nn.functional.pad(covered, (2, 2, 2, 2, 1, 1))[0]
    for t, y, x in ((0, 0, 0), (1, 2, 3), (2, 4, 5)):
        window = padded[t : t + 3, y : y + 5, x : x + 5]
        m = (response.filters.weight[:, 0] * window).sum((1, 2, 3))
        expected = (h[0, :, t, y, x] * (1 - response.keep @ m) + response.put @ m).relu()
        torch.testing.assert_close(found[0, :, t, y, x], expected)


def test_filters_start_small_beside_the_coverage():
    weights = Response("cells", 2, 0.5).filters.weight[1:].detach()
    assert weights.std().item() == pytest.approx(0.05, rel=0.15)
    assert weights.mean().item() == pytest.approx(0, abs=0.01)


def test_other_weights_have_another_response():
    model = tiny_classifier()
    first = untrained_response(model)
    assert first.cut == model.response_cut
    with torch.no_grad():
        next(model.parameters()).add_(1)
    assert untrained_response(model) is not first


def test_shares_are_measured_once(monkeypatch):
    model, ran = Layers(), []
    monkeypatch.setattr(model, "back", lambda x, cut: ran.append(cut) or Layers.back(model, x, cut))
    first = [back_share(model, cut) for cut in ("first", "second")]
    assert [back_share(model, cut) for cut in ("first", "second")] == first
    assert ran == ["first", "second"]
