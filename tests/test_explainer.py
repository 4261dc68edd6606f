import math

import pytest
import torch

from toy_explainer import tiny_classifier, tiny_explainer
from toy_source import Tints
from whytube.classifiers.base import Features
from whytube.data.world import World
from whytube.errors import ArgumentError
from whytube.explainer.explainer import NEARLY, Explainer
from whytube.explainer.scores import build_scores
from whytube.search import verify as question
from whytube.search.verify import VERIFYING_FILL, Question, listed
from whytube.subpath import max_subpath
from whytube.tubes import Tube, erase, tube_mask

CLIPS = Tints().batch("test", range(3)).clips
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
    there = regions.attribute_ids >= 0
    assert (((x2 - x1) * (y2 - y1) > 0).any(-1) == there).all()
    assert torch.equal(regions.scores.isfinite(), there)


@pytest.mark.parametrize("objective", METHODS)
def test_fewer_answers_are_padded(objective):
    explainer = tiny_explainer(objective)
    regions = explainer(ask(explainer), 6)
    suited = [[1, 2], [2, 1], [1, 1]]
    for b in range(3):
        for n in range(2):
            found = int((regions.attribute_ids[b, n] >= 0).sum())
            assert found == (suited[b][n] if objective == "ours" else 4)
            assert (regions.attribute_ids[b, n, found:] == -1).all()
            assert (regions.scores[b, n, found:] == -math.inf).all()
            assert not regions.boxes[b, n, found:].any()
            assert len(set(regions.attribute_ids[b, n, :found].tolist())) == found


def test_words_are_those_that_a_has_and_b_lacks():
    explainer = tiny_explainer("ours")  # rows: {0, 1, 3}, {1, 2, 3}, {1}
    regions = explainer(ask(explainer), 4)
    words = [[set(row.tolist()) - {-1} for row in clip] for clip in regions.attribute_ids]
    assert words == [[{0}, {0, 3}], [{2, 3}, {2}], [{1}, {1}]]  # class 2 has nothing of its own: all that it has


def test_a_class_without_words_has_no_answer():
    explainer = tiny_explainer("ours", table=torch.tensor([[0, 0], [1, 0], [0, 1]]).bool())
    regions = explainer(ask(explainer), 2)
    assert (regions.attribute_ids[0] == -1).all()
    assert (regions.scores[0] == -math.inf).all()
    assert not regions.boxes[0].any()
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
def test_the_papers_ranking_equals_brute_force():
    explainer = tiny_explainer("paper")
    question = ask(explainer)
    regions = explainer(question, 3)
    volumes = explainer.scores.class_volumes(question.features.maps, torch.arange(4).expand(3, 4))
    for b in range(3):
        for n, negative in enumerate(question.negative[b].tolist()):
            paths = [max_subpath(volumes[b, question.positive[b], s] - volumes[b, negative, s]) for s in range(4)]
            order = sorted(range(4), key=lambda s, paths=paths: -float(paths[s].value))[:3]
            assert regions.attribute_ids[b, n].tolist() == order
            for r, s in enumerate(order):
                torch.testing.assert_close(regions.scores[b, n, r], paths[s].value)
                assert torch.equal(regions.boxes[b, n, r], explainer.scores.forms.boxes(paths[s].cells))


@torch.no_grad()
def test_the_verified_ranking_equals_brute_force():
    explainer = tiny_explainer("ours")
    question = ask(explainer)
    regions = explainer(question, 2)
    volumes = explainer.scores.attribute_volumes(question.features.maps)
    for b in range(3):
        for n, negative in enumerate(question.negative[b].tolist()):
            of_a, of_b = explainer.table[question.positive[b]], explainer.table[negative]
            words = of_a & ~of_b if (of_a & ~of_b).any() else of_a
            candidates = []
            for word in words.nonzero()[:, 0].tolist():
                likely = [tube for tube, good in tubes(explainer, volumes[b, word]) if good]
                candidates.append((max(rise(explainer, question, b, negative, tube) for tube in likely), word))
            candidates.sort(reverse=True)
            for r, (value, word) in enumerate(candidates[:2]):
                assert regions.attribute_ids[b, n, r] == word
                assert float(regions.scores[b, n, r]) == pytest.approx(value, abs=1e-4)


def tubes(explainer, volume):
    """Best tube of every form of a volume (K, T, H, W), and whether it is nearly as good as the best of all."""
    top = max(float(max_subpath(plane[None]).value) for plane in volume)
    for form in range(len(volume)):
        value, _, _, cells = max_subpath(volume[form : form + 1])
        cells = cells.clone()
        cells[:, 0] = torch.where(cells[:, 0] >= 0, form, -1)
        boxes = explainer.scores.forms.boxes(cells).numpy()
        there = boxes[:, 2] > boxes[:, 0]
        yield Tube(there.nonzero()[0], boxes[there]), value >= NEARLY * top if top > 0 else value == top


def rise(explainer, question, b, negative, tube):
    mask = tube_mask([tube], [0, 1], (16, 16), resolution=(16, 16))
    after = explainer.classifier(erase(question.clips[b : b + 1], mask, fill=VERIFYING_FILL))
    p, q = (float(x.softmax(1)[0, negative]) for x in (question.features.logits[b : b + 1], after))
    return math.log(q / (1 - q)) - math.log(p / (1 - p))


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
