"""The losses: equal to their straightforward writing, and what they can and cannot reach."""

import pytest
import torch
from torch.nn.functional import conv2d, softplus

from benchmarks.train import straightforward
from studies.objective_loss import floor, zero_level
from toy_explainer import tiny_maps, tiny_scores
from whytube.data.tables import read_table
from whytube.data.world import World
from whytube.errors import ArgumentError
from whytube.explainer import values
from whytube.explainer.explainer import OBJECTIVES, Objective, find_objective
from whytube.explainer.objective import attribute_term, class_term, drawn_negatives, loss_terms
from whytube.explainer.scores import Forms, Scores
from whytube.explainer.values import difference_values
from whytube.subpath.reference import compose

POSITIVE = torch.tensor([2, 0, 3])
EVEN = torch.tensor([[1, 0, 1, 0, 0], [0, 1, 0, 0, 1], [1, 1, 0, 0, 0]]).bool()
UNEVEN = torch.tensor([[1, 0, 1, 0, 1], [0, 1, 0, 0, 0], [1, 1, 0, 0, 0]]).bool()


@pytest.fixture
def scores():
    return tiny_scores()


@pytest.fixture
def maps():
    return tiny_maps(3)


def weights(scores):
    return [*scores.class_weights, *scores.attribute_weights]


def two_sided_straightforward(scores, maps, positive, present):
    """Add max and min of the difference, with a chain of standard layers and the whole w_cs."""
    losses = []
    for b, c in enumerate(positive.tolist()):
        chosen = present[b].nonzero()[:, 0]
        volumes = []
        for scale, h in enumerate(maps):
            w_c, w_s = scores.class_weights[scale][:, None], scores.attribute_weights[scale][chosen][None]
            w_cs = (w_c * w_s + w_c + w_s).flatten(0, 1)
            for window in scores.windows.view(-1, 3, 3):
                m = conv2d(h[b].transpose(0, 1), w_cs * window, padding=1).transpose(0, 1)
                volumes.append(scores.forms.to_common(m, scale))
        m = torch.stack(volumes, 1).unflatten(0, (-1, len(chosen)))  # (C, s, K, T, H, W)
        others = [n for n in range(len(m)) if n != c]
        difference = (m[c][None] - m[others]).flatten(0, 1)
        value = compose(difference) - compose(-difference)
        losses.append(softplus(-value).view(len(others), -1).mean(1).sum())
    return torch.stack(losses).mean()


@pytest.mark.parametrize(
    ("two_sided", "plain"), [(False, straightforward), (True, two_sided_straightforward)], ids=["paper", "two-sided"]
)
def test_values_and_gradients_equal_the_straightforward_ones(scores, maps, two_sided, plain):
    fast = class_term(scores, maps, POSITIVE, EVEN, two_sided=two_sided)
    slow = plain(scores, maps, POSITIVE, EVEN)
    torch.testing.assert_close(fast, slow)
    for a, b in zip(
        torch.autograd.grad(fast, weights(scores)), torch.autograd.grad(slow, weights(scores)), strict=True
    ):
        assert a.abs().max() > 0
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("two_sided", [False, True])
def test_a_class_bias_is_that_of_a_convolution(maps, two_sided):
    scores = tiny_scores(class_bias=True)
    ids = torch.tensor([[0, 2], [1, 4], [0, 1]])
    fast = difference_values(scores, maps, POSITIVE, ids, two_sided=two_sided)
    volumes = scores.class_volumes(maps, ids)
    plain = scores.volumes(maps, scores.class_kernels(ids))
    bias = torch.stack([scores.class_bias[:, row] for row in ids])  # (B, C, s)
    torch.testing.assert_close(volumes, plain + bias[..., None, None, None, None])
    slow = []
    for b, c in enumerate(POSITIVE.tolist()):
        apart = (volumes[b, c] - volumes[b, [n for n in range(4) if n != c]]).flatten(0, 1)
        slow.append((-compose(-apart) + (compose(apart) if two_sided else 0)).view(3, 2))
    torch.testing.assert_close(fast, torch.stack(slow))
    trained = [*weights(scores), scores.class_bias]
    found, expected = (torch.autograd.grad(softplus(-value).sum(), trained) for value in (fast, torch.stack(slow)))
    for a, b in zip(found, expected, strict=True):
        assert a.abs().max() > 0
        torch.testing.assert_close(a, b)


