"""The results page: JSON under results/ -> docs/results.md, the paper's published numbers beside ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whytube.errors import DataError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

PUBLISHED: dict[tuple[str, str], dict[str, Any]] = {
    ("Olympic Sports", "baseline"): {"fc": (0.45, 0.44, 0.46), "drop": 0.76, "concept": (0.02, 0.07, 0.12)},
    ("Olympic Sports", "proposed"): {"fc": (0.62, 0.64, 0.59), "drop": 0.89, "concept": (0.13, 0.38, 0.59)},
    ("UCF101-24", "baseline"): {"fc": (0.45, 0.43, 0.44), "drop": 0.68, "concept": (0.02, 0.07, 0.13)},
    ("UCF101-24", "proposed"): {"fc": (0.64, 0.62, 0.61), "drop": 0.88, "concept": (0.14, 0.41, 0.65)},
}
"""Tables 2 to 4 of the paper: top-3 negative class accuracy with 1 to 3 fc layers, p(A) falling, concept accuracy."""

_BESIDE = ("centre", "detector-box", "paper", "ours", "grad-cam")
"""What stands beside the published baselines and the published method; every other method is in its run's table."""

_MORE = {"tube_change": "changes with B", "actor_iou": "actor IoU", "actor_pointing": "centre on actor"}
"""Figures that only some results have, and their heads."""

_INTRODUCTION = """\
# Results

*Generated from the files under `results/`; do not edit.*

**The data differ from the paper's.** Its attributes and boxes for Olympic Sports and UCF101-24 were never published, so
its numbers cannot be measured again. They stand here as they were printed, beside ours on data that can be had. Compare
methods within one table; across tables only the order of methods means anything.

How to read the figures:

- *Negative class accuracy*: after masking the region, is the class asked about among the 1 (or 3) that gain most? Means
  over the most probable negatives, and over the fills that a region is masked with. Square brackets are 95 % intervals
  over clips; where there are several seeds or splits, the range of their results.
- *by log p*: the same, ranked by the change of log-probability. A change of probability favours classes that were
  probable before; this does not.
- *p(A) falls*: how often masking makes the predicted class less probable.
- *Concept accuracy*: is the word among the 1, 3, 5 annotated attributes that the region overlaps most? Only where the
  class is right. Attributes of one entity share its box, and then a hit counts by its chance; *right box* does not ask
  for more than the box. A word whose box the region does not touch is no hit.
- *Separates*: the word is one that A has and B lacks. *Answered*: a region was given at all; none hits nothing.
- *Changes with B*: how much the region differs from those for the other negatives, 1 - IoU; 0 for the same region
  whatever B is. *Actor IoU*, *centre on actor*: overlap with the box of whoever acts, and share of frames in which the
  region's centre lies in it; neither is a goal, since the reason need not be the actor.
- *Area* and *frames*: share of the clip's pixels and frames that the region covers. A larger region moves a classifier
  more, so compare a method with `random-tube` of the same area.
"""


