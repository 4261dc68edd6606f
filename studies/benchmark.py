"""The tables of docs/benchmark.md: what an entry is compared with, from the files under results/."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studies.cells import ZERO, before_the_search, listed, number, table, with_interval
from studies.page import FIRST_RELEASE
from whytube.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whytube.evaluation.results import MethodResults, Results

BEGIN, END = "<!-- tables: written by `make results` -->", "<!-- end of the tables -->"
RUNS = ("jhmdb-1", "world-64", "jhmdb", "world", "jhmdb-first", "world-first")
"""Results that are tables of the benchmark, where they are there."""
_COLUMNS = {
    "masked_clips": "masked clips",
    "tube_area": "area",
    "negative_class_accuracy.top1": "negative top-1",
    "negative_class_accuracy.top3": "top-3",
    "positive_drop": "p(A) falls",
    f"{ZERO}.negative_class_accuracy.top3": "zero, as in the paper: top-3",
    "log_probability.negative_class_accuracy.top3": "by log p: top-3",
    "concept_accuracy.top1": "concept top-1",
    "concept_accuracy.top3": "top-3",
}


def with_tables(text: str, runs: Mapping[str, Results]) -> str:
    """Return a page with its tables written anew, between the two marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise DataError(f"the page has no place for the tables: expected {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{tables(runs)}\n{END}{after}"


def tables(runs: Mapping[str, Results]) -> str:
    """Write the table of every run of the benchmark, methods by negative class accuracy, best first."""
    parts = []
    for name in (name for name in RUNS if name in runs):
        found = sorted(runs[name].methods.items(), key=_accuracy, reverse=True)
        shown = {
            path: head
            for path, head in _COLUMNS.items()
            if path.startswith(ZERO) or any(figures.figure(path).mean is not None for _, figures in found)
        }
        rows = [(f"`{method}`", *(_cell(figures, path) for path in shown)) for method, figures in found]
        commit = listed(runs[name].provenance["commit"] or "unknown")
        parts.append(
            f"**{name}** (results/{name}.json, commit {commit})\n\n"
            + (f"{FIRST_RELEASE}\n\n" if before_the_search(runs[name]) else "")
            + table(("method", *shown.values()), rows)
            + "".join(f"\n{note}\n" for note in runs[name].notes)
        )
    return "\n".join(parts)


def _accuracy(entry: tuple[str, MethodResults]) -> float:
    return entry[1].figure("negative_class_accuracy.top1").mean or 0.0


def _cell(found: MethodResults, path: str) -> str:
    if path.startswith("negative_class_accuracy"):
        return with_interval(found.figure(path))
    return number(found.figure(path).mean, {"masked_clips": 1, "tube_area": 3}.get(path, 2))
