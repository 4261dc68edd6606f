"""From figures of many cases to one method's results: means, intervals, curves, counts of tube lengths."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from whytube.evaluation.curves import under, whole_curves, without_points
from whytube.evaluation.results import Figure, MethodResults
from whytube.tubes import PAPERS_FILL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RESAMPLES, LEVEL = 1000, 0.95
HEADLINES = ("negative_class_accuracy", "positive_drop", "concept_accuracy", "answered")


def summarise(
    figures: Mapping[str, torch.Tensor],
    *,
    frames: int,
    seed: int,
    clips: Sequence[Mapping[str, Any]] | None = None,
) -> MethodResults:
    """Results of one method from its figures (M, N, k) over M clips.

    The main figures are those of the best region. The curves are the accuracies averaged over the n most probable
    negatives, n = 1 ... N (Fig. 5 of the paper), also with the paper's fill alone. The ranks are the headline of each
    of the k regions alone, as the paper evaluates them, with its fill too. Insertion and deletion, where they were
    measured, are curves over the regions shown or masked, and as figures the areas under these.

    frames: T of a clip. clips: records to keep.
    """
    along, figures = whole_curves(figures), without_points(figures)
    best = {path: values[:, :, 0] for path, values in figures.items()}
    headlines = {path: values for path, values in figures.items() if _headline(path).split(".")[0] in HEADLINES}
    lengths = (best["tube_frames"].nan_to_num(0) * frames).round().long().flatten()
    areas = {path: under(values) for path, values in along.items()}
    return MethodResults(
        means_with_intervals(best | areas, seed=seed),
        {
            path.replace("negative_class_accuracy", "curve"): _curve(values, seed=seed)
            for path, values in best.items()
            if "negative_class_accuracy." in path and not _headline(path).startswith("fills.")
        }
        | {".curve.".join(path.rsplit(".", 1)): _points(values, seed=seed) for path, values in along.items()},
        [
            means_with_intervals({path: values[:, :, rank] for path, values in headlines.items()}, seed=seed)
            for rank in range(figures["answered"].shape[2])
        ],
        torch.bincount(lengths.cpu(), minlength=frames + 1).tolist(),
        clips,
    )


def _headline(path: str) -> str:
    """Return what a figure is called in the headline, where it is the same with the paper's fill."""
    return path.removeprefix(f"fills.{PAPERS_FILL}.")


def means_with_intervals(figures: Mapping[str, torch.Tensor], *, seed: int) -> dict[str, Figure]:
    """Means over the defined cases of figures (M, N), with their 95 % intervals over clips."""
    sums = torch.stack([values.nan_to_num(0).sum(1) for values in figures.values()], dim=1)
    counts = torch.stack([(~values.isnan()).sum(1) for values in figures.values()], dim=1)
    spans = bootstrap(sums, counts, seed=seed).tolist()
    return {
        path: Figure(plain(float(values.nanmean())), plain(low), plain(high))
        for (path, values), (low, high) in zip(figures.items(), spans, strict=True)
    }


def bootstrap(sums: torch.Tensor, counts: torch.Tensor, *, seed: int) -> torch.Tensor:
    """Percentile interval of F means over M clips, drawn anew with replacement: (M, F), (M, F) -> (F, 2).

    A clip adds `sums` over its cases, of which it has `counts`; the mean is the sum of one over the sum of the other.
    NaN where there is no case at all.
    """
    clips, figures = sums.shape
    if clips == 0:
        return torch.full((figures, 2), math.nan, dtype=torch.float64)
    rng = np.random.default_rng(seed)
    drawn = torch.from_numpy(rng.multinomial(clips, np.full(clips, 1 / clips), size=RESAMPLES)).double()
    means = (drawn @ sums.double().cpu()) / (drawn @ counts.double().cpu())  # (RESAMPLES, F), 0 / 0 = NaN
    tail = (1 - LEVEL) / 2
    return torch.nanquantile(means, torch.tensor([tail, 1 - tail], dtype=torch.float64), dim=0).T


def plain(value: float) -> float | None:
    """Write a number as JSON can hold it: six decimals, None for NaN."""
    return None if math.isnan(value) else round(float(value), 6)


def _curve(accuracies: torch.Tensor, *, seed: int) -> list[Figure]:
    """Accuracies (M, N) over the n most probable negatives, n = 1 ... N."""
    growing = {str(n): accuracies[:, :n] for n in range(1, accuracies.shape[1] + 1)}
    return list(means_with_intervals(growing, seed=seed).values())


def _points(values: torch.Tensor, *, seed: int) -> list[Figure]:
    """Means of values (M, N, P) at each of P points."""
    return list(means_with_intervals({str(p): values[..., p] for p in range(values.shape[-1])}, seed=seed).values())
