"""What the project set out to reach, and what its results say: a table in which nothing is written by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from studies.cells import CONCEPT, LOG3, TIED, TOP1, TOP3, number, table, with_interval
from whytube.evaluation.results import Figure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whytube.evaluation.results import Results

PLACES = 1e-9
"""Differences that rounding makes."""
MISSED = "**missed**"


@dataclass(frozen=True)
class Goal:
    """A figure of a method in results/FILE.json, or of a benchmark by its path there, and what it was to be.

    A path goes on from a list with "name=value": the first entry where it is so.
    most: the figure must not be above `wanted`, else not below. over: the figure that it is divided by.
    """

    what: str
    file: str
    path: tuple[str, ...]
    wanted: float
    most: bool = False
    over: tuple[str, ...] = ()
    digits: int = 2


def _method(what: str, file: str, method: str, wanted: Mapping[str, float]) -> list[Goal]:
    return [Goal(f"{what}: {_NAMES[path]}", file, (method, path), value) for path, value in wanted.items()]


def _jhmdb_tubes(file: str) -> list[Goal]:
    wanted = {TOP1: 0.65, TOP3: 0.90, "positive_drop": 0.87, LOG3: 0.55}
    return [
        *_method("J-HMDB without words", file, "ours-regions", wanted),
        *_method("J-HMDB with words", file, "ours", {TOP1: 0.52, TOP3: 0.78, "positive_drop": 0.85}),
        *_method("J-HMDB, predicted, none tried", file, "predicted", {TOP1: 0.42, TOP3: 0.68}),
    ]


def _jhmdb_words(file: str) -> list[Goal]:
    return _method("J-HMDB", file, "ours", {f"{TIED}.top1": 0.65, f"{CONCEPT}.top1": 0.65, f"{TIED}.top3": 0.86})


_NAMES = {
    TOP1: "B rises most",
    TOP3: "B among the three that rise most",
    LOG3: "the same by log-probability",
    "positive_drop": "p(A) falls",
    f"{TIED}.top1": "the word is right, where one is said; ties are hits",
    f"{CONCEPT}.top1": "the same, a hit shared among those that tie",
    f"{TIED}.top3": "among three",
    "right_box": "the word's box is the right one",
}
GOALS: dict[str, list[Goal]] = {
    "True for the network, on real video": [
        *_jhmdb_tubes("jhmdb-1"),
        *_method(
            "J-HMDB, 8 tried, 21 clips, about the runner-up alone",
            "jhmdb-effort-8",
            "ours-regions",
            {TOP1: 0.55, TOP3: 0.82},
        ),
    ],
    "Right words, on real video": _jhmdb_words("jhmdb-1"),
    "Both at the default effort of 16 tubes, 63 test clips with boxes": [
        *_jhmdb_tubes("jhmdb-boxed-front-1"),
        *_jhmdb_words("jhmdb-boxed-front-1"),
    ],
    "The embedded world, with the paper's network": [
        *_method("without words", "world-full", "ours-regions", {TOP1: 0.65, TOP3: 0.90}),
        Goal(
            "without words: share of the clip", "world-full", ("ours-regions", "tube_area"), 0.066, most=True, digits=3
        ),
        *_method("with words", "world-full", "ours", {TOP1: 0.55, TOP3: 0.85, "right_box": 0.90}),
    ],
    "The embedded world, with three small networks and an earlier search": [
        *_method("without words", "world", "ours-regions", {TOP1: 0.65, TOP3: 0.90}),
        Goal("without words: share of the clip", "world", ("ours-regions", "tube_area"), 0.066, most=True, digits=3),
        *_method("with words", "world", "ours", {TOP1: 0.55, TOP3: 0.85, "right_box": 0.90}),
    ],
    "Fast": [
        Goal("a training step of the explainer, times faster", "train-h200", ("milliseconds", "ratio"), 12, digits=1),
        Goal(
            "its memory, share of the straightforward step's",
            "train-h200",
            ("extra_bytes", "ours"),
            0.2,
            most=True,
            over=("extra_bytes", "straightforward"),
        ),
        Goal("`thorough` on an H200, seconds", "answer-h200", ("rows", "effort=thorough", "seconds"), 1.5, most=True),
        Goal("share of that in the classifier", "answer-h200", ("rows", "effort=thorough", "network"), 0.9),
        Goal(
            "`normal` on two CPU cores, the whole command, seconds",
            "answer-cpu",
            ("rows", "effort=normal", "command"),
            12,
            most=True,
        ),
        Goal(
            "share of an answer in the classifier, once loaded", "answer-cpu", ("rows", "effort=normal", "network"), 0.9
        ),
    ],
    "Beyond one machine": [
        Goal(
            "two workers against one",
            "bulk-cpu",
            ("rows", "run=bulk, 2 on Ray", "rate"),
            1.7,
            over=("rows", "run=bulk, 1 on Ray", "rate"),
        ),
        Goal("memory of two hours against two minutes", "bulk-long-cpu", ("ratio",), 1.5, most=True),
        Goal("driver's memory, 100,000 rows against 1,000", "bulk-rows-cpu", ("ratio",), 1.5, most=True),
        Goal(
            "training: share of time a GPU waits, clips held in memory",
            "reading-h200",
            ("rows", "way=memory", "idle"),
            0.1,
            most=True,
        ),
        Goal(  # events on the device say less: it is slowed, and not idle, while Python decodes
            "the same, clips decoded each time: the time beyond that of clips kept on the GPU",
            "reading-h200",
            ("rows", "way=ahead", "beyond_kept"),
            0.1,
            most=True,
        ),
    ],
}
"""Goals by what they are about. The files say commit, seed, device and versions."""


def goals_table(runs: Mapping[str, Results], benchmarks: Mapping[str, Any]) -> str:
    """Write every goal, what was reached, and whether that is enough; a file that is not there was not measured."""
    rows = []
    for about, goals in GOALS.items():
        rows.append((f"**{about}**", "", "", "", ""))
        for goal in goals:
            found = _found(goal, runs, benchmarks)
            link = f"`{goal.file}`"
            wanted = f"at {'most' if goal.most else 'least'} {number(goal.wanted, goal.digits)}"
            verdict, digits = _verdict(goal, found), goal.digits
            if verdict == MISSED and number(found.mean or 0, digits) == number(goal.wanted, digits):
                digits += 1  # else one would wonder why
            rows.append((goal.what, wanted, with_interval(found, digits), verdict, link))
    return table(("goal", "wanted", "measured", "", "file"), rows)


def _found(goal: Goal, runs: Mapping[str, Results], benchmarks: Mapping[str, Any]) -> Figure:
    if goal.file in runs:
        method, path = goal.path
        methods = runs[goal.file].methods
        return methods[method].figure(path) if method in methods else Figure()
    value, over = (_entry(benchmarks.get(goal.file), path) for path in (goal.path, goal.over))
    if value is None or (goal.over and over is None):
        return Figure()
    return Figure(value / over if goal.over and over else value)


def _entry(found: Any, path: tuple[str, ...]) -> float | None:
    """Return the number at a path; None where there is none."""
    for step in path:
        if isinstance(found, list):
            name, _, value = step.partition("=")
            found = next((row for row in found if row.get(name) == value), None)
        else:
            found = found.get(step) if isinstance(found, dict) else None
    return float(found) if isinstance(found, int | float) else None


def _verdict(goal: Goal, found: Figure) -> str:
    if found.mean is None:
        return "not measured"
    beyond = goal.wanted - found.mean if goal.most else found.mean - goal.wanted
    return "reached" if beyond >= -PLACES else MISSED
