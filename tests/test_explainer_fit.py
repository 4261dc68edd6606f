"""Fits: chances that are what they say."""

import pytest
import torch

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
