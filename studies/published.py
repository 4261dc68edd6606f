"""The paper's published numbers beside ours: tables 2 to 4, to the letter of its protocol where that was measured."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from studies.cells import CONCEPT, PRINTED, TOP3, ZERO, number, numbers, table, tops, with_interval
from whytube.evaluation.results import Figure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whytube.evaluation.results import MethodResults, Results

PUBLISHED: dict[tuple[str, str], dict[str, Any]] = {
    ("Olympic Sports", "baseline"): {"fc": (0.45, 0.44, 0.46), "drop": 0.76, "concept": (0.02, 0.07, 0.12)},
    ("Olympic Sports", "proposed"): {"fc": (0.62, 0.64, 0.59), "drop": 0.89, "concept": (0.13, 0.38, 0.59)},
    ("UCF101-24", "baseline"): {"fc": (0.45, 0.43, 0.44), "drop": 0.68, "concept": (0.02, 0.07, 0.13)},
    ("UCF101-24", "proposed"): {"fc": (0.64, 0.62, 0.61), "drop": 0.88, "concept": (0.14, 0.41, 0.65)},
}
"""Tables 2 to 4 of the paper: top-3 negative class accuracy with 1 to 3 fc layers, p(A) falling, concept accuracy."""
AVERAGED = 3
"""Negatives that the published top-3 is averaged over."""
APART = 0.1
"""Networks that differ by more, in the share of judged clips they are right on, are not equally right."""
UNEQUAL = """Our networks were trained on equally many clips and are not equally right: this says little about layers.
`studies/world.sh` trains each until enough of its validation clips are right.

"""
_BESIDE = (
    "centre",
    "detector-box",
    "paper",
    "paper-sgd",
    "paper+verified",
    "ours",
    "ours-unverified",
    "ours-regions",
    "grad-cam",
)
"""What stands beside the published baselines and the published method; every other method is in its run's table."""
_FILLS = {"zero, as in the paper": f"{ZERO}.", "unseen fills": ""}
"""What regions are filled with, and what leads the names of its figures."""
_ASKED = ("split", "clips", "negatives", "k", "area")
"""Settings of an evaluation that decide its figures; seeds may differ."""


def beside(runs: Mapping[str, Results]) -> str:
    """Write the published figures and ours; those of the paper's protocol in the same columns."""
    head = (
        "method",
        "data",
        "zero, as in the paper: top-3",
        "p(A) falls",
        "unseen fills: top-3",
        "p(A) falls",
        "concept as printed 1 / 3 / 5",
        "as we count",
    )
    rows = []
    for (data, kind), paper in PUBLISHED.items():
        printed = (number(paper["fc"][0]), number(paper["drop"]))
        rows.append((f"{kind} (published)", data, *printed, "-", "-", numbers(paper["concept"]), "-"))
    for name, run in runs.items():
        for method, found in ((m, run.methods[m]) for m in _BESIDE if m in run.methods):
            figures = [
                with_interval(figure)
                for lead in _FILLS.values()
                for figure in (top3(found, lead), found.figure(f"{lead}positive_drop"))
            ]
            rows.append((f"`{method}`", name, *figures, tops(found, PRINTED), tops(found, CONCEPT)))
    return table(head, rows)


def top3(found: MethodResults, lead: str) -> Figure:
    """Return the top-3 accuracy over AVERAGED negatives, also of a run that asked about more."""
    curve = found.curves.get(f"{lead}curve.top3", ())
    return curve[AVERAGED - 1] if len(curve) > AVERAGED else found.figure(f"{lead}{TOP3}")


def fc_study(runs: Mapping[str, Results], reached: Mapping[str, Any] | None = None) -> str:
    """Table 4 of the paper beside our classifiers that differ in nothing else; empty where there are none.

    reached: what the classifiers reached when they were trained, by name of the study and title of the training.
    """
    families: dict[str, dict[int, Results]] = {}
    names: dict[str, str] = {}
    for name, run in runs.items():
        if "fc_layers" in run.classifier.settings and not name.endswith("-negatives"):  # those are of fewer clips
            families.setdefault(_family(run), {}).setdefault(run.classifier.settings["fc_layers"], run)
            names.setdefault(_family(run), name)
    study = max(families.values(), key=lambda found: (len(found), -_spread(found)), default={})
    if len(study) < 2:
        return ""
    rows = [
        (f"{kind} (published, {data})", next(iter(_FILLS)), *(number(value) for value in paper["fc"]))
        for (data, kind), paper in PUBLISHED.items()
    ]
    right = {layers: number(run.classifier.accuracy.mean, 3) for layers, run in study.items()}
    rows.append(
        ("our classifiers are right on, of the judged clips", "-", *(right.get(layers, "-") for layers in (1, 2, 3)))
    )
    name = next(names[_family(run)] for run in study.values())
    rows += _rows_of_trainings((reached or {}).get(name, {}))
    wanted = (*_BESIDE, "random-tube", "true-box")
    for method in (m for m in wanted if all(m in run.methods for run in study.values())):
        for fill, lead in _FILLS.items():
            cells = {n: with_interval(top3(run.methods[method], lead)) for n, run in study.items()}
            rows.append((f"`{method}`", fill, *(cells.get(layers, "-") for layers in (1, 2, 3))))
    told = "Top-3 negative class accuracy over three negatives.\n\n" + (UNEQUAL if _spread(study) > APART else "")
    return told + table(("method", "fill", "fc1", "fc2", "fc3"), rows)


def _rows_of_trainings(reached: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Write how often networks "fcN, seed S" were right on test clips, once trained: mean and range of the seeds."""
    found: dict[int, list[float]] = {}
    for title, metrics in reached.items():
        if layers := re.fullmatch(r"fc([123]), seed \d+", title):
            found.setdefault(int(layers[1]), []).append(metrics["test accuracy"])
    if not found:
        return []
    cells = {n: with_interval(Figure(sum(all_) / len(all_), min(all_), max(all_)), 3) for n, all_ in found.items()}
    clips = max(metrics["test clips"] for metrics in reached.values())
    head = f"the same, of {clips} test clips each [range of the seeds]"
    return [(head, "-", *(cells.get(layers, "-") for layers in (1, 2, 3)))]


def _family(run: Results) -> str:
    """Name what runs that stand side by side have in common: the network but for its fc layers, and what was asked."""
    network = {name: value for name, value in run.classifier.settings.items() if name != "fc_layers"}
    asked = {name: run.provenance["settings"].get(name) for name in _ASKED}
    effort = run.provenance.get("search", {}).get("effort")
    return json.dumps([network, asked, effort, run.provenance.get("weights")], sort_keys=True)


def _spread(study: Mapping[int, Results]) -> float:
    """How much more often the best of the classifiers is right than the worst."""
    right = [run.classifier.accuracy.mean or 0.0 for run in study.values()]
    return max(right) - min(right)
