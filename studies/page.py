"""Pages with results: what stands between two marks is written anew from the files under results/ (`make results`).

A mark is a line `<!-- results: WORDS -->`; all up to the next `<!-- end -->` is replaced. WORDS:

goals                   every goal of the project, and whether it is reached
table RUN METHOD ...    some methods of results/RUN.json in a few columns
run RUN                 all figures of a run
benchmark RUN           its methods, best first
beside RUN ...          the paper's published numbers beside ours
fc                      the number of fc layers
effort STUDY            quality over tubes tried, of STUDY-effort-N.json
front STUDY             words against fidelity, of STUDY-front-W.json
front-picture           the same of all studies, drawn
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
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
    SHRUNK,
    TIED,
    TITLES,
    TOP1,
    TOP3,
    ZERO,
    cell,
    difference,
    has,
    listed,
    number,
    table,
    tops,
    with_interval,
    zeros,
)
from studies.goals import goals_table
from studies.negatives import asks_all, negatives_section
from studies.published import beside, fc_study
from studies.series import EFFORTS, FRONT, effort_name, series
from whytube.errors import DataError
from whytube.evaluation.results import MethodResults, Results
from whytube.files import read_json
from whytube.search.anytime import FIT_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_BLOCK = re.compile(r"<!-- results: (?P<words>[^>]*?) -->\n.*?<!-- end -->", re.DOTALL)
_MARK = "<!-- results:"
_FIRST_FILLS = ("zero", "noise")
"""What tubes were tried with until results said so."""
_EFFORT = (COST, TOP1, TOP3, "positive_drop", ZERO, LOG3, "tube_area")
_FRONT = (TOP1, TOP3, "positive_drop", ZERO, CONCEPT, TIED, "right_box", "word_said")
_BENCHMARK = {
    COST: "masked clips",
    "tube_area": "area",
    TOP1: "negative top-1",
    TOP3: "top-3",
    "positive_drop": "p(A) falls",
    f"{ZERO}.{TOP3}": "zero, as in the paper: top-3",
    LOG3: "by log p: top-3",
    f"{CONCEPT}.top1": "concept top-1",
    f"{CONCEPT}.top3": "top-3",
}
_CURVES = {
    "deletion.positive": "deletion: p(A)",
    "deletion.negative": "deletion: p(B)",
    "insertion.positive": "insertion: p(A)",
    "insertion.negative": "insertion: p(B)",
    "log_probability.deletion.positive": "deletion: log p(A)",
    "log_probability.insertion.positive": "insertion: log p(A)",
    f"{ZERO}.deletion.positive": "zero, as in the paper: deletion: p(A)",
    f"{ZERO}.insertion.positive": "zero, as in the paper: insertion: p(A)",
}
_TRANSFER = {
    "agreement.positive": "p(A) falls there too",
    "agreement.negative": "p(B) rises there too",
    "transfer.negative_class_accuracy.top1": "there: negative top-1",
    "transfer.negative_class_accuracy.top3": "top-3",
    "transfer.positive_drop": "there: p(A) falls",
}
_OF_A_METHOD = re.compile(r"`(?P<method>[^`]+)` (?P<rest>(?:has|says) .+)")


@dataclass(frozen=True)
class Found:
    """What a folder of results holds, by name without the ending.

    runs: what `whytube evaluate` wrote. trainings: figures of the classifiers of a study, NAME-classifiers.json.
    benchmarks: all other files. images: where pictures lie, seen from the page.
    """

    runs: Mapping[str, Results]
    trainings: Mapping[str, Any]
    benchmarks: Mapping[str, Any]
    images: str = "images"

    def run(self, name: str) -> Results:
        """Return the results of a run that a page asks for."""
        if name not in self.runs:
            raise DataError(
                f"there is no results/{name}.json, which a page asks for: measure it, or take its mark away"
            )
        return self.runs[name]


def read_found(folder: str | os.PathLike[str]) -> Found:
    """Read the JSON files of a folder."""
    paths = sorted(Path(folder).glob("*.json"), key=lambda path: path.stem)
    found = {path: read_json(path, error=DataError) for path in paths}
    runs = {path.stem: Results.from_dict(plain, name=str(path)) for path, plain in found.items() if "methods" in plain}
    trained = {
        p.stem.removesuffix("-classifiers"): x["metrics"] for p, x in found.items() if p.stem.endswith("-classifiers")
    }
    return Found(runs, trained, {path.stem: plain for path, plain in found.items() if path.stem not in runs})


def filled(text: str, found: Found, name: str = "the page") -> str:
    """Return a page with everything between marks written anew."""
    if len(_BLOCK.findall(text)) != text.count(_MARK):
        raise DataError(f"{name} has a mark `{_MARK} ... -->` without its `<!-- end -->`")
    return _BLOCK.sub(
        lambda block: f"<!-- results: {block['words']} -->\n\n{_block(block['words'], found)}\n<!-- end -->", text
    )


def fill_page(path: Path, found: Found, images: Path) -> None:
    """Write a page anew, where anything in it changed."""
    from whytube.files import write_whole

    text = path.read_text(encoding="utf-8")
    seen = Found(found.runs, found.trainings, found.benchmarks, os.path.relpath(images, path.parent))
    new = filled(text, seen, str(path))
    if new != text:
        write_whole(path, new)


def _block(words: str, found: Found) -> str:
    kind, *names = words.split()
    runs = {name: found.run(name) for name in names} if kind in ("run", "benchmark", "beside") else {}
    if kind == "goals":
        return goals_table(found.runs, found.benchmarks)
    if kind == "table" and names:
        return _short(found.run(names[0]), names[1:])
    if kind == "run" and len(names) == 1:
        return _section(*names, runs[names[0]], found.images)
    if kind == "benchmark" and len(names) == 1:
        return _benchmark(runs[names[0]])
    if kind == "beside":
        return beside(runs)
    if kind == "fc":
        return fc_study(found.runs, found.trainings)
    if kind == "effort" and len(names) == 1:
        return _efforts(*names, found)
    if kind == "front" and len(names) == 1:
        return _front(*names, found)
    if kind == "front-picture":
        return f"![Right box across, negative class top-1 up, a point for each weight]({found.images}/{FRONT})\n"
    raise DataError(f"a page has the mark {words!r}: expected one of those that studies/page.py names")


def _short(run: Results, names: Iterable[str]) -> str:
    """Write some methods in the columns that decide."""
    rows = []
    for name in names:
        if name not in run.methods:
            raise DataError(f"a page asks for the method {name!r}, which its results do not have")
        method = run.methods[name]
        said = TITLES.get(name, "")
        first, third = (with_interval(method.figure(path)) for path in (TOP1, TOP3))
        words = tops(method, TIED)
        cost = number(method.figure(COST).mean, 0)
        rows.append(
            (
                f"`{name}`{': ' if said else ''}{said}",
                first,
                third,
                number(method.figure("positive_drop").mean),
                zeros(method.figures),
                words,
                cost,
            )
        )
    fills = _tried_with(run)
    heads = (
        "method",
        "B rises most",
        "among three",
        "p(A) falls",
        "with black, the paper's fill: 1 / 3 / A falls",
        "word right 1 / 3",
        "masked clips",
    )
    return table(heads, rows) + f"\nTubes were tried with {' and '.join(fills)}. " + _provenance(run)


def _section(name: str, run: Results, images: str) -> str:
    """Write all figures of a run: those that decide first, the others folded away."""
    more = [_pairs(run), _table(run, FURTHER), _comparisons(run), _fills(run), _curves(run), _transfer(run)]
    folded = "\n".join(part for part in more if part)
    parts = [
        _about(run),
        _table(run, COLUMNS),
        _notes(run),
        negatives_section(name, run, images),
        f"<details><summary>Further figures of {name}</summary>\n\n{folded}\n</details>\n" if folded else "",
        _provenance(run),
    ]
    return "\n".join(part for part in parts if part)


def _benchmark(run: Results) -> str:
    """Write the methods of a run by negative class accuracy, best first."""
    found = sorted(run.methods.items(), key=lambda entry: entry[1].figure(TOP1).mean or 0.0, reverse=True)
    shown = {
        path: head
        for path, head in _BENCHMARK.items()
        if path.startswith(ZERO) or any(figures.figure(path).mean is not None for _, figures in found)
    }
    rows = [(f"`{method}`", *(_entry(figures, path) for path in shown)) for method, figures in found]
    parts = (_about(run), table(("method", *shown.values()), rows), _notes(run), _provenance(run))
    return "\n".join(part for part in parts if part)


def _entry(found: MethodResults, path: str) -> str:
    if path in (TOP1, TOP3):
        return with_interval(found.figure(path))
    return number(found.figure(path).mean, {COST: 1, "tube_area": 3}.get(path, 2))


def _efforts(study: str, found: Found) -> str:
    """Write what more tubes buy, and its picture over masked clips."""
    members = _members(study, EFFORTS, found)
    rows = [
        (f"`{method}`", f"{tubes:g}", *(cell(figures, path) for path in _EFFORT))
        for method in dict.fromkeys(name for run in members.values() for name in run.methods)
        for tubes, run in members.items()
        for figures in [run.methods.get(method)]
        if figures is not None
    ]
    drawn = f"![Negative class top-1 over masked clips, a line a method]({found.images}/{effort_name(study)})\n"
    head = ("method", "tubes tried by ours", *(COLUMNS[path] for path in _EFFORT))
    return "\n".join((*_member(members), drawn, table(head, rows)))


def _front(study: str, found: Found) -> str:
    """Write what the weight of a word's fit trades for what."""
    members = _members(study, "front", found)
    rows = [
        (
            f"{weight:g}{' (shipped)' if weight == FIT_WEIGHT else ''}",
            *(cell(run.methods["ours"], path) for path in _FRONT),
        )
        for weight, run in members.items()
        if "ours" in run.methods
    ]
    return "\n".join((*_member(members), table(("weight of the fit", *(COLUMNS[path] for path in _FRONT)), rows)))


