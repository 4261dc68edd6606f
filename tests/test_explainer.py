import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from toy_explainer import tiny_classifier, tiny_explainer
from toy_source import Tints
from toy_squares import Adder, Squares
from whytube.classifiers.base import Features
from whytube.data.world import World
from whytube.errors import ArgumentError
from whytube.explainer.explainer import OBJECTIVES, Explainer
from whytube.explainer.fit import SAID, FitCurve
from whytube.explainer.scores import build_scores
from whytube.search import verify as question
from whytube.search.anytime import SILENT, Effort
from whytube.search.masked import fitting, search_copy
from whytube.search.score import value
from whytube.search.verify import SAME, SELECTING_FILLS, Question, Regions, listed, suited_attributes
from whytube.subpath import max_subpath
from whytube.tubes import box_masks, erase, region_iou

CLIPS = torch.rand(Tints().batch("test", range(3)).clips.shape, generator=torch.Generator().manual_seed(0))
METHODS = ("paper", "two-sided", "ours")


def ask(explainer, positive=(0, 1, 2), negative=((1, 2), (2, 0), (0, 1)), clips=CLIPS):
    with torch.no_grad():
        features = explainer.classifier.features(clips)
    return Question(clips, features, torch.tensor(positive), torch.tensor(negative))


def same(first, second):
    assert torch.equal(first.attribute_ids, second.attribute_ids)
    torch.testing.assert_close(first.boxes, second.boxes)
    torch.testing.assert_close(first.scores, second.scores, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("objective", METHODS)
def test_shapes_and_order(objective):
    regions = tiny_explainer(objective)(ask(tiny_explainer(objective)), 3)
    assert regions.boxes.shape == (3, 2, 3, 2, 4)
    assert regions.attribute_ids.shape == regions.scores.shape == (3, 2, 3)
    assert torch.equal(regions.scores, regions.scores.sort(dim=-1, descending=True).values)
    x1, y1, x2, y2 = regions.boxes.unbind(-1)
    assert ((x1 <= x2) & (y1 <= y2) & (x1 >= 0) & (y1 >= 0) & (x2 <= 16) & (y2 <= 16)).all()
    there = regions.scores.isfinite()
    assert (((x2 - x1) * (y2 - y1) > 0).any(-1) == there).all()
    worded = regions.attribute_ids >= 0
    assert (worded <= there).all() if objective == "ours" else torch.equal(worded, there)


@pytest.mark.parametrize("objective", METHODS)
def test_fewer_answers_are_padded(objective):
    explainer = tiny_explainer(objective)
    count = 40 if objective == "ours" else 6
    regions = explainer(ask(explainer), count)
    for b in range(3):
        for n in range(2):
            found = int(regions.scores[b, n].isfinite().sum())
            assert 0 < found <= (explainer.effort.tubes if objective == "ours" else 4)
            assert (regions.attribute_ids[b, n, found:] == -1).all()
            assert (regions.scores[b, n, found:] == -math.inf).all()
            assert not regions.boxes[b, n, found:].any()
            words = [word for word in regions.attribute_ids[b, n, :found].tolist() if word >= 0]
            assert len(set(words)) == len(words)
            if objective == "ours":
                tubes = regions.boxes[b, n, :found]
                assert float(region_iou(tubes[:, None], tubes).fill_diagonal_(0).max()) <= SAME
            else:
                assert len(words) == found == 4


def test_words_are_those_that_a_has_and_b_lacks():
    explainer = tiny_explainer("ours")  # rows: {0, 1, 3}, {1, 2, 3}, {1}
    regions = explainer(ask(explainer), 4)
    # Class 2 has nothing of its own: all that it has.
    suited = [[{0}, {0, 3}], [{2, 3}, {2}], [{1}, {1}]]
    for b in range(3):
        for n in range(2):
            said = set(regions.attribute_ids[b, n].tolist()) - {-1}
            assert said
            assert said <= suited[b][n]


def test_a_class_without_words_is_explained_by_regions():
    explainer = tiny_explainer("ours", table=torch.tensor([[0, 0], [1, 0], [0, 1]]).bool())
    regions = explainer(ask(explainer), 2)
    assert (regions.attribute_ids[0] == -1).all()
    assert regions.scores[0, :, 0].isfinite().all()
    assert regions.boxes[0, :, 0].flatten(1).any(1).all()
    assert (regions.attribute_ids[1:, :, 0] >= 0).all()


@pytest.mark.parametrize("objective", METHODS)
def test_each_negative_has_its_own_answer(objective):
    explainer = tiny_explainer(objective)
    both = explainer(ask(explainer), 2)
    turned = explainer(ask(explainer, negative=((2, 1), (0, 2), (1, 0))), 2)
    same(type(both)(both.boxes.flip(1), both.attribute_ids.flip(1), both.scores.flip(1)), turned)
    assert not torch.equal(both.scores[:, 0], both.scores[:, 1])


@pytest.mark.parametrize("objective", METHODS)
def test_the_answer_does_not_depend_on_the_batch(objective):
    explainer = tiny_explainer(objective)
    together = explainer(ask(explainer), 3)
    for b, (positive, negative) in enumerate([(0, (1, 2)), (1, (2, 0)), (2, (0, 1))]):
        alone = explainer(ask(explainer, (positive,), (negative,), CLIPS[b : b + 1]), 3)
        same(
            alone, type(alone)(together.boxes[b : b + 1], together.attribute_ids[b : b + 1], together.scores[b : b + 1])
        )


@torch.no_grad()
@pytest.mark.parametrize("shapes", ["multiple", "single"])
def test_the_papers_ranking_equals_brute_force(shapes):
    explainer = tiny_explainer("paper", shapes=shapes)
    question = ask(explainer)
    regions = explainer(question, 3)
    maps = explainer.scores.normalise(question.features.maps)
    assert len(maps) == (1 if shapes == "single" else 2)
    volumes = explainer.scores.class_volumes(maps, torch.arange(4).expand(3, 4))
    for b in range(3):
        for n, negative in enumerate(question.negative[b].tolist()):
            paths = [max_subpath(volumes[b, question.positive[b], s] - volumes[b, negative, s]) for s in range(4)]
            order = sorted(range(4), key=lambda s, paths=paths: -float(paths[s].value))[:3]
            assert regions.attribute_ids[b, n].tolist() == order
            for r, s in enumerate(order):
                torch.testing.assert_close(regions.scores[b, n, r], paths[s].value)
                assert torch.equal(regions.boxes[b, n, r], explainer.scores.forms.boxes(paths[s].cells))


@torch.no_grad()
def test_the_single_shape_scores_the_cells_of_the_last_map_by_themselves():
    """Section 3.2: m_cs of a cell is a linear function of its features alone, and a tube's box is that cell."""
    explainer = tiny_explainer("paper-sgd", shapes="single")
    question = ask(explainer)
    last = question.features.maps[-1]
    w_c, w_s = (
        weights[0][:, :, 1, 1] for weights in (explainer.scores.class_weights, explainer.scores.attribute_weights)
    )
    by_hand = torch.einsum("cd,sd,bdtyx->bcstyx", w_c, 1 + w_s, last)
    found = explainer.scores.class_volumes(
        explainer.scores.normalise(question.features.maps), torch.arange(4).expand(3, 4)
    )
    torch.testing.assert_close(found[:, :, :, 0], by_hand)
    height, width = (side / cells for side, cells in zip((16, 16), last.shape[-2:], strict=True))
    boxes = explainer(question, 1).boxes
    there = boxes[boxes.sum(-1) > 0]
    assert len(there)
    assert (there[:, 2] - there[:, 0] == width).all()
    assert (there[:, 3] - there[:, 1] == height).all()
    for objective in ("ours", "two-sided"):
        assert tiny_explainer(objective, shapes="single")(question, 2).boxes.shape == (
            *question.negative.shape,
            2,
            2,
            4,
        )


@torch.no_grad()
def test_scores_are_what_masking_does_and_how_well_the_word_fits():
    explainer = tiny_explainer("ours")
    question = ask(explainer)
    regions = explainer(question, 2)
    places, network = explainer.places(question), search_copy(explainer.classifier)
    raw = places.raw_fit(regions.boxes.flatten(1, 2)).transpose(1, 2).reshape(3, 2, 2, -1)  # without boxes no fit
    for b, n, r in regions.scores.isfinite().nonzero().tolist():
        mask = box_masks(regions.boxes[b, n, r], (16, 16))[None]
        one = Question(
            question.clips[b : b + 1],
            Features(question.features.logits[b : b + 1], ()),
            question.positive[b : b + 1],
            question.negative[b : b + 1, n : n + 1],
        )
        masked = [network(fitting(erase(one.clips, mask, fill=fill), network)) for fill in SELECTING_FILLS]
        risen = sum(float(value(one, logits[None, None])) for logits in masked) / len(masked)
        word = int(regions.attribute_ids[b, n, r])
        fit = SILENT
        if word >= 0:
            fit = SILENT + (1 - SILENT) * float(raw[b, n, r, places.attribute_ids[b] == word])
        assert float(regions.scores[b, n, r]) == pytest.approx(risen + math.log(fit), abs=1e-3)


def test_more_effort_finds_no_worse():
    explainer = tiny_explainer("ours")
    question = ask(explainer)
    *_, before, last = explainer.rounds(question, 1)
    assert (last.scores >= before.scores).all()
    assert torch.equal(last.boxes, explainer(question, 1).boxes)
    assert (last.masked_clips > before.masked_clips).all()
    quick = explainer.with_effort(Effort(tubes=1))
    how = {"effort": 1, "area": 0.1, "tried with": "still, shift"}
    assert quick.settings == {"objective": "ours", "score": "search score", **how}
    assert len(list(quick.rounds(question, 1))) == 1
    assert (quick(question, 1).masked_clips < last.masked_clips).all()


def test_the_features_are_standardised_first():
    plain, scaled = tiny_explainer("paper"), tiny_explainer("paper")
    question = ask(plain)
    means = [h.mean((0, 2, 3, 4)) for h in question.features.maps]
    spreads = [h.std((0, 2, 3, 4)) for h in question.features.maps]
    scaled.scores.standardise(means, spreads)
    moved = Question(
        question.clips,
        Features(question.features.logits, scaled.scores.normalise(question.features.maps)),
        question.positive,
        question.negative,
    )
    same(scaled(question, 2), plain(moved, 2))


@pytest.mark.parametrize("objective", METHODS)
def test_nothing_about_the_classifier_changes(objective):
    explainer = tiny_explainer(objective)
    expected = explainer(question.ask(explainer.classifier, CLIPS), 2)
    network = explainer.classifier
    network.train()
    network.blocks[0].eval()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    modes = [module.training for module in network.modules()]
    same(explainer(question.ask(explainer.classifier, CLIPS), 2), expected)
    assert [module.training for module in network.modules()] == modes
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in network.modules())
    assert all(weight.grad is None for weight in network.parameters())


