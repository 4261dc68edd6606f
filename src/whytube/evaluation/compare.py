"""Is one method better than another on the same questions? Differences, paired over clips."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from whytube.evaluation.results import Comparison
from whytube.evaluation.summary import bootstrap, plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FLIPS = 9999
"""Random exchanges of two methods behind a p-value; the smallest one is 1 / (FLIPS + 1)."""
COMPARED = (
    "negative_class_accuracy.top1",
    "negative_class_accuracy.top3",
    "positive_drop",
    "log_probability.negative_class_accuracy.top1",
    "log_probability.negative_class_accuracy.top3",
    "concept_accuracy.top1",
    "concept_accuracy.top3",
    "right_box",
)
"""Figures whose differences are tested."""


def references(names: Sequence[str]) -> list[str]:
    """Which methods the others are compared with: "ours", "ours-regions" and the paper's, else the first one."""
    own = [name for name in names if name in ("ours", "ours-regions", "paper")]
    return own or list(names[:1])


def compare(
    figures: Mapping[str, Mapping[str, torch.Tensor]], *, seed: int
) -> dict[str, dict[str, dict[str, Comparison]]]:
    """Compare the best regions of the references with those of every other method.

    figures: by method and path, (M, N, k) over M clips, NaN where not defined. Returns reference -> other -> path ->
    Comparison; a path is left out where no case defines it for both.
    """
    found: dict[str, dict[str, dict[str, Comparison]]] = {}
    for one in references(list(figures)):
        pairs = [
            (other, path)
            for other in figures
            if other != one
            for path in COMPARED
            if path in figures[one] and path in figures[other]
        ]
        if not pairs:
            continue
        found[one] = {other: {} for other, _ in pairs}
        gaps = [figures[one][path][:, :, 0] - figures[other][path][:, :, 0] for other, path in pairs]
        for (other, path), told in zip(pairs, paired(gaps, seed=seed), strict=True):
            if told is not None:
                found[one][other][path] = told
    return found


def paired(gaps: Sequence[torch.Tensor], *, seed: int) -> list[Comparison | None]:
    """Mean difference, interval and p-value of every one of F tables of differences (M, N) over the cases of M clips.

    The interval is bootstrapped over clips. The p-value is that of a permutation test: the two methods change places,
    or not, in all cases of a clip, and p is the share of such exchanges with a mean difference as far from 0.
    """
    sums = torch.stack([gap.nan_to_num(0).sum(1) for gap in gaps], dim=1).double().cpu()  # (M, F)
    counts = torch.stack([(~gap.isnan()).sum(1) for gap in gaps], dim=1).double().cpu()
    spans = bootstrap(sums, counts, seed=seed)
    signs = torch.from_numpy(np.random.default_rng(seed).choice(np.array([-1, 1], np.int8), (FLIPS, len(sums))))
    as_far = torch.zeros(sums.shape[1], dtype=torch.float64)
    for part in torch.split(signs, 1000):
        as_far += ((part.double() @ sums).abs() >= sums.sum(0).abs() - 1e-9).sum(0)
    p = (1 + as_far) / (FLIPS + 1)
    told: list[Comparison | None] = []
    for f, total in enumerate(counts.sum(0).tolist()):
        if not total:
            told.append(None)
            continue
        low, high = spans[f].tolist()
        told.append(Comparison(plain(float(sums[:, f].sum()) / total), plain(low), plain(high), plain(float(p[f]))))
    return told