def _members(study: str, kind: str, found: Found) -> Mapping[float, Results]:
    members = series(found.runs, kind).get(study)
    if not members:
        raise DataError(f"there is no results/{study}-{kind}-*.json, which a page asks for")
    return members


def _member(members: Mapping[float, Results]) -> tuple[str, str]:
    """Say what the runs of a series have in common: that of its first one."""
    first = next(iter(members.values()))
    return _about(
        first, effort=len({run.provenance.get("search", {}).get("effort") for run in members.values()}) == 1
    ), _provenance(first)


def _about(run: Results, *, effort: bool = True) -> str:
    """Say what was asked of what; effort: also how many tubes were tried."""
    origin, others = run.provenance, run.classifier.classes - 1
    settings, seeds, names, worlds = origin["settings"], origin["seed"], origin.get("data"), origin["settings"]["data"]
    told = names if worlds == "FolderSource" and names else worlds
    data = "".join(f"`{name}`, " for name in (told if isinstance(told, list) else [told]))
    clips = settings["clips"]
    if isinstance(seeds, list):
        runs = f"{len(seeds)} {'splits' if isinstance(names, list) else 'seeds'} of "
        data += runs if isinstance(clips, list) else f"{runs}about "
        clips = ", ".join(map(str, clips)) if isinstance(clips, list) else clips
    asked = f"all {others} negatives" if asks_all(run) else _asked(settings["negatives"])
    return (
        f"{data}{clips} {settings['split']} clips, {asked} of each."
        f"{_conditions(run, effort=effort)} The classifier is right on {number(run.classifier.accuracy.mean)} of them. "
        f"Chance: top-1 {number(1 / others)}, top-3 {number(min(1, 3 / others))}.\n"
    )


