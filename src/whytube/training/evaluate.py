"""How often a classifier is right, and what it takes for what."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from whytube.classifiers.base import evaluating
from whytube.data.source import clips_to_take

if TYPE_CHECKING:
    from whytube.classifiers.base import VideoClassifier
    from whytube.data.source import Source


class Judgement(NamedTuple):
    """accuracy in [0, 1]; confusion (C, C) int64: clips of the row's class that were said to be of the column's."""

    accuracy: float
    confusion: torch.Tensor


def evaluate_classifier(
    model: VideoClassifier,
    source: Source,
    split: str,
    count: int | None = None,
    *,
    batch_size: int = 32,
) -> Judgement:
    """Judge the model on the first `count` clips of a split, or on all, where it is; its mode is left as it was."""
    total = clips_to_take(source, split, count)
    classes, device = len(model.classes), model.device
    confusion = torch.zeros(classes * classes, dtype=torch.long, device=device)
    with evaluating(model):
        for start in range(0, total, batch_size):
            batch = source.batch(split, range(start, min(start + batch_size, total)), device)
            with torch.inference_mode():
                said = model(batch.clips).argmax(1)
            confusion += torch.bincount(batch.labels * classes + said, minlength=classes * classes)
    table = confusion.view(classes, classes).cpu()
    return Judgement(float(table.diagonal().sum()) / total, table)