def test_with_a_class_bias_the_loss_begins_at_its_zero_level(maps):
    scores = Scores(4, 5, (3, 2), tiny_scores().forms, class_bias=True).double()
    assert class_term(scores, maps, POSITIVE, UNEVEN).item() == pytest.approx(zero_level(4))
    assert all(weight.any() for weight in scores.attribute_weights)


def test_chunks_of_the_batch_change_nothing(scores, maps, monkeypatch):
    whole = class_term(scores, maps, POSITIVE, UNEVEN, two_sided=True)
    monkeypatch.setattr(values, "VOLUME_BYTES", 1)
    parts = class_term(scores, maps, POSITIVE, UNEVEN, two_sided=True)
    torch.testing.assert_close(parts, whole)
    for a, b in zip(
        torch.autograd.grad(parts, weights(scores)), torch.autograd.grad(whole, weights(scores)), strict=True
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("two_sided", [False, True])
def test_clips_may_have_different_numbers_of_attributes(scores, maps, two_sided):
    together = class_term(scores, maps, POSITIVE, UNEVEN, two_sided=two_sided)
    alone = [
        class_term(scores, [h[b : b + 1] for h in maps], POSITIVE[b : b + 1], UNEVEN[b : b + 1], two_sided=two_sided)
        for b in range(3)
    ]
    torch.testing.assert_close(together, torch.stack(alone).mean())


def test_a_clip_without_attributes_adds_nothing(scores, maps):
    present = UNEVEN.clone()
    present[0] = False
    rest = class_term(scores, [h[1:] for h in maps], POSITIVE[1:], present[1:])
    torch.testing.assert_close(class_term(scores, maps, POSITIVE, present), rest * 2 / 3)
    assert class_term(scores, maps, POSITIVE, torch.zeros_like(present)) == 0


@pytest.mark.parametrize("two_sided", [False, True])
def test_all_zero_weights_give_the_zero_level(scores, maps, two_sided):
    for weight in scores.parameters():
        torch.nn.init.zeros_(weight)
    loss = class_term(scores, maps, POSITIVE, UNEVEN, two_sided=two_sided)
    torch.testing.assert_close(loss, torch.tensor(zero_level(4), dtype=torch.float64))


def test_negatives_come_in_ascending_order(scores, maps):
    attributes = torch.tensor([[1], [1], [1]])
    every = difference_values(scores, maps, POSITIVE, attributes)
    assert every.shape == (3, 3, 1)
    with torch.no_grad():
        volumes = scores.class_volumes(maps, attributes)
    for b, c in enumerate(POSITIVE.tolist()):
        for place, n in enumerate(n for n in range(4) if n != c):
            lowest = -compose(volumes[b, n] - volumes[b, c])[0]
            torch.testing.assert_close(every[b, place, 0], lowest)


def drawn(count, seed, classes=4):
    return drawn_negatives(POSITIVE, classes, count, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("two_sided", [False, True])
def test_all_negatives_in_any_order_give_the_loss_and_its_gradients(scores, maps, two_sided):
    every = torch.tensor([[3, 1, 0], [2, 3, 1], [1, 0, 2]])
    given = class_term(scores, maps, POSITIVE, UNEVEN, negative=every, two_sided=two_sided)
    whole = class_term(scores, maps, POSITIVE, UNEVEN, two_sided=two_sided)
    torch.testing.assert_close(given, whole)
    for a, b in zip(
        torch.autograd.grad(given, weights(scores)), torch.autograd.grad(whole, weights(scores)), strict=True
    ):
        torch.testing.assert_close(a, b)
    assert drawn(3, 0) is None, "all there are, so that they are not drawn"
    assert drawn(9, 0) is None
    assert drawn(None, 0) is None


@pytest.mark.parametrize("count", [1, 2])
def test_drawn_negatives_estimate_the_loss_and_its_gradients_without_bias(scores, maps, count):
    """All draws of one clip are equally likely, so the mean over many tends to the whole, by their spread."""
    losses, slopes = [], []
    for seed in range(400):
        loss = class_term(scores, maps, POSITIVE, UNEVEN, negative=drawn(count, seed))
        losses.append(loss.detach())
        slopes.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, weights(scores))]))
    whole = class_term(scores, maps, POSITIVE, UNEVEN)
    slope = torch.cat([g.flatten() for g in torch.autograd.grad(whole, weights(scores))])
    spread = torch.stack(losses).std() / 20  # of the mean of 400
    assert spread > 0
    assert abs(torch.stack(losses).mean() - whole) < 4 * spread
    every = torch.stack(slopes)
    assert (every.mean(0) - slope).norm() < 2 * (every.std(0) / 20).norm()


