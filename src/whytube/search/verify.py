"""The question "why A, not B?", regions as its answer, and verification: mask, classify again, rank, keep k."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import torch
from torch.nn.functional import pad

from whytube.checks import check_int
from whytube.classifiers.base import evaluating
from whytube.search.masked import masked_logits
from whytube.search.score import value
from whytube.tubes import region_iou

if TYPE_CHECKING:
    from whytube.classifiers.base import Features, VideoClassifier

SELECTING_FILLS = ("zero", "noise")
"""What candidate tubes are filled with while they are compared; answers are judged by other fills."""
VERIFIED_SCORE = "search score"
"""What the scores of answers are that were found by masking: see search/score.py."""
SAME = 0.5
"""Two tubes with an IoU above this are the same region; of these only the better one is an answer."""


@dataclass(frozen=True)
class Question:
    """Ask why clip b was classified as `positive[b]`, not as each of `negative[b]`.

    Attributes:
        clips: (B, 3, T, H, W) in [0, 1], at the classifier's input size.
        features: the classifier's answer on these clips.
        positive: (B,) class indices.
        negative: (B, N) class indices.
    """

    clips: torch.Tensor
    features: Features
    positive: torch.Tensor
    negative: torch.Tensor


def ask(classifier: VideoClassifier, clips: torch.Tensor, *, negatives: int = 1) -> Question:
    """Classify clips (B, 3, T, H, W); ask why the most probable class, not each of the `negatives` next probable."""
    check_int(negatives, "negatives", 1, len(classifier.classes) - 1)
    with torch.no_grad(), evaluating(classifier):
        features = classifier.features(classifier.check_clips(clips))
    ranked = features.logits.argsort(dim=1, descending=True, stable=True)
    return Question(clips, features, ranked[:, 0], ranked[:, 1 : 1 + negatives])


@dataclass(frozen=True)
class Regions:
    """Ranked answers, best first: k pairs of a tube and an attribute for each clip and negative class.

    Attributes:
        boxes: (B, N, k, T, 4) x1, y1, x2, y2 in pixels of the clip; zeros where the tube does not exist at that step.
        attribute_ids: (B, N, k) attribute indices, -1 for a region without a word.
        scores: (B, N, k), descending; comparable within one clip and negative only.
        fits: (B, N, k), chance that the tube is where its attribute is; NaN where there is no attribute, or the method
            does not say. None: it never says.
        masked_clips: (B, N), how many masked clips the classifier was run on for the answer; None for none.
    """

    boxes: torch.Tensor
    attribute_ids: torch.Tensor
    scores: torch.Tensor
    fits: torch.Tensor | None = None
    masked_clips: torch.Tensor | None = None


class Method(Protocol):
    """Anything that answers a question with regions."""

    @property
    def name(self) -> str:
        """What its results are filed under."""

    def __call__(self, question: Question, k: int) -> Regions:
        """Answer with the k best regions; fewer are padded with empty tubes, attribute -1 and score -inf."""
        ...


def top_regions(boxes: torch.Tensor, attribute_ids: torch.Tensor, scores: torch.Tensor, k: int) -> Regions:
    """Keep the k candidates with the largest scores, best first; fewer are padded.

    boxes: (B, N, M, T, 4). attribute_ids, scores: (B, N, M); a score of -inf is no candidate.
    """
    value, place = scores.topk(min(k, scores.shape[-1]), dim=-1)
    found = value > -torch.inf
    chosen = boxes.gather(2, place[..., None, None].expand(*place.shape, *boxes.shape[-2:]))
    missing = k - place.shape[-1]
    return Regions(
        pad(torch.where(found[..., None, None], chosen, 0), (0, 0, 0, 0, 0, missing)),
        pad(torch.where(found, attribute_ids.gather(2, place), -1), (0, missing), value=-1),
        pad(value, (0, missing), value=-torch.inf),
    )


def separating_attributes(table: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor) -> torch.Tensor:
    """Attributes that A has and B lacks, S(A) minus S(B): table (C, S), (B,), (B, N) -> bool (B, N, S)."""
    return table[positive][:, None] & ~table[negative]


def suited_attributes(table: torch.Tensor, question: Question) -> torch.Tensor:
    """Attributes that can answer: those that A has and B lacks, or, where there is none, those that A has: (B, N, S).

    table: (C, S) bool, on any device.
    """
    table = table.to(question.clips.device)
    only = separating_attributes(table, question.positive, question.negative)
    return torch.where(only.any(-1, keepdim=True), only, table[question.positive][:, None])


def listed_suited(table: torch.Tensor, question: Question) -> tuple[torch.Tensor, torch.Tensor]:
    """List the attributes that can answer any negative of a clip, and say which suit which negative.

    Returns ids (B, s), -1 where a clip has fewer than others, and bool (B, N, s).
    """
    suited = suited_attributes(table, question)
    ids = listed(suited.any(1))
    each = ids.clamp_min(0)[:, None].expand(-1, suited.shape[1], -1)
    return ids, suited.gather(2, each) & (ids >= 0)[:, None]


def listed(rows: torch.Tensor) -> torch.Tensor:
    """List where rows (B, S) are true: (B, s), -1 where a row has fewer than others."""
    order = rows.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, : max(1, int(rows.sum(1).max()))]
    return torch.where(rows.gather(1, order), order, -1)


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
    tries = [masked_logits(classifier, question, boxes, exists, fill=fill, exact=False) for fill in SELECTING_FILLS]
    values = torch.stack([value(question, logits.flatten(2, 3)) for logits in tries]).mean(0).view(exists.shape)
    rise, variant = torch.where(exists, values, -torch.inf).max(-1)  # (B, N, M)
    tubes = boxes.gather(3, variant[..., None, None, None].expand(*variant.shape, 1, *boxes.shape[-2:]))[:, :, :, 0]
    if distinct:
        rise = _without_repeats(rise, tubes)
    best = top_regions(tubes, torch.full_like(variant, -1) if attribute_ids is None else attribute_ids, rise, k)
    return replace(best, masked_clips=len(SELECTING_FILLS) * exists.flatten(2).sum(-1))


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