def _asked(negatives: int) -> str:
    return "the most probable negative" if negatives == 1 else f"the {negatives} most probable negatives"


def _conditions(run: Results, *, effort: bool) -> str:
    """Say what a run has that others have not: random weights, a limit of the area."""
    area = run.provenance["settings"].get("area")
    told = " The classifier's weights are random." if run.provenance.get("weights") == "random" else ""
    told += "" if area is None else f" Tubes cover at most {area:g} of the clip."
    searched = "search" in run.provenance
    tubes = run.provenance["search"].get("effort") if searched and effort else None
    if searched:
        told += f" {'Tubes' if tubes is None else f'{tubes} tubes'} are tried, with {' and '.join(_tried_with(run))}."
    judging = run.provenance.get("judging_clips")
    return told if judging is None else f"{told} Judging took {judging} masked clips."


def _tried_with(run: Results) -> Sequence[str]:
    """Name the fills that tubes were tried with."""
    return list(run.provenance.get("search", {}).get("fills", _FIRST_FILLS))


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
    """Write the notes, one line for what several methods have in common, and counts of several runs added up."""
    shrunk: dict[str, list[int]] = {}
    alike: dict[str, list[str]] = {}
    for note in run.notes:
        if counted := SHRUNK.match(note):
            so_far = shrunk.get(counted["method"], [0, 0])
            shrunk[counted["method"]] = [so_far[0] + int(counted["some"]), so_far[1] + int(counted["all"])]
        elif of_a_method := _OF_A_METHOD.match(note):
            alike.setdefault(of_a_method["rest"], []).append(f"`{of_a_method['method']}`")
        else:
            alike.setdefault(note, [])
    lines = [f"{', '.join(methods)} {_of_several(rest, methods)}".strip() for rest, methods in alike.items()]
    if shrunk:
        whole = max(out_of for _, out_of in shrunk.values())
        counts = (
            f"`{method}` {some} of {out_of}" + (f" (not known of the other {whole - out_of})" if out_of < whole else "")
            for method, (some, out_of) in shrunk.items()
        )
        lines.append(f"Tubes above the area, shrunk to it: {', '.join(counts)}.")
    return "".join(f"- {line}\n" for line in lines)


