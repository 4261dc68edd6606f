"""Insertion and deletion over reasons: what the classifier says as the k regions are masked, or shown, one by one.

Deletion masks the first 1, 2, ... k regions of an answer together. Insertion shows only these and fills all else. The
area under the curve of p(A) is small for deletion, and large for insertion, where the regions are what A hangs on.
Curves are of probabilities and of log-probabilities, over fills that no search has seen, and over each that one has.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import torch

from whytube.classifiers.base import evaluating
from whytube.tubes import erase
from whytube.tubes.masking import box_masks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whytube.classifiers.base import VideoClassifier
    from whytube.search.verify import Question

KINDS = ("", "log_probability.")
SIDES = ("deletion", "insertion")
OF = ("positive", "negative")
_PIXELS = 2**22


@torch.no_grad()
def curve_points(
    classifier: VideoClassifier,
    question: Question,
    boxes: torch.Tensor,
    *,
    fills: Sequence[str],
    seen: Sequence[str] = (),
) -> dict[str, torch.Tensor]:
    """Probabilities of A and B after each region of boxes (B, N, k, T, 4), means over the fills: figures (B, N, k).

    "deletion.points.positive" is p(A) with regions 1 ... j masked, at rank j; "deletion.start.positive" is p(A) before
    that, the same at every rank. "insertion" alike, which begins with everything filled. "log_probability.deletion..."
    are means of log p, "fills.F.deletion..." those of a fill in `seen` alone.
    """
    figures = _points(classifier, question, boxes, fills)
    for fill in seen:
        own = _points(classifier, question, boxes, [fill])
        figures |= {f"fills.{fill}.{path}": values for path, values in own.items()}
    return figures


def _points(
    classifier: VideoClassifier, question: Question, boxes: torch.Tensor, fills: Sequence[str]
) -> dict[str, torch.Tensor]:
    b, n, k = boxes.shape[:3]
    flat, size = boxes.flatten(0, 1), (question.clips.shape[-2], question.clips.shape[-1])
    clip = torch.arange(b, device=boxes.device).repeat_interleave(n)
    classes = torch.stack([question.positive[:, None].expand(b, n), question.negative], -1).flatten(0, 1)  # (BN, 2)
    # probability or its logarithm, side, regions, case, A or B
    after = torch.zeros(2, 2, k + 1, b * n, 2, dtype=torch.float64, device=boxes.device)
    chunk = max(1, _PIXELS // math.prod(question.clips.shape[2:]))
    with evaluating(classifier):
        for first in range(0, b * n, chunk):
            rows = slice(first, min(first + chunk, b * n))
            shown, plain = question.clips[clip[rows]], question.features.logits[clip[rows]]
            covered = torch.zeros(len(shown), *shown.shape[2:], dtype=torch.bool, device=boxes.device)
            for count in range(k + 1):
                if count:
                    covered = covered | box_masks(flat[rows, count - 1], size)
                for side, mask in enumerate((covered, ~covered)):
                    found = [_log_probabilities(classifier, shown, mask, fill, plain) for fill in fills]
                    told = torch.stack(found).gather(2, classes[rows].expand(len(fills), -1, -1))
                    after[:, side, count, rows] = torch.stack([told.exp().mean(0), told.mean(0)])
    after = after.view(2, 2, k + 1, b, n, 2)
    figures = {}
    for kind, s, c in itertools.product(range(2), range(2), range(2)):
        path = f"{KINDS[kind]}{SIDES[s]}"
        figures[f"{path}.start.{OF[c]}"] = after[kind, s, 0, ..., c][..., None].expand(b, n, k)
        figures[f"{path}.points.{OF[c]}"] = after[kind, s, 1:, ..., c].permute(1, 2, 0)
    return figures


def _log_probabilities(
    classifier: VideoClassifier, shown: torch.Tensor, mask: torch.Tensor, fill: str, plain: torch.Tensor
) -> torch.Tensor:
    """Log-probabilities (R, C) with the mask filled; those of the plain logits (R, C) where a clip is not masked."""
    logits = classifier(erase(shown, mask, fill=fill)) if mask.any() else plain
    touched = mask.flatten(1).any(1, keepdim=True)
    return torch.where(touched, logits, plain).double().log_softmax(1)


def whole_curves(figures: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Put start and points (M, N, k) together: "deletion.positive" and so on, (M, N, k + 1); none without curves."""
    return {
        path.replace(".points.", "."): torch.cat(
            [figures[path.replace(".points.", ".start.")][..., :1], values], dim=-1
        )
        for path, values in figures.items()
        if ".points." in path
    }


def without_points(figures: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the figures but those of `curve_points`."""
    return {path: values for path, values in figures.items() if ".points." not in path and ".start." not in path}


def under(curve: torch.Tensor) -> torch.Tensor:
    """Area under curves (..., k + 1) over the share of regions, 0 to 1, by trapezes."""
    return (curve[..., 1:] + curve[..., :-1]).mean(-1) / 2
