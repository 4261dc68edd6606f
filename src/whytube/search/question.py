"""The question "why A, not B?" for a batch of clips, and regions as its answer: what all methods share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from whytube.classifiers.base import Features


@dataclass(frozen=True)
class Question:
    """Ask why clip b was classified as `positive[b]`, not as each of `negative[b]`.

    Attributes:
        clips: (B, 3, T, H, W) in [0, 1], at the classifier's input size.
        features: the classifier's answer on these clips.
        positive: (B,) class indices.
        negative: (B, N) class indices.
        boxes: per clip, attribute -> (T, 4) annotated boxes in pixels of the clip; only baselines may look at them.
    """

    clips: torch.Tensor
    features: Features
    positive: torch.Tensor
    negative: torch.Tensor
    boxes: Sequence[Mapping[str, np.ndarray]] | None = None


@dataclass(frozen=True)
class Regions:
    """Ranked answers, best first: k pairs of a tube and a word for each clip and negative class.

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


def listed(rows: torch.Tensor) -> torch.Tensor:
    """List where rows (B, S) are true: (B, s), -1 where a row has fewer than others."""
    order = rows.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, : max(1, int(rows.sum(1).max()))]
    return torch.where(rows.gather(1, order), order, -1)


def padded(boxes: torch.Tensor, attributes: torch.Tensor, scores: torch.Tensor, k: int) -> Regions:
    """Fill up to k answers with none."""
    missing = k - scores.shape[-1]
    if missing:
        boxes = torch.nn.functional.pad(boxes, (0, 0, 0, 0, 0, missing))
        attributes = torch.nn.functional.pad(attributes, (0, missing), value=-1)
        scores = torch.nn.functional.pad(scores, (0, missing), value=-torch.inf)
    return Regions(boxes, attributes, scores)