def test_negatives_are_drawn_alike_and_by_the_generator_alone():
    chosen = torch.stack([drawn(2, seed, classes=5) for seed in range(1000)])  # (1000, B, 2)
    assert torch.equal(chosen[7], drawn(2, 7, classes=5))
    assert (chosen[..., 0] != chosen[..., 1]).all()
    for b, c in enumerate(POSITIVE.tolist()):
        shares = torch.bincount(chosen[:, b].flatten(), minlength=5) / 1000
        expected = torch.full((5,), 0.5).index_fill(0, torch.tensor(c), 0.0)
        torch.testing.assert_close(shares, expected, rtol=0, atol=0.06)


def test_attribute_term_equals_its_straightforward_writing(scores, maps):
    with torch.no_grad():
        scores.attribute_bias.copy_(torch.linspace(-0.1, 0.1, 5))
    fast = attribute_term(scores, maps, UNEVEN)
    best = torch.stack([compose(volume) for volume in scores.attribute_volumes(maps)])  # (B, S)
    slow = softplus(-best[UNEVEN]).mean() + softplus(best[~UNEVEN]).mean()
    torch.testing.assert_close(fast, slow)
    trained = [*scores.attribute_weights, scores.attribute_bias]
    for a, b in zip(torch.autograd.grad(fast, trained), torch.autograd.grad(slow, trained), strict=True):
        assert a.abs().max() > 0
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("value", [True, False])
def test_attribute_term_where_everything_is_on_one_side(scores, maps, value):
    loss = attribute_term(scores, maps, torch.full((3, 5), value))
    best = torch.stack([compose(volume) for volume in scores.attribute_volumes(maps)])
    torch.testing.assert_close(loss, softplus(-best if value else best).mean())


def test_terms_are_weighted_and_maps_standardised(scores, maps):
    scores.standardise([h.mean((0, 2, 3, 4)) for h in maps], [h.std((0, 2, 3, 4)) for h in maps])
    both = Objective(class_term=0.2, two_sided=True, attribute_term=1.0, standardise=True)
    terms = loss_terms(both, scores, maps, POSITIVE, UNEVEN)
    scaled = scores.normalise(maps)
    assert list(terms) == ["class", "attribute"]
    torch.testing.assert_close(terms["class"], 0.2 * class_term(scores, scaled, POSITIVE, UNEVEN, two_sided=True))
    torch.testing.assert_close(terms["attribute"], attribute_term(scores, scaled, UNEVEN))
    assert list(loss_terms(OBJECTIVES["paper"], scores, maps, POSITIVE, UNEVEN)) == ["class"]
    assert list(loss_terms(OBJECTIVES["ours"], scores, maps, POSITIVE, UNEVEN)) == ["attribute"]


