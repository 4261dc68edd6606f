"""The question "why A, not B?" for a batch of clips, and regions as its answer: what all methods share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch

from whytube.checks import check_int
from whytube.classifiers.base import evaluating

if TYPE_CHECKING:
    from whytube.classifiers.base import Features, VideoClassifier


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
    """

    boxes: torch.Tensor
    attribute_ids: torch.Tensor
    scores: torch.Tensor


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
        torch.nn.functional.pad(torch.where(found[..., None, None], chosen, 0), (0, 0, 0, 0, 0, missing)),
        torch.nn.functional.pad(torch.where(found, attribute_ids.gather(2, place), -1), (0, missing), value=-1),
        torch.nn.functional.pad(value, (0, missing), value=-torch.inf),
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


def listed(rows: torch.Tensor) -> torch.Tensor:
    """List where rows (B, S) are true: (B, s), -1 where a row has fewer than others."""
    order = rows.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, : max(1, int(rows.sum(1).max()))]
    return torch.where(rows.gather(1, order), order, -1)
