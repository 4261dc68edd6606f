"""From figures of many cases to one method's results: means, intervals, the curve over negatives, plain floats."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from whytube.evaluation.intervals import bootstrap

if TYPE_CHECKING:
    from collections.abc import Mapping

HEADLINES = ("negative_class_accuracy", "positive_drop", "concept_accuracy")
_ACCURACY = "negative_class_accuracy."


def summarise(figures: Mapping[str, torch.Tensor], *, frames: int, seed: int) -> dict[str, Any]:
    """Results of one method from its figures (M, N, k) over M clips; frames: T of a clip.

    The main figures are those of the best region. `curve` has the accuracies averaged over the n most probable
    negatives, n = 1 ... N (fig. 3 of the paper); `ranks` the headline of each of the k regions alone, as the paper
    evaluates them; `tube_lengths` how many of the best regions have 0, 1, ... T frames.
    """
    best = {name: values[:, :, 0] for name, values in figures.items()}
    means, intervals = means_with_intervals(best, seed=seed)
    results, spans = nested(means), nested(intervals)
    for part, lead in (((), _ACCURACY), (("log_probability",), "log_probability." + _ACCURACY)):
        curve, band = _curve(best, lead, seed=seed)
        _inside(results, part)["curve"] = curve
        _inside(spans, part)["curve"] = band
    ranked = [{name: v[:, :, rank] for name, v in figures.items()} for rank in range(figures["answered"].shape[2])]
    results["ranks"] = [nested(_means(_headline(values))) for values in ranked]
    results["intervals"] = spans
    lengths = (best["tube_frames"].nan_to_num(0) * frames).round().long().flatten()
    results["tube_lengths"] = torch.bincount(lengths.cpu(), minlength=frames + 1).tolist()
    return results


def means_with_intervals(
    figures: Mapping[str, torch.Tensor], *, seed: int
) -> tuple[dict[str, float | None], dict[str, list[float | None]]]:
    """Means over the defined cases of figures (M, N), and their 95 % intervals over clips."""
    sums = torch.stack([values.nan_to_num(0).sum(1) for values in figures.values()], dim=1)
    counts = torch.stack([(~values.isnan()).sum(1) for values in figures.values()], dim=1)
    spans = bootstrap(sums, counts, seed=seed).tolist()
    intervals = {name: [plain(low), plain(high)] for name, (low, high) in zip(figures, spans, strict=True)}
    return _means(figures), intervals


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Turn {"a.b": 1} into {"a": {"b": 1}}."""
    tree: dict[str, Any] = {}
    for path, value in flat.items():
        *parts, leaf = path.split(".")
        _inside(tree, tuple(parts))[leaf] = value
    return tree


def plain(value: float) -> float | None:
    """Write a number as JSON can hold it: six decimals, None for NaN."""
    return None if math.isnan(value) else round(float(value), 6)


def _means(figures: Mapping[str, torch.Tensor]) -> dict[str, float | None]:
    return {name: plain(float(values.nanmean())) for name, values in figures.items()}


def _headline(figures: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: values for name, values in figures.items() if name.split(".")[0] in HEADLINES}


def _curve(best: Mapping[str, torch.Tensor], lead: str, *, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Accuracies of the n most probable negatives, n = 1 ... N, and their intervals."""
    curve, band = {}, {}
    for name in (name for name in best if name.startswith(lead)):
        growing = {str(n): best[name][:, :n] for n in range(1, best[name].shape[1] + 1)}
        means, intervals = means_with_intervals(growing, seed=seed)
        curve[name.removeprefix(lead)] = list(means.values())
        band[name.removeprefix(lead)] = list(intervals.values())
    return curve, band


def _inside(tree: dict[str, Any], parts: tuple[str, ...]) -> dict[str, Any]:
    for part in parts:
        tree = tree.setdefault(part, {})
    return tree