def test_a_question_about_what_the_classifier_says():
    explainer = tiny_explainer()
    asked = question.ask(explainer.classifier, CLIPS, negatives=2)
    ranked = asked.features.logits.argsort(1, descending=True)
    assert torch.equal(asked.positive, ranked[:, 0])
    assert torch.equal(asked.negative, ranked[:, 1:])
    assert not asked.features.logits.requires_grad
    with pytest.raises(ArgumentError, match="`negatives` must be an integer from 1 to 2, got 3"):
        question.ask(explainer.classifier, CLIPS, negatives=3)


def test_the_world_fits():
    world = World(size=32, frames=2)
    classifier = tiny_classifier(world.classes, size=(32, 32))
    explainer = tiny_explainer(classifier=classifier, words=world.attribute_names, table=world.table)
    regions = explainer(question.ask(explainer.classifier, world.batch("test", range(2)).clips, negatives=3), 2)
    assert regions.boxes.shape == (2, 3, 2, 2, 4)
    assert (regions.attribute_ids[..., 0] >= 0).all()


def test_what_does_not_fit_is_refused():
    explainer = tiny_explainer()
    with pytest.raises(
        ArgumentError, match=r"`table` must be bool of shape \(3, 4\), got torch.int64 of shape \(3, 4\)"
    ):
        tiny_explainer(table=explainer.table.long())
    with pytest.raises(ArgumentError, match=r"`scores` must be for \(classes, attributes\) \(3, 4\), got .*\(3, 5\)"):
        Explainer(
            explainer.classifier,
            build_scores(explainer.classifier, 5),
            explainer.attribute_names,
            explainer.table,
            "ours",
        )
    with pytest.raises(ArgumentError, match="`k` must be an integer of at least 1, got 0"):
        explainer(ask(explainer), 0)