def test_objectives_by_name():
    letter = {"class_term": 1, "two_sided": False, "attribute_term": 0, "verify": False}
    assert find_objective("paper-sgd") == Objective(**letter, standardise=False, class_bias=False)
    assert find_objective("paper") == Objective(**letter, standardise=True, class_bias=True)
    with pytest.raises(ArgumentError, match=r"unknown objective 'papr'\. Did you mean 'paper'\?"):
        find_objective("papr")


# What the losses can reach. Clips of 4 classes; columns 0 and 1 of the maps look alike in all classes.

CLASSES, CHANNELS = 4, 6
SAME = torch.ones(CLASSES, 2, dtype=torch.bool)
OWN = torch.eye(CLASSES, dtype=torch.bool)


def plain_scores(table, seed=0, *, class_bias=False):
    torch.manual_seed(seed)
    return Scores(CLASSES, table.shape[1], [CHANNELS], Forms(((2, 4, 4),), (32, 32), 2), class_bias=class_bias)


def trained_loss(table, *, two_sided, informative, class_bias=True, steps=120):
    """Mean loss of the last steps; the class is a channel of the last column where `informative`, else nothing."""
    scores, generator = plain_scores(table, class_bias=class_bias), torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(scores.parameters(), 0.03)
    positive, losses = torch.arange(24) % CLASSES, []
    for _ in range(steps):
        maps = 0.3 * torch.randn(24, CHANNELS, 2, 4, 4, generator=generator)
        if informative:
            maps[torch.arange(24), positive, :, :, -1] += 2
        loss = class_term(scores, [maps], positive, table[positive], two_sided=two_sided)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses[-20:]) / 20


@torch.no_grad()
def test_the_papers_loss_has_a_floor_where_a_cell_says_nothing_about_the_class():
    for seed in range(30):
        scores = plain_scores(SAME, seed)
        for weight in scores.parameters():
            weight.mul_(10 ** (seed % 4 - 1))
        shared = torch.randn(1, CHANNELS, 2, 4, 2)
        maps = torch.cat([shared.expand(CLASSES, -1, -1, -1, -1), torch.randn(CLASSES, CHANNELS, 2, 4, 2)], -1)
        loss = class_term(scores, [maps], torch.arange(CLASSES), SAME)
        assert loss >= zero_level(CLASSES) - 1e-5


def test_training_does_not_get_below_the_floor_but_two_sided_does():
    level = zero_level(CLASSES)
    assert trained_loss(SAME, two_sided=False, informative=True) > level - 0.01
    assert trained_loss(SAME, two_sided=True, informative=True) < 0.05 * level
    assert trained_loss(SAME, two_sided=True, informative=False) > level - 0.05


def test_attributes_that_tell_the_class_let_the_loss_fall_without_a_look_at_the_clip():
    some = torch.tensor([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1], [1, 0, 0, 1]]).bool()
    assert floor(SAME) == pytest.approx(zero_level(CLASSES))
    assert floor(OWN) == 0
    assert 0 < floor(some) < zero_level(CLASSES)
    assert trained_loss(OWN, two_sided=False, informative=False) < 0.5 * zero_level(CLASSES)
    assert floor(some) - 0.01 < trained_loss(some, two_sided=False, informative=False) < zero_level(CLASSES) - 0.1
    without = trained_loss(OWN, two_sided=False, informative=False, class_bias=False)
    assert without > zero_level(CLASSES) - 0.1, "standardised features have no constant: it takes the bias"


def test_the_floors_of_our_data_are_those_on_the_pages():
    assert floor(World().table) == pytest.approx(4.70, abs=0.005)
    assert floor(read_table("jhmdb").values) == pytest.approx(1.95, abs=0.005)
