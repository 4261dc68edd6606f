"""The page of a bulk run: its confusions with example clips."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from whytube.bulk.listing import is_address
from whytube.bulk.query import EXAMPLES
from whytube.explanation import Evidence, Explanation, Reason
from whytube.report.confusions import Confusion, write_confusions
from whytube.tubes import Tube

if TYPE_CHECKING:
    from pathlib import Path

    from whytube.bulk.query import Answers

CELLS, CLIPS = 400, 72
"""Confusions on the page at most, the most frequent, and example clips among them: fewer each where they are many."""


def write_page(answers: Answers, path: Path) -> Path:
    """Write the page; the clips are read from where the videos are, and left out where they are no longer."""
    found = answers.summary(1)
    rows, totals = found["confusions"], found["totals"]
    facts = [(str(totals["explained"]), "videos explained"), (str(totals["failed"]), "failed")]
    if totals["missing"]:
        facts.append((str(totals["missing"]), "not done yet"))
    if totals["accuracy"] is not None:
        facts.append((f"{100 * totals['accuracy']:.1f} %", "classified as labelled"))
    hidden = f"The {CELLS} most frequent of {len(rows)} confusions are shown. " if len(rows) > CELLS else ""
    each = max(1, min(EXAMPLES, CLIPS // max(len(rows), 1)))
    if len(rows) > CLIPS // each:
        hidden += f"The {CLIPS // each} most frequent have example clips."
    confusions = []
    for place, row in enumerate(rows[:CELLS]):
        shown = answers.examples(row["positive"], row["negative"], each) if place < CLIPS // each else []
        examples = tuple(explanation_of(one, row["positive"], row["negative"]) for one in shown)
        word, share = row["word"] or "", row["share"] or 0.0
        confusions.append(
            Confusion(row["positive"], row["negative"], row["answers"], row["explained"], word, share, examples)
        )
    return write_confusions(path, confusions, facts=facts, hidden=hidden)


def explanation_of(row: dict[str, Any], positive: str, negative: str) -> Explanation:
    """Turn a row of the table of answers back into an explanation, as far as a page shows it."""
    reasons = []
    for told in row["reasons"]:
        times = None if told["times"] is None else np.array(told["times"])
        tube = Tube(np.array(told["frames"], dtype=np.int64), np.array(told["boxes"]).reshape(-1, 4), times)
        evidence = tuple(Evidence(**one) for one in told["evidence"])
        reasons.append(Reason(told["attribute"], told["score"], tube, evidence, told["fit"]))
    name = row["video"].rpartition("/")[2] if is_address(row["video"]) else row["video"]
    return Explanation(
        source=name,
        size=(row["height"], row["width"]),
        frames=tuple(row["frames"]),
        positive=positive,
        negative=negative,
        probabilities={positive: row["p_positive"], negative: row["p_negative"]},
        reasons=tuple(reasons),
        fps=row["fps"],
        settings=json.loads(row["settings"]),
    )
