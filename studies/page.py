"""The results page: JSON under results/ -> docs/results.md, the paper's published numbers beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from studies.cells import (
    COLUMNS,
    COMPARED,
    CONCEPT,
    COST,
    FURTHER,
    LOG3,
    PRINTED,
    TIED,
    TOP1,
    TOP3,
    ZERO,
    before_the_search,
    cell,
    difference,
    has,
    listed,
    number,
    table,
    tops,
    with_interval,
)
from studies.negatives import asks_all, negatives_section
from studies.published import beside, fc_study
from studies.series import front_picture, is_member, series
from whytube.errors import DataError
from whytube.evaluation.results import MethodResults, Results
from whytube.files import read_json
from whytube.search.anytime import FIT_WEIGHT

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

_EFFORT = (COST, TOP1, TOP3, "positive_drop", ZERO, LOG3, "tube_area")
_FRONT = (TOP1, TOP3, "positive_drop", ZERO, CONCEPT, TIED, "right_box", "word_said")
FIRST_RELEASE = "Measured before the search: `ours` there is the first release, and `paper` what `paper-sgd` is now."

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

PICTURE = "images/front.svg"
"""Where the page looks for the picture of the front, beside itself."""
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
    alone = {name: run for name, run in runs.items() if not is_member(name)}
    parts = [HAND_WRITTEN.read_text(encoding="utf-8"), "## The paper beside ours\n", beside(alone)]
    study = fc_study(alone)
    if study:
        parts += ["## The number of fc layers\n", study]
    parts += [section for section in (_efforts(runs), _fronts(runs)) if section]
    for name, run in alone.items():
        sections = (
            _about(run),
            _table(run, COLUMNS),
            _notes(run),
            negatives_section(name, run),
            _pairs(run),
            _table(run, FURTHER),
            _comparisons(run),
            _fills(run),
            _curves(run),
            _transfer(run),
            _provenance(run),
        )
        parts += [f"## {name}\n", *(section for section in sections if section)]
    return "\n".join(parts)


def _efforts(runs: Mapping[str, Results]) -> str:
    """Write what more tubes buy; empty where it was not measured."""
    parts = ["## Quality over tubes tried\n"]
    for study, members in series(runs, "effort").items():
        rows = [
            (f"`{method}`", f"{tubes:g}", *(cell(found, path) for path in _EFFORT))
            for method in dict.fromkeys(name for run in members.values() for name in run.methods)
            for tubes, run in members.items()
            for found in [run.methods.get(method)]
            if found is not None
        ]
        parts += _member(study, members), table(("method", "tubes tried", *(COLUMNS[path] for path in _EFFORT)), rows)
    return "\n".join(parts) if len(parts) > 1 else ""


def _fronts(runs: Mapping[str, Results]) -> str:
    """Write what the weight of a word's fit trades for what; empty where it was not measured."""
    parts = ["## The front between word and fidelity\n"]
    for study, members in series(runs, "front").items():
        rows = [
            (f"{weight:g}{' (shipped)' if weight == FIT_WEIGHT else ''}", *(cell(found, path) for path in _FRONT))
            for weight, run in members.items()
            for found in [run.methods.get("ours")]
            if found is not None
        ]
        parts += _member(study, members), table(("weight of the fit", *(COLUMNS[path] for path in _FRONT)), rows)
    if front_picture(runs):
        parts.append(f"![Right box across, negative class top-1 up, a point for each weight]({PICTURE})\n")
    return "\n".join(parts) if len(parts) > 1 else ""


def _member(study: str, members: Mapping[float, Results]) -> str:
    """Say what the runs of a series have in common: that of its first one."""
    first = next(iter(members.values()))
    return f"**{study}.** {_about(first)}\n{_provenance(first)}"


def _about(run: Results) -> str:
    origin, others = run.provenance, run.classifier.classes - 1
    settings, seeds, names, worlds = origin["settings"], origin["seed"], origin.get("data"), origin["settings"]["data"]
    told = names if worlds == "FolderSource" and names else worlds
    data = "".join(f"`{name}`, " for name in (told if isinstance(told, list) else [told]))
    if isinstance(seeds, list):
        data += f"{len(seeds)} {'splits' if isinstance(names, list) else 'seeds'} of about "
    asked = f"all {others} negatives" if asks_all(run) else f"the {settings['negatives']} most probable negatives"
    return (
        f"{data}{settings['clips']} {settings['split']} clips, {asked} of each."
        f"{_conditions(run)} The classifier is right on {number(run.classifier.accuracy.mean)} of them. "
        f"Chance: top-1 {number(1 / others)}, top-3 {number(min(1, 3 / others))}.\n"
    ) + (f"\n{FIRST_RELEASE}\n" if before_the_search(run) else "")


def _conditions(run: Results) -> str:
    """Say what a run has that others have not: random weights, a limit of the area."""
    area = run.provenance["settings"].get("area")
    told = " The classifier's weights are random." if run.provenance.get("weights") == "random" else ""
    told += "" if area is None else f" Tubes cover at most {number(area)} of the clip."
    judging = run.provenance.get("judging_clips")
    return told if judging is None else f"{told} Judging took {judging} masked clips."


def _table(run: Results, columns: Mapping[str, str]) -> str:
    """Write figures of every method, in the columns where one has a figure; nothing where none has."""
    shown = {path: head for path, head in columns.items() if any(has(found, path) for found in run.methods.values())}
    rows = [(f"`{method}`", *(cell(found, path) for path in shown)) for method, found in run.methods.items()]
    return table(("method", *shown.values()), rows) if shown else ""


def _pairs(run: Results) -> str:
    """Write the figures of each of the k pairs alone, as the paper evaluates them; nothing where k is 1."""
    rows = []
    for method, found in run.methods.items():
        for i, pair in enumerate(found.ranks if len(found.ranks) > 1 else (), 1):
            alone = MethodResults(pair, {}, (), ())
            shown = (*(cell(alone, path) for path in (TOP1, TOP3, "positive_drop", ZERO, CONCEPT, PRINTED)),)
            rows.append((f"`{method}`", str(i), *shown, number(alone.figure("answered").mean)))
    heads = [COLUMNS[path] for path in (TOP1, TOP3, "positive_drop", ZERO, CONCEPT, PRINTED)]
    head = "Each pair i of word and tube alone, as the paper evaluates them:\n\n"
    return head + table(("method", "i", *heads, "answered"), rows) if rows else ""


def _notes(run: Results) -> str:
    return "\n".join([*(f"- {note}" for note in run.notes), ""]) if run.notes else ""


def _comparisons(run: Results) -> str:
    """Write how much better the compared methods are than every other one."""
    parts = []
    for one, others in run.comparisons.items():
        shown = {p: head for p, head in COMPARED.items() if any(p in found for found in others.values())}
        rows = [(f"`{other}`", *(difference(found.get(path)) for path in shown)) for other, found in others.items()]
        parts.append(
            f"`{one}` minus each other method, on the same questions:\n\n" + table(("method", *shown.values()), rows)
        )
    return "\n".join(parts)


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
        accuracies = [tops(found, f"{lead}negative_class_accuracy") for lead in leads]
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