def read_results(folder: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """Read every JSON file of a folder, by its name without the ending."""
    found = {}
    for path in sorted(Path(folder).glob("*.json"), key=lambda path: path.stem):
        try:
            found[path.stem] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise DataError(f"{path} is not JSON: {error}") from error
    return found


def results_page(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the page from results of `evaluate` by name; what has no methods (a benchmark) is left out."""
    runs = {name: result for name, result in results.items() if "methods" in result}
    parts = [_INTRODUCTION, "## The paper beside ours\n", _beside(runs)]
    study = _fc_study(runs)
    if study:
        parts += ["## The number of fc layers\n", "Top-3 negative class accuracy over three negatives.\n", study]
    for name, run in runs.items():
        parts += [f"## {name}\n", _about(run), _methods(run), _fills(run), _provenance(run)]
    return "\n".join(parts)


def _beside(runs: Mapping[str, Mapping[str, Any]]) -> str:
    head = ("method", "data", "negative class top-3", "p(A) falls", "concept top-1 / 3 / 5")
    rows = [
        (f"{kind} (published)", data, number(paper["fc"][0]), number(paper["drop"]), _numbers(paper["concept"]))
        for (data, kind), paper in PUBLISHED.items()
    ]
    for name, run in runs.items():
        for method, found in ((m, run["methods"][m]) for m in _BESIDE if m in run["methods"]):
            top3, drop = with_interval(found, "negative_class_accuracy", "top3"), with_interval(found, "positive_drop")
            rows.append((f"`{method}`", name, top3, drop, _numbers(found["concept_accuracy"].values())))
    return table(head, rows)


def _fc_study(runs: Mapping[str, Mapping[str, Any]]) -> str:
    """Table 4 of the paper beside our classifiers that differ in nothing else; empty where there are none."""
    families: dict[str, dict[int, Mapping[str, Any]]] = {}
    for run in runs.values():
        settings = dict(run["classifier"].get("settings", {}))
        layers = settings.pop("fc_layers", None)
        if layers:
            families.setdefault(json.dumps(settings, sort_keys=True), {})[layers] = run["methods"]
    study = max(families.values(), key=len, default={})
    if len(study) < 2:
        return ""
    rows = [
        (f"{kind} (published, {data})", *(number(value) for value in paper["fc"]))
        for (data, kind), paper in PUBLISHED.items()
    ]
    for method in (m for m in (*_BESIDE, "random-tube", "true-box") if all(m in found for found in study.values())):
        cells = {n: with_interval(found[method], "negative_class_accuracy", "top3") for n, found in study.items()}
        rows.append((f"`{method}`", *(cells.get(layers, "-") for layers in (1, 2, 3))))
    return table(("method", "fc1", "fc2", "fc3"), rows)


def _about(run: Mapping[str, Any]) -> str:
    origin, classifier = run["provenance"], run["classifier"]
    settings, names, seeds = origin.get("settings", {}), origin.get("data"), origin.get("seed")
    worlds = settings.get("data", [])
    data = "".join(f"`{world}`, " for world in (worlds if isinstance(worlds, list) else [worlds]))
    if data == "`FolderSource`, ":
        data = ", ".join(f"`{name}`" for name in (names if isinstance(names, list) else [names])) + ", "
    others = classifier.get("classes", 0) - 1
    if isinstance(seeds, list):
        data += f"{len(seeds)} {'splits' if isinstance(names, list) else 'seeds'} of about "
    chance = f" Chance: top-1 {number(1 / others)}, top-3 {number(min(1, 3 / others))}." if others > 0 else ""
    return (
        f"{data}{settings.get('clips', '?')} {settings.get('split', 'test')} clips, the "
        f"{settings.get('negatives', '?')} most probable negatives of each. The classifier is right on "
        f"{number(classifier['accuracy'])} of them.{chance}\n"
    )


def _methods(run: Mapping[str, Any]) -> str:
    head = (
        "method",
        "negative top-1",
        "top-3",
        "by log p: top-1",
        "top-3",
        "p(A) falls",
        "concept 1 / 3 / 5",
        "right box",
        "separates",
        "true box IoU",
        "area",
        "frames",
        "answered",
    )
    more = [name for name in _MORE if any(found.get(name) is not None for found in run["methods"].values())]
    rows = []
    for method, found in run["methods"].items():
        honest = found["log_probability"]["negative_class_accuracy"]
        rows.append(
            (
                f"`{method}`",
                with_interval(found, "negative_class_accuracy", "top1"),
                with_interval(found, "negative_class_accuracy", "top3"),
                number(honest["top1"]),
                number(honest["top3"]),
                with_interval(found, "positive_drop"),
                _numbers(found["concept_accuracy"].values()),
                *(number(found.get(name)) for name in ("right_box", "word_separates", "true_box_iou")),
                number(found["tube_area"], 3),
                *(number(found.get(name)) for name in ("tube_frames", "answered", *more)),
            )
        )
    return table((*head, *(_MORE[name] for name in more)), rows)


def _fills(run: Mapping[str, Any]) -> str:
    fills = list(next(iter(run["methods"].values())).get("fills", {})) if run["methods"] else []
    rows = []
    for method, found in run["methods"].items():
        cells = [found["fills"][fill] for fill in fills]
        accuracies = [_numbers(cell["negative_class_accuracy"].values()) for cell in cells]
        rows.append((f"`{method}`", *accuracies, *(number(cell["positive_drop"]) for cell in cells)))
    head = ("method", *(f"{fill}: top-1 / 3" for fill in fills), *(f"{fill}: p(A) falls" for fill in fills))
    return "Each fill alone:\n\n" + table(head, rows) if fills else ""


def _provenance(run: Mapping[str, Any]) -> str:
    origin = run["provenance"]
    versions = ", ".join(f"{name} {version}" for name, version in origin.get("versions", {}).items())
    return (
        f"*Commit {origin.get('commit') or 'unknown'}, seed {origin.get('seed')}, on {origin.get('device')}; "
        f"{versions}.*\n"
    )


def curves_table(losses: Mapping[str, Any], metrics: Mapping[str, Any]) -> str:
    """Write where the loss of training runs began and ended, and the test accuracy where it was measured."""
    rows = []
    for title, records in losses.items():
        reached = metrics.get(title, {})
        share = reached.get("test accuracy")
        clips = f" of {reached['test clips']}" if share is not None else ""
        ends = (f"{records[0]['loss']:.4g}", f"{records[-1]['loss']:.4g}", str(records[-1]["step"]))
        rows.append((title, *ends, number(share, 3) + clips))
    return table(("run", "first loss", "last loss", "steps", "test accuracy"), rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def number(value: float | None, digits: int = 2) -> str:
    """Write a figure; a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def with_interval(found: Mapping[str, Any], *path: str) -> str:
    """Write the figure at a path of a method's results with its interval."""
    value, span = found[path[0]], found["intervals"][path[0]]
    for part in path[1:]:
        value, span = value[part], span[part]
    return number(value) if span is None or None in span else f"{number(value)} [{number(span[0])}, {number(span[1])}]"


def _numbers(values: Iterable[float | None]) -> str:
    return " / ".join(number(value) for value in values)
