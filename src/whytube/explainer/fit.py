"""Fit: the chance that a word is right about its tube, from what places say about the two.

Right means that no annotated box overlaps the tube more than the word's own box does. Two raw values tell most of it:
how well the tube lies where the word is (its expected IoU), and how much better than where the best other word of the
class is. A logistic curve joins them, and a rising curve turns its value into a chance. Both are fitted to training
clips that were held out while places were learnt, so that of the words with a fit of .7 about 70 % are right.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from whytube.checks import check_probability, fail

SAID = 0.5
"""A word is said where its fit is at least this, so where it is more likely right than wrong."""
LEAST = 0.01
"""Added to expected IoUs before logarithms are taken."""
KNOTS = 30
_STEPS, _RIDGE = 30, 1e-3


@dataclass(frozen=True)
class Reliability:
    """Of `count` held-out words whose fits are `fit` on average, the share that is right."""

    fit: float
    right: float
    count: int


@dataclass(frozen=True)
class FitCurve:
    """From raw fits to chances.

    weights: of (1, log raw, log raw / rival) in the logistic score. scores, chances: knots of the rising curve.
    boxes: (S,) training clips with a box of each attribute; one without any has no fit.
    reliability: on held-out clips that neither places nor this curve were fitted to.
    lasting: share of the clip that a tube must last for its chance to hold; a shorter one has a part of it, in
    proportion. 0 where short tubes are as right as long ones.
    """

    weights: tuple[float, ...]
    scores: tuple[float, ...]
    chances: tuple[float, ...]
    boxes: tuple[int, ...]
    reliability: tuple[Reliability, ...] = ()
    lasting: float = 0.0

    def __post_init__(self) -> None:
        if len(self.weights) != 3 or not self.scores or len(self.scores) != len(self.chances):
            raise fail("fit", "three weights and as many scores as chances", "others")
        if any(low >= high for low, high in zip(self.scores, self.scores[1:], strict=False)):
            raise fail("scores", "knots that rise", self.scores)
        for chance in self.chances:
            check_probability(chance, "chances")
        check_probability(self.lasting, "lasting")

    def __call__(self, raw: torch.Tensor, rival: torch.Tensor, share: torch.Tensor | None = None) -> torch.Tensor:
        """Chances that words are right; raw: expected IoUs, rival: the largest of other words. Any shape, the same.

        share: of the clip that tubes last, which may broadcast; without it as for tubes that last long enough.
        """
        if share is not None:
            return self(raw, rival) * self.part(share)
        value = _features(raw, rival) @ raw.new_tensor(self.weights)
        scores, chances = raw.new_tensor(self.scores), raw.new_tensor(self.chances)
        if len(scores) == 1:
            return chances[0].expand_as(value)
        right = torch.searchsorted(scores, value).clamp(1, len(scores) - 1)
        share = ((value - scores[right - 1]) / (scores[right] - scores[right - 1])).clamp(0, 1)
        return chances[right - 1] + share * (chances[right] - chances[right - 1])

    def part(self, share: torch.Tensor) -> torch.Tensor:
        """Return how much of its chance a tube has that lasts this share of the clip; any shape, the same."""
        return (share / self.lasting).clamp_max(1) if self.lasting else torch.ones_like(share)


def fit_curve(raw: torch.Tensor, rival: torch.Tensor, right: torch.Tensor, boxes: tuple[int, ...]) -> FitCurve:
    """Fit to N cases: raw and rival as in FitCurve, right (N,) bool."""
    features, target = _features(raw.double(), rival.double()), right.double()
    weights = torch.zeros(3, dtype=torch.float64, device=raw.device)
    ridge = _RIDGE * torch.eye(3, dtype=torch.float64, device=raw.device)
    for _ in range(_STEPS):  # Newton's method
        chance = (features @ weights).sigmoid()
        slope = features.T @ (chance - target) / len(target) + _RIDGE * weights
        curvature = (features * (chance * (1 - chance))[:, None]).T @ features / len(target) + ridge
        weights = weights - torch.linalg.solve(curvature, slope)
    scores, chances = _rising(features @ weights, target)
    return FitCurve(tuple(weights.tolist()), scores, chances, boxes)


def reliability(fits: torch.Tensor, right: torch.Tensor) -> tuple[Reliability, ...]:
    """Sum up fits and whether they were right, both (N,), by tenths of the fit."""
    tenth = (10 * fits).long().clamp(0, 9)
    rows = []
    for number in range(10):
        inside = tenth == number
        if inside.any():
            mean, share = fits[inside].double().mean(), right[inside].double().mean()
            rows.append(Reliability(round(float(mean), 4), round(float(share), 4), int(inside.sum())))
    return tuple(rows)


def rivals(raw: torch.Tensor, among: torch.Tensor) -> torch.Tensor:
    """Return the largest raw fit of the other words: (..., s, M) -> (..., s, M), 0 where there is no other.

    among: (..., s) bool, which words count.
    """
    others = among[..., None, :] & ~torch.eye(raw.shape[-2], dtype=torch.bool, device=raw.device)  # (..., s, s)
    return torch.stack([torch.where(others[..., s, :, None], raw, 0).amax(-2) for s in range(raw.shape[-2])], -2)


def _features(raw: torch.Tensor, rival: torch.Tensor) -> torch.Tensor:
    """Features (..., 3) of the logistic score."""
    level = (raw + LEAST).log()
    return torch.stack([torch.ones_like(level), level, level - (rival + LEAST).log()], -1)


def _rising(scores: torch.Tensor, target: torch.Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Isotonic regression on groups of equal size: mean score and share of each, joined until shares rise."""
    order = scores.argsort()
    pools: list[list[float]] = []  # sum of scores, sum of targets, count
    for group in order.tensor_split(min(KNOTS, len(order))):
        pools.append([float(scores[group].sum()), float(target[group].sum()), float(len(group))])
        while len(pools) > 1 and pools[-2][1] * pools[-1][2] >= pools[-1][1] * pools[-2][2]:
            last = pools.pop()
            pools[-1] = [a + b for a, b in zip(pools[-1], last, strict=True)]
    knots = [(total / count, hits / count) for total, hits, count in pools]
    return tuple(score for score, _ in knots), tuple(min(max(chance, 0.0), 1.0) for _, chance in knots)
