"""Fits: chances that are what they say."""

import itertools

import pytest
import torch
from scipy.optimize import isotonic_regression

from whytube.errors import ArgumentError
from whytube.explainer.fit import FitCurve, fit_curve, reliability, rivals


@pytest.fixture(scope="module")
def cases():
    """Words that are right by a known chance: the better they lie against their rivals, the more often."""
    generator = torch.Generator().manual_seed(0)
    raw, rival = torch.rand(2, 20_000, generator=generator) * 0.5
    chance = (4 * (raw - rival) + raw).sigmoid()
    return raw, rival, torch.rand(20_000, generator=generator) < chance


def test_chances_are_those_of_cases_that_were_not_seen(cases):
    curve = fit_curve(*(column[:10_000] for column in cases), boxes=(3,))
    raw, rival, right = (column[10_000:] for column in cases)
    rows = reliability(curve(raw, rival), right)
    assert sum(row.count for row in rows) == 10_000
    assert len(rows) >= 5
    assert all(abs(row.fit - row.right) < 0.06 for row in rows if row.count > 300)


def test_a_fit_rises_with_the_word_and_falls_with_its_rival(cases):
    curve = fit_curve(*cases, boxes=(3,))
    level = torch.linspace(0, 0.5, 20)
    assert (curve(level, torch.full_like(level, 0.2)).diff() >= 0).all()
    assert (curve(torch.full_like(level, 0.2), level).diff() <= 0).all()
    assert curve(level.view(4, 5), level.view(4, 5)).shape == (4, 5)


def test_one_knot_is_a_constant():
    curve = FitCurve((0.0, 1.0, 0.0), (0.3,), (0.4,), (1,))
    torch.testing.assert_close(curve(torch.rand(3), torch.rand(3)), torch.full((3,), 0.4))


@pytest.mark.parametrize(
    "wrong",
    [
        {"weights": (1.0, 2.0)},
        {"scores": (0.0, 0.0)},
        {"scores": (0.0,)},
        {"chances": (0.2, 1.2)},
        {"levels": (float("nan"),)},
        {"levels": (0.1, 0.2)},
    ],
)
def test_curves_that_cannot_be_are_refused(wrong):
    whole = {"weights": (0.0, 1.0, 1.0), "scores": (0.0, 1.0), "chances": (0.2, 0.8), "boxes": (1,)}
    FitCurve(**whole)
    with pytest.raises(ArgumentError):
        FitCurve(**whole | wrong)


def test_rivals_are_the_best_of_the_others():
    raw = torch.tensor([[0.1, 0.5], [0.3, 0.2], [0.9, 0.9]])
    best = [raw[2].tolist(), raw[2].tolist(), [raw[1, 0].item(), raw[0, 1].item()]]
    assert rivals(raw, torch.tensor([True, True, True])).tolist() == best
    assert rivals(raw, torch.tensor([True, False, False])).tolist() == [[0, 0], *[raw[0].tolist()] * 2]
    assert rivals(raw[:1], torch.tensor([True])).tolist() == [[0, 0]]


def test_between_knots_chances_lie_on_straight_lines():
    curve = FitCurve((0.5, 1.0, 0.0), (-1.0, 0.0, 2.0), (0.1, 0.3, 0.9), (1,))
    value = torch.tensor([-3.0, -1.0, -0.25, 0.0, 0.5, 2.0, 2.4]).double()
    raw = (value - 0.5).exp() - 0.01  # so that 0.5 + log(raw + 0.01) is the value
    expected = torch.tensor([0.1, 0.1, 0.25, 0.3, 0.45, 0.9, 0.9]).double()
    torch.testing.assert_close(curve(raw, torch.rand(7).double()), expected)
    rival = FitCurve((0.0, 0.0, 1.0), (-1.0, 1.0), (0.0, 1.0), (1,))
    raw, other = torch.tensor([0.29, 0.04]).double(), torch.tensor([0.14, 0.09]).double()
    torch.testing.assert_close(rival(raw, other), (torch.tensor([2.0, 0.5]).double().log() + 1) / 2)


def test_the_curve_is_isotonic_regression_of_a_logistic_one():
    """Compare with scipy's isotonic regression, and check that no other weights fit better."""
    generator = torch.Generator().manual_seed(1)
    raw, rival = torch.rand(2, 24, generator=generator).double() * 0.5
    right = torch.rand(24, generator=generator) < 0.5
    curve = fit_curve(raw, rival, right, boxes=(24,))
    level = (raw + 0.01).log()
    features = torch.stack([torch.ones_like(level), level, level - (rival + 0.01).log()], 1)

    def loss(weights):
        score = features @ weights
        likelihood = torch.where(right, score, -score).sigmoid().log().mean()
        return 0.5e-3 * weights.square().sum() - likelihood

    weights = torch.tensor(curve.weights).double().requires_grad_()
    (slope,) = torch.autograd.grad(loss(weights), weights)
    assert slope.abs().max() < 1e-6
    score, order = (features @ weights.detach()).sort()
    found = isotonic_regression(right[order].double().numpy())
    starts = found.blocks[:-1]
    assert curve.chances == pytest.approx(found.x[starts].tolist())
    means = [score[a:b].mean().item() for a, b in itertools.pairwise(found.blocks)]
    assert curve.scores == pytest.approx(means)
    assert 2 < len(means) < 20, "some were joined, others not"


