"""The results page: JSON under results/ -> docs/results.md, the paper's published numbers beside ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whytube.errors import DataError
from whytube.evaluation.results import Results
from whytube.files import read_json

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from whytube.evaluation.results import Comparison, Figure, MethodResults

PUBLISHED: dict[tuple[str, str], dict[str, Any]] = {
    ("Olympic Sports", "baseline"): {"fc": (0.45, 0.44, 0.46), "drop": 0.76, "concept": (0.02, 0.07, 0.12)},
    ("Olympic Sports", "proposed"): {"fc": (0.62, 0.64, 0.59), "drop": 0.89, "concept": (0.13, 0.38, 0.59)},
    ("UCF101-24", "baseline"): {"fc": (0.45, 0.43, 0.44), "drop": 0.68, "concept": (0.02, 0.07, 0.13)},
    ("UCF101-24", "proposed"): {"fc": (0.64, 0.62, 0.61), "drop": 0.88, "concept": (0.14, 0.41, 0.65)},
}
"""Tables 2 to 4 of the paper: top-3 negative class accuracy with 1 to 3 fc layers, p(A) falling, concept accuracy."""

_BESIDE = ("centre", "detector-box", "paper", "ours", "ours-regions", "grad-cam")
"""What stands beside the published baselines and the published method; every other method is in its run's table."""

_TOP3 = "negative_class_accuracy.top3"
_WITH_INTERVAL = ("negative_class_accuracy.top1", _TOP3, "positive_drop")
_COLUMNS = {
    "masked_clips": "masked clips",
    "negative_class_accuracy.top1": "negative top-1",
    _TOP3: "top-3",
    "log_probability.negative_class_accuracy.top1": "by log p: top-1",
    "log_probability.negative_class_accuracy.top3": "top-3",
    "positive_drop": "p(A) falls",
    "concept_accuracy": "concept 1 / 3 / 5",
    "right_box": "right box",
    "word_separates": "separates",
    "true_box_iou": "true box IoU",
    "tube_area": "area",
    "tube_frames": "frames",
    "answered": "answered",
    "tube_change": "changes with B",
    "actor_iou": "actor IoU",
    "actor_pointing": "centre on actor",
}
"""Figures of a run's table, and their heads."""

_COMPARED = {
    "negative_class_accuracy.top1": "negative top-1",
    _TOP3: "top-3",
    "positive_drop": "p(A) falls",
    "log_probability.negative_class_accuracy.top3": "by log p: top-3",
    "concept_accuracy.top1": "concept top-1",
    "concept_accuracy.top3": "top-3",
}
"""Figures whose differences the page shows, and their heads."""
_CURVES = {
    "deletion.positive": "deletion: p(A)",
    "deletion.negative": "deletion: p(B)",
    "insertion.positive": "insertion: p(A)",
    "insertion.negative": "insertion: p(B)",
}
_TRANSFER = {
    "agreement.positive": "p(A) falls there too",
    "agreement.negative": "p(B) rises there too",
    "transfer.negative_class_accuracy.top1": "there: negative top-1",
    "transfer.negative_class_accuracy.top3": "top-3",
    "transfer.positive_drop": "there: p(A) falls",
}

HAND_WRITTEN = Path(__file__).with_name("readings.md")
"""The beginning of the page: how to read the figures, and what they say."""


def read_results(folder: str | os.PathLike[str]) -> dict[str, Results]:
    """Read the results in a folder, by name without the ending; benchmarks and curves beside them are left out."""
    found = {
        path: read_json(path, error=DataError)
        for path in sorted(Path(folder).glob("*.json"), key=lambda path: path.stem)
    }
    return {path.stem: Results.from_dict(plain, name=str(path)) for path, plain in found.items() if "methods" in plain}


