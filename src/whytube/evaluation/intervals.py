"""How far a mean can be trusted: bootstrap intervals over clips, and results of several seeds as one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from whytube.checks import check_int, fail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RESAMPLES = 1000
LEVEL = 0.95
_PER_RUN = ("intervals", "clips", "tube_lengths")
"""Entries of a method's results that are no means."""


def bootstrap(
    sums: torch.Tensor, counts: torch.Tensor, *, seed: int, resamples: int = RESAMPLES, level: float = LEVEL
) -> torch.Tensor:
    """Percentile interval of F means over M clips, drawn anew with replacement: (M, F), (M, F) -> (F, 2).

    A clip adds `sums` over its cases, of which it has `counts`; the mean is the sum of one over the sum of the other.
    NaN where there is no case at all.
    """
    check_int(resamples, "resamples", 1)
    if not 0 < level < 1:
        raise fail("level", "between 0 and 1", level)
    clips, figures = sums.shape
    if clips == 0:
        return torch.full((figures, 2), math.nan, dtype=torch.float64)
    rng = np.random.default_rng(seed)
    drawn = torch.from_numpy(rng.multinomial(clips, np.full(clips, 1 / clips), size=resamples)).double()
    means = (drawn @ sums.double().cpu()) / (drawn @ counts.double().cpu())  # (resamples, F), 0 / 0 = NaN
    tail = (1 - level) / 2
    return torch.nanquantile(means, torch.tensor([tail, 1 - tail], dtype=torch.float64), dim=0).T


def over_seeds(results: Sequence[dict[str, Any]], *, seed: int = 0) -> dict[str, Any]:
    """Combine the results of `evaluate` on models trained from several seeds, or on several splits, in the same form.

    Figures are means over the runs, and intervals are bootstrapped over the runs, while a single run's are over clips.
    Of three runs such an interval is simply their range. Splits of one data set share clips: their range says less.
    """
    if not results:
        raise fail("results", "at least one result of evaluate", "none")
    names = list(results[0]["methods"])
    if any(list(result["methods"]) != names for result in results):
        raise fail("results", "of the same methods", [list(result["methods"]) for result in results])

    def interval(values: list[float]) -> list[float]:
        column = torch.tensor(values, dtype=torch.float64)[:, None]
        return [round(x, 6) for x in bootstrap(column, torch.ones_like(column), seed=seed)[0].tolist()]

    methods = {}
    for name in names:
        runs = [result["methods"][name] for result in results]
        plain = [{key: value for key, value in run.items() if key not in _PER_RUN} for run in runs]
        lengths = torch.tensor([run["tube_lengths"] for run in runs]).sum(0).tolist()
        methods[name] = _leafwise(plain, _mean) | {
            "intervals": _leafwise(plain, interval),
            "tube_lengths": lengths,
            "clips": None,
        }
    seeds = [result["provenance"].get("seed") for result in results]
    classifiers = [result["classifier"] for result in results]
    accuracy = [classifier["accuracy"] for classifier in classifiers]
    origin = {**results[0]["provenance"], "seed": seeds}
    for key in ("data", "model"):
        found = [result["provenance"].get(key) for result in results]
        origin |= {key: found} if len(set(found)) > 1 else {}
    worlds = [result["provenance"].get("settings", {}).get("data") for result in results]
    if len(set(worlds)) > 1:
        origin["settings"] = origin["settings"] | {"data": worlds}
    spread = {"accuracy": _mean(accuracy), "interval": interval(accuracy), "accuracies": accuracy}
    return {"classifier": {**classifiers[0], **spread}, "methods": methods, "provenance": origin}


def _mean(values: list[float]) -> float:
    return round(sum(values) / len(values), 6)


def _leafwise(trees: Sequence[Any], reduce: Callable[[list[float]], object]) -> Any:
    """Apply `reduce` to the numbers at every place of equal trees of dicts and lists; None where all are None."""
    first = trees[0]
    if isinstance(first, dict):
        return {key: _leafwise([tree[key] for tree in trees], reduce) for key in first}
    if isinstance(first, list):
        return [_leafwise(column, reduce) for column in zip(*trees, strict=True)]
    numbers = [float(tree) for tree in trees if tree is not None]
    return reduce(numbers) if numbers else None