def test_levels_are_those_of_a_logistic_curve_with_an_offset_for_each_attribute():
    """No other weights and levels fit better, and every column has its own ridge."""
    generator = torch.Generator().manual_seed(2)
    raw, rival = torch.rand(2, 90, generator=generator).double() * 0.5
    ids = torch.randint(4, (90,), generator=generator)
    right = torch.rand(90, generator=generator) < torch.tensor([0.1, 0.9, 0.5, 0.5])[ids]
    curve = fit_curve(raw, rival, right, (1,) * 5, ids)
    level = (raw + 0.01).log()
    features = torch.stack([torch.ones_like(level), level, level - (rival + 0.01).log()], 1)

    def loss(weights, levels):
        score = features @ weights + levels[ids]
        likelihood = torch.where(right, score, -score).sigmoid().log().mean()
        return 0.5e-3 * weights.square().sum() + 15 / 90 * levels.square().sum() - likelihood

    found = [torch.tensor(part).double().requires_grad_() for part in (curve.weights, curve.levels)]
    for slope in torch.autograd.grad(loss(*found), found):
        assert slope.abs().max() < 1e-6
    assert curve.levels[0] < -0.1 < 0.1 < curve.levels[1]
    assert curve.levels[4] == 0, "it has no case"


def test_a_word_that_is_hard_to_find_has_lower_fits():
    generator = torch.Generator().manual_seed(3)
    raw, rival = torch.rand(2, 20_000, generator=generator) * 0.5
    ids = torch.arange(20_000) % 2
    right = (
        torch.rand(20_000, generator=generator) < (4 * (raw - rival) + raw + torch.tensor([-1.0, 1.0])[ids]).sigmoid()
    )
    curve = fit_curve(*(column[:10_000] for column in (raw, rival, right)), (3, 3), ids[:10_000])
    held = [column[10_000:] for column in (raw, rival, right, ids)]
    fits = curve(held[0], held[1], level=curve.level_of(held[3]))
    for word in range(2):
        rows = reliability(fits[held[3] == word], held[2][held[3] == word])
        assert all(abs(row.fit - row.right) < 0.06 for row in rows if row.count > 300)
    assert fits[held[3] == 1].mean() - fits[held[3] == 0].mean() > 0.3


def test_levels_of_attributes():
    curve = FitCurve((0.0, 1.0, 0.0), (-1.0, 0.0), (0.1, 0.9), (2, 2, 0), levels=(0.5, -0.5, 0.0))
    assert curve.level_of(torch.tensor([[1, 0], [-1, 2]])).tolist() == [[-0.5, 0.5], [0, 0]]
    raw = torch.tensor([-0.5]).double().exp() - 0.01
    higher = curve(raw, raw, level=torch.tensor([0.25]))
    torch.testing.assert_close(higher - curve(raw, raw), torch.tensor([0.2]).double())
    torch.testing.assert_close(curve(raw, raw, torch.tensor([0.5]), torch.tensor([0.25])), higher)
    assert FitCurve((0.0, 1.0, 0.0), (0.3,), (0.4,), (1,)).level_of(torch.tensor([0, 3])).tolist() == [0, 0]


def test_many_cases_are_grouped():
    raw = torch.linspace(0.01, 0.5, 300).double()
    right = torch.arange(300) % 10 < torch.arange(300) // 30
    curve = fit_curve(raw, torch.zeros(300).double(), right, boxes=(1,))
    assert 5 <= len(curve.scores) <= 30
    assert curve.chances[0] == 0
    assert curve.chances[-1] == pytest.approx(0.9)


def test_reliability_by_tenths():
    fits, right = torch.tensor([0.0, 0.04, 0.1, 0.55, 0.58, 0.95, 1.0]), torch.tensor([0, 1, 0, 1, 1, 1, 0]).bool()
    assert [(row.fit, row.right, row.count) for row in reliability(fits, right)] == [
        (0.02, 0.5, 2),
        (0.1, 0.0, 1),
        (0.565, 1.0, 2),
        (0.975, 0.5, 2),
    ]


def test_empty_curves_are_refused():
    with pytest.raises(ArgumentError, match="`fit` must be three weights"):
        FitCurve((0.0, 1.0, 1.0), (), (), (1,))