def _of_several(rest: str, methods: Sequence[str]) -> str:
    """Turn what is said of one method into what is said of several."""
    if len(methods) < 2:
        return rest
    return rest.replace("has the", "have the", 1).replace("says no words: it has", "say no words: they have", 1)


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
    methods = {method: found for method, found in run.methods.items() if found.figure(first).mean is not None}
    shown = [path for path in columns if any(found.figure(path).mean is not None for found in methods.values())]
    rows = [
        (f"`{method}`", *(with_interval(found.figure(path)) for path in shown)) for method, found in methods.items()
    ]
    return head + table(("method", *(columns[path] for path in shown)), rows) if rows else ""


def _fills(run: Results) -> str:
    fills = next(iter(run.methods.values())).fills if run.methods else []
    rows = []
    for method, found in run.methods.items():
        leads = [f"fills.{fill}." for fill in fills]
        accuracies = [tops(found, f"{lead}{_ACCURACY}") for lead in leads]
        rows.append(
            (f"`{method}`", *accuracies, *(number(found.figure(f"{lead}positive_drop").mean) for lead in leads))
        )
    names = [f"{fill} (seen)" if fill in run.seen_fills else fill for fill in fills]
    head = ("method", *(f"{name}: top-1 / 3" for name in names), *(f"{name}: p(A) falls" for name in names))
    return "Each fill alone:\n\n" + table(head, rows) if fills else ""


_ACCURACY = TOP1.removesuffix(".top1")


def _provenance(run: Results) -> str:
    origin = run.provenance
    versions = ", ".join(f"{name} {version}" for name, version in origin["versions"].items())
    read = f", videos read by {listed(origin['reader'])}" if origin.get("reader") else ""
    where = f"seed {listed(origin['seed'])}, on {listed(origin['device'])}{read}"
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
