"""A page of many answers: which classes are told apart by which words, with example clips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whytube.errors import ExplanationError
from whytube.files import write_whole
from whytube.report.html import environment, small_clip

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from pathlib import Path

    from whytube.explanation import Explanation


@dataclass(frozen=True)
class Confusion:
    """Answers to "why A, not B?": how many, the share that is explained, and the word of most reasons, "" for none.

    share: of the reasons that have this word. examples: some of the answers.
    """

    positive: str
    negative: str
    answers: int
    explained: float
    word: str = ""
    share: float = 0.0
    examples: tuple[Explanation, ...] = ()


@dataclass(frozen=True)
class _Cell:
    number: int
    positive: str
    negative: str
    answers: int
    explained: float
    word: str
    share: float
    weight: float
    cards: list[tuple[Explanation, str | None, str]]


def write_confusions(
    path: str | os.PathLike[str],
    confusions: Sequence[Confusion],
    *,
    facts: Sequence[tuple[str, str]] = (),
    title: str = "Why these, not those?",
    hidden: str = "",
) -> Path:
    """Write a self-contained page with a matrix of confusions; a cell shows its example clips when it is chosen.

    facts: numbers for the top, each with what it is. hidden: a sentence about what was left out.
    """
    most = max((one.answers for one in confusions), default=1)
    cells = {
        (one.positive, one.negative): _Cell(
            number,
            one.positive,
            one.negative,
            one.answers,
            one.explained,
            one.word,
            one.share,
            one.answers / most,
            [(example, *small_clip(example)) for example in one.examples],
        )
        for number, one in enumerate(confusions)
    }
    page = environment().get_template("confusions.html")
    text = page.render(
        title=title,
        facts=list(facts),
        rows=sorted({one.positive for one in confusions}),
        columns=sorted({one.negative for one in confusions}),
        cells=cells,
        hidden=hidden,
    )
    return write_whole(path, text.encode("utf-8", "replace").decode(), error=ExplanationError)