def test_untrained_scores_follow_the_seed_and_leave_the_global_one():
    classifier = tiny_classifier()
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first, again, other = (build_scores(classifier, 4, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(torch.rand(1), expected)
    assert torch.equal(first.class_weights[0], again.class_weights[0])
    assert not torch.equal(first.class_weights[0], other.class_weights[0])
    assert first.forms.grids == ((2, 8, 8), (2, 4, 4))
    assert first.channels == (16, 32)


def test_listed():
    rows = torch.tensor([[0, 1, 1], [1, 0, 0], [0, 0, 0]]).bool()
    assert listed(rows).tolist() == [[1, 2], [0, -1], [-1, -1]]
    assert listed(torch.zeros(1, 3).bool()).tolist() == [[-1]]


def test_the_objectives_that_verify():
    assert [name for name, objective in OBJECTIVES.items() if objective.verify] == ["ours", "ours+class"]
    assert [tiny_explainer(name).verifies for name in OBJECTIVES] == [False, False, False, True, True]


def test_without_a_curve_no_fit_is_told():
    explainer = tiny_explainer("ours")
    assert explainer(ask(explainer), 2).fits is None


def test_words_that_are_likely_wrong_are_taken_back():
    """Of a constant chance below SAID no word is said, else every one; one that was never drawn stays, untold."""
    for chance, said in ((SAID - 0.1, False), (SAID + 0.1, True), (SAID, True)):
        curve = FitCurve((0.0, 1.0, 0.0), (0.0,), (chance,), (3, 0, 3, 3))
        explainer = replace(tiny_explainer("ours"), fit=curve)
        question = ask(explainer)
        places = explainer.places(question)
        ids = torch.tensor([[[3, 1]] * 2, [[3, 1]] * 2, [[1, -1]] * 2])
        boxes = torch.tensor([2.0, 3, 9, 11]).expand(3, 2, 2, 2, 4)
        regions = Regions(boxes, ids, torch.zeros(3, 2, 2))
        spoken = explainer.spoken(places, regions)
        assert torch.equal(spoken.attribute_ids[:2, :, 0] == 3, torch.full((2, 2), said))
        assert (spoken.attribute_ids[:2, :, 1] == 1).all()
        assert (spoken.attribute_ids[2, :, 0] == 1).all()
        told = spoken.fits[:2, :, 0]
        torch.testing.assert_close(told, torch.full((2, 2), chance if said else torch.nan), equal_nan=True)
        assert spoken.fits[:2, :, 1].isnan().all()
        assert torch.equal(spoken.boxes, regions.boxes)
        # Fits that a search has told are those that are told again; of a word without one it told another number.
        again = explainer.spoken(places, replace(regions, fits=torch.full((3, 2, 2), chance + 0.01)))
        assert torch.equal(again.attribute_ids, spoken.attribute_ids)
        torch.testing.assert_close(again.fits, spoken.fits + 0.01, equal_nan=True)


@torch.no_grad()
def test_words_propose_their_best_tubes_in_two_forms():
    explainer = tiny_explainer("ours")
    question = ask(explainer)
    places = explainer.places(question)
    boxes, exists = explainer.word_tubes(places, question)
    count = places.attribute_ids.shape[1]
    assert boxes.shape == (3, 2, 2 * count, 2, 4)
    suited = suited_attributes(explainer.table, question)  # (B, N, S)
    for b, n, s in np.ndindex(3, 2, count):
        word = int(places.attribute_ids[b, s])
        expected = [word >= 0 and bool(suited[b, n, word])] * 2
        assert exists[b, n, 2 * s : 2 * s + 2].tolist() == expected
    assert 0 < exists.sum() < exists.numel()
    volumes = explainer.word_volumes(question, places.attribute_ids)
    for s in range(count):
        paths = [max_subpath(volumes[0, s, form, None]) for form in range(volumes.shape[2])]
        order = sorted(range(len(paths)), key=lambda form: -float(paths[form].value))[:2]
        for place, form in enumerate(order):
            cells = paths[form].cells.clone()
            cells[:, 0] = torch.where(cells[:, 0] >= 0, form, -1)
            expected = explainer.scores.forms.boxes(cells)
            for n in range(2):
                assert torch.equal(boxes[0, n, 2 * s + place], expected)


def test_words_without_boxes_are_found_by_their_scores():
    explainer = tiny_explainer("ours")
    curve = FitCurve((0.0, 1.0, 0.0), (0.0,), (0.6,), (3, 0, 3, 3))
    with_fit = replace(explainer, fit=curve)
    question = ask(explainer)
    ids = torch.tensor([[0, 1, 3], [1, 2, -1], [1, -1, -1]])
    with torch.no_grad():
        plain, mixed = explainer.word_volumes(question, ids), with_fit.word_volumes(question, ids)
        every = explainer.scores(question.features.maps)
        torch.testing.assert_close(plain[1, 1], every[1, 2])
        for b, s in ((0, 1), (1, 0), (2, 0)):
            torch.testing.assert_close(mixed[b, s], every[b, 1])  # never drawn
        drawn = with_fit.places(question).volumes()
        assert torch.equal(mixed[0, 2], drawn[0, 2])
        assert not torch.equal(mixed[0, 0], plain[0, 0])


def test_a_network_in_one_part_cannot_be_predicted():
    model = Adder().eval()
    explainer = Explainer(model, build_scores(model, 4).eval(), Squares.attribute_names, Squares.table, "ours")
    with pytest.raises(ArgumentError, match="`predicted` must be a network that can be run in parts, got adder"):
        explainer.predicted()


def test_moving_moves_all_its_parts():
    explainer = tiny_explainer("ours")
    explainer = replace(explainer, response=explainer.predicted().response)
    assert explainer.to("meta") is explainer
    assert explainer.device.type == explainer.classifier.device.type == "meta"
    assert explainer.response.keep.device.type == "meta"


def test_what_explains_without_words_has_the_same_parts():
    effort, other = Effort(tubes=3), Effort(tubes=5)
    explainer = tiny_explainer("ours").with_effort(effort)
    assert explainer.effort is effort
    assert (explainer.regions().effort, explainer.regions(other).effort) == (effort, other)
    response = explainer.predicted().response
    own = replace(explainer, response=response)
    for made in (own.regions(), own.predicted()):
        assert made.response is response
        assert made.classifier is explainer.classifier
    assert explainer.regions().response is None
    assert own.predicted().effort is effort
