"""Judge regions: mask them, run the classifier again, and lay out every figure of every case.

Figures are named by their path in the results ("negative_class_accuracy.top1") and are (B, N, k) over cases, NaN where
not defined. Those of the masked clips are measured with every fill. The headline is the mean over the fills that no
tube was chosen with: a fill that a method has tried flatters it, and a flat square is itself evidence. The paper masks
with zeros alone: its column is the fill "zero", beside the headline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import torch

from whytube.evaluation import metrics
from whytube.search.masked import masked_logits
from whytube.search.verify import SEEN_FILLS, separating_attributes
from whytube.tubes import box_areas

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whytube.classifiers.base import VideoClassifier
    from whytube.search.verify import Question, Regions

NEGATIVE_TOPS = (1, 3)
CONCEPT_TOPS = (1, 3, 5)
TIED_TOPS = (1, 3)
"""Also measured with ties counted as hits, as attributes of one part share its box."""


@dataclass(frozen=True)
class Truth:
    """What is known about B clips.

    Attributes:
        labels: (B,) the true classes.
        table: (C, S) bool, which class has which attribute.
        boxes: (B, S, T, 4) annotated boxes, zeros where there is none.
        known: (B, S) bool, which attributes are annotated.
        actors: (B, T, 4) boxes of whoever acts, zeros where there is none.
    """

    labels: torch.Tensor
    table: torch.Tensor
    boxes: torch.Tensor
    known: torch.Tensor
    actors: torch.Tensor


@runtime_checkable
class TruthMethod(Protocol):
    """A baseline that is made of the truth: it sees what no method may see."""

    @property
    def name(self) -> str:
        """What its results are filed under."""

    def with_truth(self, question: Question, truth: Truth, k: int) -> Regions:
        """Answer as a `Method` does."""
        ...


def unseen(fills: Sequence[str]) -> list[int]:
    """Places of the fills that no method has seen; all of them, where each was seen by some."""
    return [place for place, fill in enumerate(fills) if fill not in SEEN_FILLS] or list(range(len(fills)))


def masked_log_probabilities(
    classifier: VideoClassifier, question: Question, boxes: torch.Tensor, *, fills: Sequence[str]
) -> torch.Tensor:
    """Log-probabilities once a region is masked: boxes (B, N, k, T, 4) -> (F, B, N, k, C)."""
    every = torch.ones(boxes.shape[:3], dtype=torch.bool, device=boxes.device)
    logits = torch.stack([masked_logits(classifier, question, boxes, every, fill=fill) for fill in fills])
    return logits.double().log_softmax(-1)


def judge(
    regions: Regions, question: Question, truth: Truth, *, after: torch.Tensor, fills: Sequence[str]
) -> dict[str, torch.Tensor]:
    """All figures of a batch of answers; after: (F, B, N, k, C) log-probabilities of the masked clips."""
    boxes = regions.boxes.double()
    exists = box_areas(boxes).sum(-1) > 0
    effects = {name: torch.where(exists, effect, 0) for name, effect in _effects(question, after).items()}
    new = unseen(fills)
    shape = {
        "tube_area": metrics.tube_area(boxes, size=(question.clips.shape[-2], question.clips.shape[-1])),
        "tube_frames": metrics.tube_frames(boxes),
        "tube_change": metrics.tube_change(boxes),
        "actor_iou": metrics.actor_iou(boxes, truth.actors),
        "actor_pointing": metrics.actor_pointing(boxes, truth.actors),
    }
    return {
        **{name: effect[new].mean(0) for name, effect in effects.items()},
        **_attributes(regions, question, truth),
        **{name: torch.where(exists, values, torch.nan) for name, values in shape.items()},
        "answered": exists.double(),
        **{f"fills.{fill}.{name}": effect[f] for f, fill in enumerate(fills) for name, effect in effects.items()},
    }


def transferred(
    regions: Regions,
    question: Question,
    after: torch.Tensor,
    other: Question,
    after_other: torch.Tensor,
    *,
    fills: Sequence[str],
) -> dict[str, torch.Tensor]:
    """Figures (B, N, k) of the same regions on another network that was asked about the same A and B.

    other: the question with the other network's answer on the clips. after, after_other: (F, B, N, k, C). "transfer."
    leads the figures of what masking does to the other network. "agreement.positive" is whether p(A) falls there too,
    NaN where it does not fall here; "agreement.negative" whether p(B) rises there too.
    """
    exists = box_areas(regions.boxes.double()).sum(-1) > 0
    here, there = (
        {n: e[unseen(fills)] for n, e in _effects(*asked).items()}
        for asked in ((question, after), (other, after_other))
    )
    figures = {f"transfer.{name}": torch.where(exists, effect, 0).mean(0) for name, effect in there.items()}
    for of, sign in (("positive", -1), ("negative", 1)):
        path = f"log_probability.change.{of}"
        moved = exists & (sign * here[path] > 0)
        figures[f"agreement.{of}"] = torch.where(moved, (sign * there[path] > 0).double(), torch.nan).nanmean(0)
    return figures


def _effects(question: Question, after: torch.Tensor) -> dict[str, torch.Tensor]:
    """Figures (F, B, N, k) of what masking does to the classifier."""
    before = question.features.logits.double().log_softmax(1)
    a, b = question.positive, question.negative
    every_a = a[:, None].expand_as(b)
    p, q = before.exp(), after.exp()
    figures = {
        f"negative_class_accuracy.top{top}": metrics.negative_class_hits(p, q, a, b, top=top) for top in NEGATIVE_TOPS
    }
    figures["positive_drop"] = (metrics.class_change(before, after, every_a) < 0).double()
    figures["change.positive"] = metrics.class_change(p, q, every_a)
    figures["change.negative"] = metrics.class_change(p, q, b)
    for top in NEGATIVE_TOPS:
        hits = metrics.negative_class_hits(before, after, a, b, top=top)
        figures[f"log_probability.negative_class_accuracy.top{top}"] = hits
    figures["log_probability.change.positive"] = metrics.class_change(before, after, every_a)
    figures["log_probability.change.negative"] = metrics.class_change(before, after, b)
    return figures


def _attributes(regions: Regions, question: Question, truth: Truth) -> dict[str, torch.Tensor]:
    """Figures (B, N, k) of what regions show and words say; with true boxes only where the class is right."""
    ids, boxes = regions.attribute_ids, regions.boxes.double()
    apart = separating_attributes(truth.table, question.positive, question.negative)
    iou = metrics.attribute_iou(boxes, truth.boxes)
    figures = {
        f"concept_accuracy.top{top}": metrics.concept_hits(iou, truth.known, ids, top=top) for top in CONCEPT_TOPS
    }
    for top in TIED_TOPS:
        figures[f"concept_accuracy.tied.top{top}"] = metrics.tied_hits(iou, truth.known, ids, top=top)
    figures["right_box"] = metrics.right_box(iou, truth.known, ids)
    exists = box_areas(boxes).sum(-1) > 0
    silent = exists & (ids < 0)  # a word that was not said is neither right nor wrong
    figures = {name: torch.where(silent, torch.nan, values) for name, values in figures.items()}
    for top in CONCEPT_TOPS:  # in the paper every answer has a word
        printed = metrics.printed_hits(boxes, truth.boxes, truth.known, ids, top=top)
        figures[f"concept_accuracy.printed.top{top}"] = printed
    figures["true_box_iou"] = metrics.true_box_iou(iou, truth.known, apart)
    figures["pointing"] = metrics.pointing(boxes, truth.boxes, truth.known, apart)
    right = (question.positive == truth.labels)[:, None, None]
    figures = {name: torch.where(right, values, torch.nan) for name, values in figures.items()}
    figures["word_said"] = torch.where(exists, (ids >= 0).double(), torch.nan)
    figures["word_in_class"] = metrics.attribute_in_class(truth.table, question.positive, ids)
    figures["word_separates"] = metrics.attribute_separates(apart, ids)
    return figures
