"""Ask the classifier again: mask tubes, classify, and rank the tubes by how much that speaks for B."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from whytube.classifiers.base import evaluating
from whytube.search.question import top_regions
from whytube.tubes import box_masks, erase, region_iou

if TYPE_CHECKING:
    from whytube.classifiers.base import VideoClassifier
    from whytube.search.question import Question, Regions

VERIFYING_FILL = "zero"
"""What candidate tubes are filled with while they are compared; answers are judged by other fills."""
VERIFIED_SCORE = "log-odds of B"
"""What the scores of `best_regions` are: how much the log-odds of B rise, against A and all other classes."""
SAME = 0.5
"""Two tubes with an IoU above this are the same region; of these only the better one is an answer."""

_CLIPS = 64
_PIXELS = {"cpu": 2**22, "cuda": 2**24}
"""At most so many clips, and pixels of them, are masked and classified at a time; a CPU's caches hold few."""


def best_regions(
    classifier: VideoClassifier,
    question: Question,
    boxes: torch.Tensor,
    exists: torch.Tensor,
    k: int,
    *,
    attribute_ids: torch.Tensor | None = None,
    distinct: bool = False,
) -> Regions:
    """Mask every candidate tube, classify again, and keep the k tubes that raise the log-odds of B most.

    Args:
        classifier: is run once for every different tube of a clip.
        question: B clips with N negatives each.
        boxes: (B, N, M, V, T, 4): M candidates, each in V variants of which only the best one counts.
        exists: (B, N, M, V) bool, which of them there are.
        k: how many to keep.
        attribute_ids: (B, N, M), -1 for none; by default none has one.
        distinct: leave out tubes that are the same region as a better one, see SAME.
    """
    logits = masked_logits(classifier, question, boxes, exists)  # (B, N, M, V, C)
    after = log_odds(logits, question.negative[:, :, None, None, None])[..., 0]
    before = log_odds(question.features.logits, question.negative)  # (B, N)
    rise, variant = torch.where(exists, after - before[:, :, None, None], -torch.inf).max(-1)  # (B, N, M)
    tubes = boxes.gather(3, variant[..., None, None, None].expand(*variant.shape, 1, *boxes.shape[-2:]))[:, :, :, 0]
    if distinct:
        rise = _without_repeats(rise, tubes)
    return top_regions(tubes, torch.full_like(variant, -1) if attribute_ids is None else attribute_ids, rise, k)


def _without_repeats(rise: torch.Tensor, tubes: torch.Tensor) -> torch.Tensor:
    """Set the rise (B, N, M) of tubes (B, N, M, T, 4) that repeat a better one to -inf."""
    rise = rise.clone()
    same = region_iou(tubes[:, :, :, None], tubes[:, :, None]) > SAME  # (B, N, M, M)
    for b, n in torch.cartesian_prod(*(torch.arange(count) for count in rise.shape[:2])).tolist():
        better: list[int] = []
        for place in rise[b, n].argsort(descending=True, stable=True).tolist():
            if same[b, n, place, better].any():
                rise[b, n, place] = -torch.inf
            else:
                better.append(place)
    return rise


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

    A tube that comes several times for a clip is masked once. Where masking changes no pixel (a frozen single frame),
    nothing changes, to the last bit.
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
