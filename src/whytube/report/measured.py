"""The measured half of the report, ready for its template: curves, table of methods, lengths of tubes, provenance."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from whytube.report.charts import histogram, line_chart
from whytube.tubes import PAPERS_FILL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whytube.evaluation.results import Figure, MethodResults, Results

DASH, SPACE = "\N{EN DASH}", "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class Column:
    """A column of the table: the figure's path in the results, its heading, and whether more is better.

    always: shown also where no method has the figure.
    """

    path: str
    heading: str
    hint: str
    more_is_better: bool = True
    always: bool = False


COLUMNS = (
    Column(
        "negative_class_accuracy.top1", f"negative, top{SPACE}1", "masking the tube raises B more than any other class"
    ),
    Column("negative_class_accuracy.top3", f"negative, top{SPACE}3", "B is among the three classes that rise most"),
    Column("positive_drop", "p(A) falls", "share of tubes that lower p(A) when masked"),
    *(
        Column(
            f"fills.{PAPERS_FILL}.{path}",
            f"zero, as in the paper: {heading}",
            f"{hint}; filled with zeros, which some methods have seen",
            always=True,
        )
        for path, heading, hint in (
            ("negative_class_accuracy.top1", f"top{SPACE}1", "B rises most"),
            ("negative_class_accuracy.top3", f"top{SPACE}3", "B is among the three classes that rise most"),
            ("positive_drop", "p(A) falls", "share of tubes that lower p(A)"),
        )
    ),
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
    *(
        Column(
            f"concept_accuracy.printed.top{top}",
            f"as printed, top{SPACE}{top}",
            "concept accuracy by the words of the paper: all frames and untouched boxes count, no word is a miss",
        )
        for top in (1, 3, 5)
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
        pairs: (method, i, cells) of each of several pairs of word and tube, in the same columns; empty where k is 1.
        lengths: (name, mean number of frames, SVG) of each method.
        notes: what must be known beside the figures.
    """

    curves: Sequence[tuple[str, str]]
    columns: Sequence[Column]
    rows: Mapping[str, Sequence[Cell]]
    lengths: Sequence[tuple[str, float, str]]
    notes: Sequence[str] = ()
    pair_columns: Sequence[Column] = ()
    pairs: Sequence[tuple[str, int, Sequence[Cell]]] = ()

    @classmethod
    def of(cls, results: Results) -> Measured:
        """Lay out the methods of an evaluation; there must be one."""
        found = [{name: method.figure(c.path) for name, method in results.methods.items()} for c in COLUMNS]
        kept = [(column, row) for column, row in zip(COLUMNS, found, strict=True) if column.always or _means(row)]
        columns, pairs = _pairs(results.methods)
        return cls(
            [chart for lead in ("", f"fills.{PAPERS_FILL}.") for top in (1, 3) for chart in _curve(results, lead, top)],
            [column for column, _ in kept],
            {name: [_cell(column, row[name], row) for column, row in kept] for name in results.methods},
            [_lengths(name, method, rank) for rank, (name, method) in enumerate(results.methods.items())],
            [note.replace("`", "") for note in results.notes],
            columns,
            pairs,
        )


def _pairs(methods: Mapping[str, MethodResults]) -> tuple[list[Column], list[tuple[str, int, list[Cell]]]]:
    """Lay out the figures of each of the k pairs alone, as the paper evaluates them; nothing where k is 1."""
    found = [(name, i, rank) for name, m in methods.items() if len(m.ranks) > 1 for i, rank in enumerate(m.ranks, 1)]
    shown = [column for column in COLUMNS if any(column.path in rank for _, _, rank in found)]
    rows = [(name, i, [_cell(c, rank.get(c.path), {}) for c in shown]) for name, i, rank in found]
    return shown, rows


def provenance_rows(results: Results) -> list[tuple[str, str]]:
    """Where the numbers come from: names and values to read."""
    told = {key: value for key, value in results.provenance.items() if value is not None and key != "notes"}
    return [(key.replace("_", " "), _plain(value)) for key, value in told.items()]


def _curve(results: Results, lead: str, top: int) -> list[tuple[str, str]]:
    """Draw the accuracy over the n most probable negatives, as Fig. 5 of the paper does; nothing without points.

    lead: that of a fill's figures, "" for the mean over those that the search has not seen.
    """
    title = f"Negative class accuracy, top {top}" + (", zero, as in the paper" if lead else "")
    path = f"{lead}curve.top{top}"
    lines = {name: [point.mean for point in method.curves.get(path, ())] for name, method in results.methods.items()}
    chart = line_chart(lines, title=title, x_label="most probable negatives averaged")
    return [(title, chart)] if chart or not lead else []


def _cell(column: Column, shown: Figure | None, row: Mapping[str, Figure]) -> Cell:
    if shown is None or shown.mean is None:
        return Cell()
    digits = 2 if shown.mean >= 0.1 else 3
    span = "" if shown.low is None else f"{shown.low:.{digits}f}{DASH}{shown.high:.{digits}f}"
    return Cell(
        f"{shown.mean:.{digits}f}", span, bool(row) and column.more_is_better and shown.mean >= max(_means(row))
    )


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
