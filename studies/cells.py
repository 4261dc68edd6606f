"""Figures of results by name, the heads of their columns, and how a cell of a table is written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from whytube.tubes import PAPERS_FILL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from whytube.evaluation.results import Comparison, Figure, MethodResults

TOP1, TOP3 = "negative_class_accuracy.top1", "negative_class_accuracy.top3"
LOG3 = "log_probability.negative_class_accuracy.top3"
CONCEPT, TIED = "concept_accuracy", "concept_accuracy.tied"
PRINTED = "concept_accuracy.printed"
ZERO = f"fills.{PAPERS_FILL}"
COST = "masked_clips"
SHRUNK = re.compile(r"`(?P<method>[^`]+)`: (?P<some>\d+) of (?P<all>\d+) tubes were above the area")
"""The note of a run that counts the tubes that were shrunk."""
_WITH_INTERVAL = (TOP1, TOP3, "positive_drop", LOG3, "right_box")
_TOPS = {CONCEPT: (1, 3, 5), TIED: (1, 3), PRINTED: (1, 3, 5)}
"""Figures that stand together in one cell."""
COLUMNS = {
    COST: "masked clips",
    TOP1: "negative top-1",
    TOP3: "top-3",
    "positive_drop": "p(A) falls",
    ZERO: "zero, as in the paper: top-1 / 3 / p(A) falls",
    LOG3: "by log p: top-3",
    CONCEPT: "concept 1 / 3 / 5",
    TIED: "with ties 1 / 3",
    PRINTED: "as printed 1 / 3 / 5",
    "word_said": "word said",
    "right_box": "right box",
    "tube_area": "area",
}
"""Figures of a run's table, and their heads."""
FURTHER = {
    "log_probability.negative_class_accuracy.top1": "by log p: top-1",
    "word_separates": "separates",
    "true_box_iou": "true box IoU",
    "tube_frames": "frames",
    "answered": "answered",
    "tube_change": "changes with B",
    "actor_iou": "actor IoU",
    "actor_pointing": "centre on actor",
}
"""Figures of its second table."""
COMPARED = {
    TOP1: "negative top-1",
    TOP3: "top-3",
    "positive_drop": "p(A) falls",
    LOG3: "by log p: top-3",
    "concept_accuracy.top1": "concept top-1",
    "concept_accuracy.top3": "top-3",
}
"""Figures whose differences the page shows, and their heads."""
TITLES = {
    "ours": "words and tubes",
    "ours-regions": "the same search without words",
    "ours-unverified": "our words' best tubes, none tried",
    "predicted": "the tube predicted to be best, none tried",
    "random-verified": "the best of random tubes; a word by lot",
    "grad-cam-verified": "the best of contrastive Grad-CAM's tubes",
    "paper": "the paper's objective",
    "paper+verified": "the paper's tubes with our search",
    "paper:sgd": "its objective with SGD at .0001",
    "paper-sgd": "the paper's objective, to the letter",
    "grad-cam": "contrastive, one tube",
    "random-tube": "one, of the areas of `ours`",
    "centre": "the paper's baseline",
    "detector-box": "the actor's box, the paper's baseline",
}
"""What methods are, in short tables."""


def has(found: MethodResults, path: str) -> bool:
    """Whether a method has what a cell shows; zeros have their column also where nobody measured them."""
    return path == ZERO or found.figure(f"{path}.top1" if path in _TOPS else path).mean is not None


def cell(found: MethodResults, path: str) -> str:
    """Write a figure, with its interval where there is room, or several in one cell."""
    if path in _TOPS:
        return tops(found, path)
    if path == ZERO:
        return zeros(found.figures)
    if path in _WITH_INTERVAL:
        return with_interval(found.figure(path))
    return number(found.figure(path).mean, {"tube_area": 3, COST: 1}.get(path, 2))


def difference(found: Comparison | None) -> str:
    """Write a difference with its interval and p-value."""
    if found is None or found.difference is None or found.p is None:
        return "-"
    p = "p < .001" if found.p < 0.001 else f"p {found.p:.3f}".replace("0.", ".")
    return f"{found.difference:+.2f} [{number(found.low)}, {number(found.high)}], {p}"


def listed(value: Any) -> str:
    """Write one thing, or several different ones."""
    return ", ".join(map(str, dict.fromkeys(value))) if isinstance(value, list) else str(value)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def number(value: float | None, digits: int = 2) -> str:
    """Write a figure; a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def with_interval(figure: Figure, digits: int = 2) -> str:
    """Write a figure with its interval."""
    span = "" if figure.low is None else f" [{number(figure.low, digits)}, {number(figure.high, digits)}]"
    return number(figure.mean, digits) + span


def tops(found: MethodResults, path: str) -> str:
    """Write accuracies among the first 1, 3 (and 5)."""
    return numbers(found.figure(f"{path}.top{top}").mean for top in _TOPS.get(path, (1, 3)))


def zeros(figures: Mapping[str, Figure]) -> str:
    """Write negative class accuracy among the first 1 and 3 and p(A) falling, filled with zeros; or a dash."""
    paths = (f"{ZERO}.{path}" for path in (TOP1, TOP3, "positive_drop"))
    return numbers(figures[path].mean if path in figures else None for path in paths)


def numbers(values: Iterable[float | None]) -> str:
    """Write several figures; one dash where there is none at all."""
    found = list(values)
    return "-" if all(value is None for value in found) else " / ".join(number(value) for value in found)
