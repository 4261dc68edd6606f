"""The page of a bulk run: its confusions with example clips."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np

from whytube.bulk.listing import is_address, split_address
from whytube.bulk.query import EXAMPLES
from whytube.checks import check_int
from whytube.explanation import Evidence, Explanation, Reason
from whytube.report.confusions import Confusion, Lists, write_confusions
from whytube.tubes import Tube

if TYPE_CHECKING:
    from pathlib import Path

    from whytube.bulk.query import Answers

CELLS, CLIPS = 400, 72
"""Cells of a matrix at most, the most frequent, and example clips on the page: fewer each where cells are many."""


def write_page(answers: Answers, path: Path, top: int = 10, clips: int = CLIPS) -> Path:
    """Write the page; the clips are read from where the videos are, and left out where they are no longer.

    top: rows of the lists. clips: examples at most.
    """
    largest = check_int(clips, "clips", 0)
    found = answers.summary(top)
    totals = found["totals"]
    facts = [(str(totals["explained"]), "videos explained"), (str(totals["failed"]), "failed")]
    if totals["missing"]:
        facts.append((str(totals["missing"]), "not done yet"))
    if totals["accuracy"] is not None:
        facts.append((f"{100 * totals['accuracy']:.1f} %", "classified as labelled"))
    asked, truth = (min(len(found[name]), CELLS) for name in ("confusions", "truth"))
    each = max(1, min(EXAMPLES, largest // max(asked + truth, 1)))
    room = largest // each  # half of it for either matrix, and what the other one leaves
    true = min(truth, max(room // 2, room - asked))
    places = {"truth": true, "asked": min(asked, room - true)}
    made: dict[tuple[Any, ...], Explanation] = {}

    def told(row: dict[str, Any], *, shows: bool) -> Confusion:
        if "label" in row:
            positive, negative, number = row["predicted"], row["label"], row["clips"]
            shown = answers.true_examples(negative, positive, each) if shows else []
        else:
            positive, negative, number = row["positive"], row["negative"], row["answers"]
            shown = answers.examples(positive, negative, each) if shows else []
        examples = []
        for one in shown:
            name = (one["row"], one["start"], one["negative"])
            examples.append(made.setdefault(name, explanation_of(one, one["positive"], one["negative"])))
        word, share = row["word"] or "", row["share"] or 0.0
        return Confusion(positive, negative, number, row["explained"], word, share, tuple(examples))

    return write_confusions(
        path,
        [told(row, shows=place < places["asked"]) for place, row in enumerate(found["confusions"][:CELLS])],
        truth=[told(row, shows=place < places["truth"]) for place, row in enumerate(found["truth"][:CELLS])],
        lists=Lists(found["words"], found["least"], found["failures"]),
        facts=facts,
        hidden={
            "asked": _hidden(len(found["confusions"]), places["asked"], "most frequent"),
            "truth": _hidden(len(found["truth"]), places["truth"], "most frequent, mistakes before the others,"),
        },
    )


def _hidden(count: int, places: int, which: str) -> str:
    """Say what the page leaves out of a matrix."""
    said = [f"Of {count} cells the {CELLS} {which} are shown."] if count > CELLS else []
    said += [f"The {places} {which} have example clips."] if count > places > 0 else []
    return " ".join(said)


def explanation_of(row: dict[str, Any], positive: str, negative: str) -> Explanation:
    """Turn a row of the table of answers back into an explanation, as far as a page shows it."""
    reasons = []
    for told in row["reasons"]:
        times = None if told["times"] is None else np.array(told["times"])
        tube = Tube(np.array(told["frames"], dtype=np.int64), np.array(told["boxes"]).reshape(-1, 4), times)
        evidence = tuple(Evidence(**one) for one in told["evidence"])
        reasons.append(Reason(told["attribute"], told["score"], tube, evidence, told["fit"]))
    video = row["video"]
    name = unquote(split_address(video)[0].rpartition("/")[2]) if is_address(video) else video
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