def results_page(runs: Mapping[str, Results]) -> str:
    """Write the page from results by name."""
    parts = [HAND_WRITTEN.read_text(encoding="utf-8"), "## The paper beside ours\n", _beside(runs)]
    study = _fc_study(runs)
    if study:
        parts += ["## The number of fc layers\n", "Top-3 negative class accuracy over three negatives.\n", study]
    for name, run in runs.items():
        sections = (
            _about(run),
            _methods(run),
            _comparisons(run),
            _fills(run),
            _curves(run),
            _transfer(run),
            _provenance(run),
        )
        parts += [f"## {name}\n", *(section for section in sections if section)]
    return "\n".join(parts)


def _beside(runs: Mapping[str, Results]) -> str:
    head = ("method", "data", "negative class top-3", "p(A) falls", "concept top-1 / 3 / 5")
    rows = [
        (f"{kind} (published)", data, number(paper["fc"][0]), number(paper["drop"]), _numbers(paper["concept"]))
        for (data, kind), paper in PUBLISHED.items()
    ]
    for name, run in runs.items():
        for method, found in ((m, run.methods[m]) for m in _BESIDE if m in run.methods):
            top3, drop = (with_interval(found.figure(path)) for path in (_TOP3, "positive_drop"))
            rows.append((f"`{method}`", name, top3, drop, _concept(found)))
    return table(head, rows)


def _fc_study(runs: Mapping[str, Results]) -> str:
    """Table 4 of the paper beside our classifiers that differ in nothing else; empty where there are none."""
    families: dict[str, dict[int, Mapping[str, MethodResults]]] = {}
    for run in runs.values():
        if "fc_layers" in run.classifier.settings:
            settings = dict(run.classifier.settings)
            layers = settings.pop("fc_layers")
            families.setdefault(json.dumps(settings, sort_keys=True), {})[layers] = run.methods
    study = max(families.values(), key=len, default={})
    if len(study) < 2:
        return ""
    rows = [
        (f"{kind} (published, {data})", *(number(value) for value in paper["fc"]))
        for (data, kind), paper in PUBLISHED.items()
    ]
    for method in (m for m in (*_BESIDE, "random-tube", "true-box") if all(m in found for found in study.values())):
        cells = {n: with_interval(found[method].figure(_TOP3)) for n, found in study.items()}
        rows.append((f"`{method}`", *(cells.get(layers, "-") for layers in (1, 2, 3))))
    return table(("method", "fc1", "fc2", "fc3"), rows)


def _about(run: Results) -> str:
    origin, others = run.provenance, run.classifier.classes - 1
    settings, seeds, names, worlds = origin["settings"], origin["seed"], origin.get("data"), origin["settings"]["data"]
    told = names if worlds == "FolderSource" and names else worlds
    data = "".join(f"`{name}`, " for name in (told if isinstance(told, list) else [told]))
    if isinstance(seeds, list):
        data += f"{len(seeds)} {'splits' if isinstance(names, list) else 'seeds'} of about "
    return (
        f"{data}{settings['clips']} {settings['split']} clips, the {settings['negatives']} most probable negatives of "
        f"each.{_conditions(run)} The classifier is right on {number(run.classifier.accuracy.mean)} of them. "
        f"Chance: top-1 {number(1 / others)}, top-3 {number(min(1, 3 / others))}.\n"
    )


def _conditions(run: Results) -> str:
    """Say what a run has that others have not: random weights, a limit of the area."""
    area = run.provenance["settings"].get("area")
    told = " The classifier's weights are random." if run.provenance.get("weights") == "random" else ""
    return told + ("" if area is None else f" Tubes cover at most {number(area)} of the clip.")


def _methods(run: Results) -> str:
    """Write the figures of every method, in the columns where one has a figure; notes below."""
    columns = {
        path: head for path, head in _COLUMNS.items() if any(_has(found, path) for found in run.methods.values())
    }
    rows = [(f"`{method}`", *(_cell(found, path) for path in columns)) for method, found in run.methods.items()]
    notes = ["", *(f"- {note}" for note in run.notes), ""] if run.notes else []
    return table(("method", *columns.values()), rows) + "\n".join(notes)


def _has(found: MethodResults, path: str) -> bool:
    return found.figure(f"{path}.top1" if path == "concept_accuracy" else path).mean is not None


