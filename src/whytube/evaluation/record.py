"""A short record of every clip, for a report that shows single answers and for looking at where a method fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whytube.evaluation.summary import plain
from whytube.tubes import box_areas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch

    from whytube.data.source import Source
    from whytube.evaluation.judge import Truth
    from whytube.search.verify import Question, Regions

KEPT = ("negative_class_accuracy.top1", "negative_class_accuracy.top3", "positive_drop", "concept_accuracy.top1")
"""Figures kept of every case, by the names they have in the record."""


def clip_records(
    indices: Sequence[int],
    source: Source,
    question: Question,
    regions: Regions,
    truth: Truth,
    figures: Mapping[str, torch.Tensor],
    after: torch.Tensor,
) -> list[dict[str, Any]]:
    """One entry per clip with its best answer to each question.

    {"index", "class", "positive", "questions": [{"negative", "word", "frames": [first, stop], "boxes": [[x1, y1, x2,
    y2] of those frames], "before": [p(A), p(B)], "after": the same, mean over the fills, "figures"}]}

    after: (F, B, N, k, C) log-probabilities, of the fills that count.
    """
    before, masked = question.features.logits.double().softmax(1), after.exp().mean(0)
    records = []
    for b, index in enumerate(indices):
        a = int(question.positive[b])
        answers = []
        for n, negative in enumerate(question.negative[b].tolist()):
            attribute = int(regions.attribute_ids[b, n, 0])
            answers.append(
                {
                    "negative": source.classes[negative],
                    "word": source.attribute_names[attribute] if attribute >= 0 else None,
                    **_span(regions.boxes[b, n, 0]),
                    "before": [plain(float(before[b, c])) for c in (a, negative)],
                    "after": [plain(float(masked[b, n, 0, c])) for c in (a, negative)],
                    "figures": {name: plain(float(figures[name][b, n, 0])) for name in KEPT},
                }
            )
        truly = source.classes[int(truth.labels[b])]
        records.append({"index": index, "class": truly, "positive": source.classes[a], "questions": answers})
    return records


def _span(boxes: torch.Tensor) -> dict[str, Any]:
    """First frame, one past the last, and the boxes between, rounded to a tenth of a pixel."""
    there = (box_areas(boxes) > 0).nonzero().flatten().tolist()
    first, stop = (there[0], there[-1] + 1) if there else (0, 0)
    return {"frames": [first, stop], "boxes": [[round(x, 1) for x in box] for box in boxes[first:stop].tolist()]}
