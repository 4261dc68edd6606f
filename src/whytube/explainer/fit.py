"""Fit: the chance that a word is right about its tube, from what places say about the two.

Right means that no annotated box overlaps the tube more than the word's own box does. Two raw values tell most of it:
how well the tube lies where the word is (its expected IoU), and how much better than where the best other word of the
class is. A logistic curve joins them, with a level for every word, as some are harder to find than others; a rising
curve turns its value into a chance. All are fitted to training clips that were held out while places were learnt, so
that of the words with a fit of .7 about 70 % are right.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from whytube.checks import check_finite, check_probability, fail

SAID = 0.6
"""A word is said where its fit is at least this; docs/words.md has what other limits would do."""
LEAST = 0.01
"""Added to expected IoUs before logarithms are taken."""
KNOTS = 30
_STEPS, _RIDGE = 30, 1e-3
_LEVELS = 30.0
"""Ridge on the levels of attributes: one with few cases stays near the others. Chosen on held-out training clips."""


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
    levels: of each attribute, added to the logistic score; empty where nobody fitted them.
    """

    weights: tuple[float, ...]
    scores: tuple[float, ...]
    chances: tuple[float, ...]
    boxes: tuple[int, ...]
    reliability: tuple[Reliability, ...] = ()
    lasting: float = 0.0
    levels: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.weights) != 3 or not self.scores or len(self.scores) != len(self.chances):
            raise fail("fit", "three weights and as many scores as chances", "others")
        if any(low >= high for low, high in zip(self.scores, self.scores[1:], strict=False)):
            raise fail("scores", "knots that rise", self.scores)
        for chance in self.chances:
            check_probability(chance, "chances")
        check_probability(self.lasting, "lasting")
        for level in self.levels:
            check_finite(level, "levels")
        if len(self.levels) not in (0, len(self.boxes)):
            raise fail("levels", "one for each attribute, or none", len(self.levels))

    def __call__(
        self,
        raw: torch.Tensor,
        rival: torch.Tensor,
        share: torch.Tensor | None = None,
        level: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Chances that words are right; raw: expected IoUs, rival: the largest of other words. Any shape, the same.

        share: of the clip that tubes last; without it as for tubes that last long enough. level: of the words, see
        `level_of`; without it 0. Both may broadcast.
        """
        if share is not None:
            return self(raw, rival, level=level) * self.part(share)
        if len(self.scores) == 1:
            return torch.full_like(raw, self.chances[0])
        value = _features(raw, rival) @ raw.new_tensor(self.weights) + (0 if level is None else level)
        knots = raw.new_tensor([self.scores, self.chances])
        left = torch.searchsorted(knots[0, 1:-1], value)
        (score, chance), (width, rise) = knots[:, left], knots.diff()[:, left]
        told: torch.Tensor = chance + ((value - score) / width).clamp(0, 1) * rise
        return told

    def level_of(self, attribute_ids: torch.Tensor) -> torch.Tensor:
        """Return the levels of attributes, of any shape; 0 for -1 and for those that were not there at the fit."""
        levels = torch.tensor([*self.levels, 0.0], device=attribute_ids.device)
        known = (attribute_ids >= 0) & (attribute_ids < len(self.levels))
        return levels[torch.where(known, attribute_ids, len(self.levels))]

    def part(self, share: torch.Tensor) -> torch.Tensor:
        """Return how much of its chance a tube has that lasts this share of the clip; any shape, the same."""
        return (share / self.lasting).clamp_max(1) if self.lasting else torch.ones_like(share)


def fit_curve(
    raw: torch.Tensor,
    rival: torch.Tensor,
    right: torch.Tensor,
    boxes: tuple[int, ...],
    attribute_ids: torch.Tensor | None = None,
) -> FitCurve:
    """Fit to N cases: raw and rival as in FitCurve, right (N,) bool; attribute_ids (N,): each then has a level."""
    features, target = _features(raw.double(), rival.double()), right.double()
    ids = torch.zeros_like(right, dtype=torch.long) if attribute_ids is None else attribute_ids
    weights, levels = features.new_zeros(3), features.new_zeros(len(boxes))
    if attribute_ids is None:
        levels = levels[:0]
    for _ in range(_STEPS):
        step = _newton(features, target, ids, weights, levels)
        weights, levels = weights - step[:3], levels - step[3:]
    value = features @ weights + (levels[ids] if len(levels) else 0)
    scores, chances = _rising(value, target)
    return FitCurve(tuple(weights.tolist()), scores, chances, boxes, levels=tuple(levels.tolist()))


def _newton(
    features: torch.Tensor, target: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor, levels: torch.Tensor
) -> torch.Tensor:
    """Step of Newton's method for weights (3,) and the levels (S,) of ids (N,), one behind the other; S may be 0."""
    count, cases = len(levels), len(target)
    chance = (features @ weights + (levels[ids] if count else 0)).sigmoid()
    miss, curve = (chance - target) / cases, chance * (1 - chance) / cases
    slope = torch.cat([features.T @ miss + _RIDGE * weights, _LEVELS / cases * levels])
    curvature = torch.diag(torch.cat([weights.new_full((3,), _RIDGE), levels.new_full((count,), _LEVELS / cases)]))
    curvature[:3, :3] += features.T @ (curve[:, None] * features)
    if count:
        slope[3:].index_add_(0, ids, miss)
        curvature[3:, 3:].diagonal().index_add_(0, ids, curve)
        curvature[3:, :3].index_add_(0, ids, curve[:, None] * features)
        curvature[:3, 3:] = curvature[3:, :3].T
    step: torch.Tensor = torch.linalg.solve(curvature, slope)
    return step


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
    own = torch.where(among[..., None], raw, 0)
    best, second = torch.nn.functional.pad(own, (0, 0, 0, 1)).topk(2, -2).values.chunk(2, -2)  # (..., 1, M)
    return torch.where(own == best, second, best)


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
