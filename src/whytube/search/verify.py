"""Ask the classifier again: what it says once tubes are masked, and how much that speaks for B."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from whytube.classifiers.base import evaluating
from whytube.tubes import box_masks, erase

if TYPE_CHECKING:
    from whytube.classifiers.base import VideoClassifier
    from whytube.search.question import Question

VERIFYING_FILL = "zero"
"""What candidate tubes are filled with while they are compared; answers are judged by other fills."""

_CLIPS = 64
_PIXELS = {"cpu": 2**22, "cuda": 2**24}
"""At most so many clips, and pixels of them, are masked and classified at a time; a CPU's caches hold few."""


@torch.no_grad()
def masked_logits(
    classifier: VideoClassifier,
    question: Question,
    boxes: torch.Tensor,
    tried: torch.Tensor,
    *,
    fill: str = VERIFYING_FILL,
) -> torch.Tensor:
    """Logits once each of boxes (B, ..., T, 4) that is `tried` (B, ...) is masked, else as they are: (B, ..., C).

    A tube that several words or questions of a clip propose is masked once. Where masking changes no pixel (a frozen
    single frame), nothing changes, to the last bit.
    """
    rows = torch.cat([tried.nonzero()[:, :1], boxes[tried].flatten(1)], dim=1)  # whose clip, then its boxes
    different, place = torch.unique(rows, dim=0, return_inverse=True)
    owner, flat = different[:, 0].long(), different[:, 1:].unflatten(1, boxes.shape[-2:])
    pixels = _PIXELS["cpu" if boxes.device.type == "cpu" else "cuda"]
    chunk = max(1, min(_CLIPS, pixels // math.prod(question.clips.shape[2:])))
    own, results = question.features.logits, []
    with evaluating(classifier):
        for first in range(0, len(flat), chunk):
            whose = owner[first : first + chunk]
            shown, masks = question.clips[whose], box_masks(flat[first : first + chunk], classifier.size)
            erased = erase(shown, masks, fill=fill)
            changed = (erased != shown).flatten(1).any(1, keepdim=True)
            results.append(torch.where(changed, classifier(erased), own[whose]))
    logits = own.view(len(own), *[1] * (tried.ndim - 1), -1).repeat(1, *tried.shape[1:], 1)
    if results:
        logits[tried] = torch.cat(results)[place]
    return logits


def log_odds(logits: torch.Tensor, negative: torch.Tensor) -> torch.Tensor:
    """Log-odds log p(B) / (1 - p(B)) from logits (..., C) of classes (..., N), which may broadcast: (..., N)."""
    log_p = logits.log_softmax(-1)
    wanted = negative.expand(*log_p.shape[:-1], negative.shape[-1])
    chosen = log_p.gather(-1, wanted)
    return chosen - torch.log1p(-chosen.exp().clamp_max(1 - 1e-6))
