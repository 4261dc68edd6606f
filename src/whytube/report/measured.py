"""The measured half of the report, ready for its template: curves, table of methods, lengths of tubes, provenance."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from whytube.report.charts import histogram, line_chart

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whytube.evaluation.results import Figure, MethodResults, Results

DASH, SPACE = "\N{EN DASH}", "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class Column:
    """A column of the table: the figure's path in the results, its heading, and whether more is better."""

    path: str
    heading: str
    hint: str
    more_is_better: bool = True


COLUMNS = (
    Column(
        "negative_class_accuracy.top1", f"negative, top{SPACE}1", "masking the tube raises B more than any other class"
    ),
    Column("negative_class_accuracy.top3", f"negative, top{SPACE}3", "B is among the three classes that rise most"),
    Column("positive_drop", "p(A) falls", "share of tubes that lower p(A) when masked"),
    Column(
        "concept_accuracy.top1",
        f"concept, top{SPACE}1",
        "the word is the annotated attribute that the tube overlaps most",
    ),
    *(
        Column(
            f"concept_accuracy.top{top}",
            f"concept, top{SPACE}{top}",
            f"the word is among the {number} annotated attributes that the tube overlaps most",
        )
        for top, number in ((3, "three"), (5, "five"))
    ),
    Column("tube_area", "area", "share of the clip that a tube covers", more_is_better=False),
    Column("tube_frames", "frames", "share of the clip's frames that a tube spans", more_is_better=False),
    Column("masked_clips", "runs", "clips that the classifier was run on to find a tube", more_is_better=False),
)


@dataclass(frozen=True)
class Cell:
    """A figure as the table shows it; empty where there is none."""

    text: str = ""
    span: str = ""
    best: bool = False


@dataclass(frozen=True)
class Measured:
    """What the section shows.

    Attributes:
        curves: (title, SVG) of each chart.
        columns: those in which some method has a figure.
        rows: the cells of each method, by its name.
        lengths: (name, mean number of frames, SVG) of each method.
        notes: what must be known beside the figures.
    """

    curves: Sequence[tuple[str, str]]
    columns: Sequence[Column]
    rows: Mapping[str, Sequence[Cell]]
    lengths: Sequence[tuple[str, float, str]]
    notes: Sequence[str] = ()

    @classmethod
    def of(cls, results: Results) -> Measured:
        """Lay out the methods of an evaluation; there must be one."""
        found = [{name: method.figure(c.path) for name, method in results.methods.items()} for c in COLUMNS]
        kept = [(column, row) for column, row in zip(COLUMNS, found, strict=True) if _means(row)]
        return cls(
            [_curve(results.methods, top) for top in (1, 3)],
            [column for column, _ in kept],
            {name: [_cell(column, row[name], row) for column, row in kept] for name in results.methods},
            [_lengths(name, method, rank) for rank, (name, method) in enumerate(results.methods.items())],
            [note.replace("`", "") for note in results.notes],
        )


def provenance_rows(results: Results) -> list[tuple[str, str]]:
    """Where the numbers come from: names and values to read."""
    told = {key: value for key, value in results.provenance.items() if value is not None and key != "notes"}
    return [(key.replace("_", " "), _plain(value)) for key, value in told.items()]


def _curve(methods: Mapping[str, MethodResults], top: int) -> tuple[str, str]:
    title = f"Negative class accuracy, top {top}"
    lines = {name: [point.mean for point in method.curves[f"curve.top{top}"]] for name, method in methods.items()}
    return title, line_chart(lines, title=title, x_label="most probable negatives averaged")


def _cell(column: Column, shown: Figure, row: Mapping[str, Figure]) -> Cell:
    if shown.mean is None:
        return Cell()
    digits = 2 if shown.mean >= 0.1 else 3
    span = "" if shown.low is None else f"{shown.low:.{digits}f}{DASH}{shown.high:.{digits}f}"
    return Cell(f"{shown.mean:.{digits}f}", span, column.more_is_better and shown.mean >= max(_means(row)))


def _means(row: Mapping[str, Figure]) -> list[float]:
    return [figure.mean for figure in row.values() if figure.mean is not None]


def _lengths(name: str, method: MethodResults, rank: int) -> tuple[str, float, str]:
    """Draw how many tubes span 1, 2, ... T frames; no tube at all (0 frames) does not count."""
    counts = method.tube_lengths
    mean = sum(frames * count for frames, count in enumerate(counts)) / max(sum(counts[1:]), 1)
    title = f"Lengths of the tubes of {name}, from 1 to {len(counts) - 1} frames; mean {mean:.1f}"
    return name, mean, histogram(counts, title=title, colour=rank)


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {part}" for key, part in value.items())
    return value if isinstance(value, str) else json.dumps(value, default=str)