def _cell(found: MethodResults, path: str) -> str:
    if path == "concept_accuracy":
        return _concept(found)
    if path in _WITH_INTERVAL:
        return with_interval(found.figure(path))
    return number(found.figure(path).mean, {"tube_area": 3, "masked_clips": 1}.get(path, 2))


def _comparisons(run: Results) -> str:
    """Write how much better the compared methods are than every other one."""
    parts = []
    for one, others in run.comparisons.items():
        shown = {p: head for p, head in _COMPARED.items() if any(p in found for found in others.values())}
        rows = [(f"`{other}`", *(_difference(found.get(path)) for path in shown)) for other, found in others.items()]
        parts.append(
            f"`{one}` minus each other method, on the same questions:\n\n" + table(("method", *shown.values()), rows)
        )
    return "\n".join(parts)


def _difference(found: Comparison | None) -> str:
    """Write a difference with its interval and p-value."""
    if found is None or found.difference is None or found.p is None:
        return "-"
    p = "p < .001" if found.p < 0.001 else f"p {found.p:.3f}".replace("0.", ".")
    return f"{found.difference:+.2f} [{number(found.low)}, {number(found.high)}], {p}"


def _curves(run: Results) -> str:
    count = max((len(found.curves.get("deletion.curve.positive", ())) - 1 for found in run.methods.values()), default=0)
    head = f"Insertion and deletion over {count} regions, area under the curve:\n\n"
    return _some(run, _CURVES, head)


def _transfer(run: Results) -> str:
    other = run.provenance["settings"].get("judge_with", "another network")
    return _some(run, _TRANSFER, f"The same regions masked on `{other}`:\n\n")


def _some(run: Results, columns: Mapping[str, str], head: str) -> str:
    """Write a table of further figures; nothing where no method has the first one."""
    first = next(iter(columns))
    rows = [
        (f"`{method}`", *(with_interval(found.figure(path)) for path in columns))
        for method, found in run.methods.items()
        if found.figure(first).mean is not None
    ]
    return head + table(("method", *columns.values()), rows) if rows else ""


def _fills(run: Results) -> str:
    fills = next(iter(run.methods.values())).fills if run.methods else []
    rows = []
    for method, found in run.methods.items():
        leads = [f"fills.{fill}." for fill in fills]
        accuracies = [_tops(found, f"{lead}negative_class_accuracy", 1, 3) for lead in leads]
        rows.append(
            (f"`{method}`", *accuracies, *(number(found.figure(f"{lead}positive_drop").mean) for lead in leads))
        )
    names = [f"{fill} (seen)" if fill in run.seen_fills else fill for fill in fills]
    head = ("method", *(f"{name}: top-1 / 3" for name in names), *(f"{name}: p(A) falls" for name in names))
    return "Each fill alone:\n\n" + table(head, rows) if fills else ""


def _provenance(run: Results) -> str:
    origin = run.provenance
    versions = ", ".join(f"{name} {version}" for name, version in origin["versions"].items())
    read = f", videos read by {listed(origin['reader'])}" if origin.get("reader") else ""
    where = f"seed {origin['seed']}, on {listed(origin['device'])}{read}"
    return f"*Commit {listed(origin['commit'] or 'unknown')}, {where}; {versions}.*\n"


def listed(value: Any) -> str:
    """Write one thing, or several different ones."""
    return ", ".join(map(str, dict.fromkeys(value))) if isinstance(value, list) else str(value)


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


def with_interval(figure: Figure) -> str:
    """Write a figure with its interval."""
    span = "" if figure.low is None else f" [{number(figure.low)}, {number(figure.high)}]"
    return number(figure.mean) + span


def _concept(found: MethodResults) -> str:
    return _tops(found, "concept_accuracy", 1, 3, 5)


def _tops(found: MethodResults, path: str, *tops: int) -> str:
    return _numbers(found.figure(f"{path}.top{top}").mean for top in tops)


def _numbers(values: Iterable[float | None]) -> str:
    return " / ".join(number(value) for value in values)
