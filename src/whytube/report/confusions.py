"""A page of many answers: which classes are told apart by which words, with example clips."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from whytube.errors import ExplanationError
from whytube.files import write_whole
from whytube.report.html import environment, small_clip

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from whytube.explanation import Explanation

COLLECT = 8
"""Clips that are drawn before their encoders are collected."""
Kind: TypeAlias = Literal["asked", "truth"]
SAYS = {
    "asked": (
        "Asked: why A, not B?",
        "A row is the class A that clips were classified as, a column the class B that they were not. A cell says how "
        "many answers there are, and the word of most of their reasons.",
        "A \\ B",
    ),
    "truth": (
        "True and predicted classes",
        "A row is the true class, a column what clips were classified as. A cell says how many clips there are, and "
        "the word of most of their reasons: of those about the true class, where it was asked about.",
        "true \\ predicted",
    ),
}
"""Title, note and corner of a matrix."""


@dataclass(frozen=True)
class Confusion:
    """Answers to "why A, not B?": how many, the share that is explained, and the word of most reasons, "" for none.

    share: of the reasons that have this word. examples: some of the answers. In the matrix of true classes these are
    clips of the class `negative` that were classified as `positive`, which may be the same.
    """

    positive: str
    negative: str
    answers: int
    explained: float
    word: str = ""
    share: float = 0.0
    examples: tuple[Explanation, ...] = ()


@dataclass(frozen=True)
class Lists:
    """Rows of the lists below the matrices.

    words: `positive`, `negative`, `word`, `answers`, `fit`. least: `positive`, `negative`, `explained`, `answers`.
    failures: `error`, `videos`, `example`.
    """

    words: Sequence[Mapping[str, Any]] = ()
    least: Sequence[Mapping[str, Any]] = ()
    failures: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class _Cell:
    """weight: of the largest number of its kind. cards: numbers of its examples on the page."""

    number: int
    kind: Kind
    told: Confusion
    weight: float
    cards: list[int]

    @property
    def right(self) -> bool:
        return self.kind == "truth" and self.told.positive == self.told.negative

    @property
    def place(self) -> tuple[str, str]:
        """Row and column."""
        told = self.told
        return (told.positive, told.negative) if self.kind == "asked" else (told.negative, told.positive)


def write_confusions(
    path: str | os.PathLike[str],
    confusions: Sequence[Confusion],
    *,
    truth: Sequence[Confusion] = (),
    lists: Lists | None = None,
    facts: Sequence[tuple[str, str]] = (),
    title: str = "Why these, not those?",
    hidden: Mapping[Kind, str] | None = None,
) -> Path:
    """Write a self-contained page with matrices of confusions; a cell shows its example clips when it is chosen.

    truth: for the matrix of true and predicted classes, which is left out where there are none.
    facts: numbers for the top, each with what it is. hidden: for a matrix, a sentence about what was left out.
    """
    lists, hidden = lists or Lists(), hidden or {}
    examples = {id(one): one for told in (*confusions, *truth) for one in told.examples}  # one may be in two cells
    numbers = {name: number for number, name in enumerate(examples)}
    asked = _cells("asked", confusions, 0, numbers)
    true = _cells("truth", truth, len(asked), numbers)
    page = environment().get_template("confusions.html")
    text = page.render(
        title=title,
        facts=list(facts),
        matrices=[_matrix(cells, hidden.get(cells[0].kind, "")) for cells in (asked, true) if cells],
        cells=asked + true,
        shown={cell.place: cell for cell in asked},
        cards=_cards(examples.values()),
        words=lists.words,
        least=lists.least,
        failures=lists.failures,
    )
    return write_whole(path, text.encode("utf-8", "replace").decode(), error=ExplanationError)


def _cards(examples: Iterable[Explanation]) -> list[tuple[Explanation, str | None, str]]:
    """Draw the clip of each; encoders of PyAV are parts of cycles and hold much memory, so they may not pile up."""
    cards = []
    for count, one in enumerate(examples, start=1):
        cards.append((one, *small_clip(one)))
        if count % COLLECT == 0:
            gc.collect()
    return cards


def _cells(kind: Kind, confusions: Sequence[Confusion], first: int, numbers: Mapping[int, int]) -> list[_Cell]:
    """Lay out the confusions of a matrix. Right ones, which are many, do not make mistakes look pale."""
    most: dict[bool, int] = {}
    for one in confusions:
        same = one.positive == one.negative
        most[same] = max(most.get(same, 1), one.answers)
    return [
        _Cell(
            first + place,
            kind,
            one,
            one.answers / most[one.positive == one.negative],
            [numbers[id(example)] for example in one.examples],
        )
        for place, one in enumerate(confusions)
    ]


def _matrix(cells: Sequence[_Cell], hidden: str) -> dict[str, Any]:
    kind = cells[0].kind
    title, note, corner = SAYS[kind]
    rows, columns = ({cell.place[axis] for cell in cells} for axis in (0, 1))
    return {
        "kind": kind,
        "title": title,
        "note": note,
        "corner": corner,
        "rows": sorted(rows),
        "columns": sorted(columns),
        "cells": {cell.place: cell for cell in cells},
        "hidden": hidden,
    }
