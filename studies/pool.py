"""Several runs as one: results over seeds or splits, and loss curves side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from studies.cells import SHRUNK
from whytube.checks import fail
from whytube.errors import DataError
from whytube.evaluation.results import ClassifierResults, Comparison, Figure, MethodResults, Results
from whytube.evaluation.summary import bootstrap, plain
from whytube.files import read_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from whytube.evaluation.results import Comparisons


def pool(results: Sequence[Results], *, common: bool = False) -> Results:
    """Combine the results of `evaluate` on models trained from several seeds, or on several splits.

    Figures are means over the runs. Intervals are bootstrapped over the runs, while those of a single run are over
    clips; of three runs such an interval is simply their range. Splits of one data set share clips: their range says
    less. Differences between methods are means over the runs with their range, and the largest p-value.

    common: leave out methods that not all of the runs have, with a note.
    """
    if not results:
        raise fail("results", "at least one result of evaluate", "none")
    if common:
        results = _of_common_methods(results)
    methods = [{name: set(method.figures) for name, method in run.methods.items()} for run in results]
    if any(list(other.items()) != list(methods[0].items()) for other in methods):
        raise fail("results", "of the same methods and figures", [list(names) for names in methods])
    fills = [run.provenance.get("search", {}).get("fills") for run in results]
    if any(other != fills[0] for other in fills):
        raise fail("results", "of tubes that were tried with the same fills", fills)
    first = results[0].classifier
    accuracies = [run.classifier.accuracy.mean for run in results]
    return Results(
        ClassifierResults(_over_runs(accuracies), first.classes, first.architecture, first.settings, accuracies),
        {name: _pool_method([run.methods[name] for run in results]) for name in methods[0]},
        _origin([run.provenance for run in results]),
        _pool_comparisons([run.comparisons for run in results]),
    )


def _of_common_methods(results: Sequence[Results]) -> list[Results]:
    """Keep the methods that all runs have, in the order of the first; a note names the others, whose own notes go."""
    kept = [name for name in results[0].methods if all(name in run.methods for run in results)]
    rest = sorted({name for run in results for name in run.methods} - set(kept))
    if not rest:
        return list(results)
    found = []
    for run in results:
        notes = [note for note in run.provenance.get("notes", ()) if not any(note.startswith(f"`{r}`") for r in rest)]
        notes += [] if found else [f"Not in all runs, and left out: {', '.join(rest)}."]
        methods = {name: run.methods[name] for name in kept}
        found.append(replace(run, methods=methods, provenance={**run.provenance, "notes": notes}))
    return found


def curves(runs: Mapping[str, Path]) -> dict[str, Any]:
    """Collect the losses of training runs by title, and what classifiers reached.

    runs: files that `whytube train ... --save` wrote.
    """
    found = {title: read_json(path, error=DataError) for title, path in runs.items()}
    for title, path in runs.items():
        if not isinstance(found[title], dict) or "history" not in found[title]:
            raise DataError(f"{path} holds no history. Give a file that `whytube train ... --save FILE.json` wrote")
    return {
        "curves": {
            title: [{"step": record["step"], "loss": record["loss"]} for record in run["history"]["records"]]
            for title, run in found.items()
        },
        "metrics": {title: run["classifier"] for title, run in found.items() if "classifier" in run},
        "provenance": {title: run["provenance"] for title, run in found.items()},
    }


def _pool_method(runs: Sequence[MethodResults]) -> MethodResults:
    first = runs[0]
    return MethodResults(
        {path: _over_runs(run.figures[path].mean for run in runs) for path in first.figures},
        {
            path: [_over_runs(run.curves[path][n].mean for run in runs) for n in range(len(curve))]
            for path, curve in first.curves.items()
        },
        [{path: _over_runs(run.ranks[k][path].mean for run in runs) for path in r} for k, r in enumerate(first.ranks)],
        [sum(counts) for counts in zip(*(run.tube_lengths for run in runs), strict=True)],
    )


def _pool_comparisons(runs: Sequence[Comparisons]) -> Comparisons:
    """Pool what every run compares."""
    return {
        one: {
            other: {
                path: _differences([run[one][other][path] for run in runs])
                for path in paths
                if all(path in run[one][other] for run in runs)
            }
            for other, paths in others.items()
            if all(other in run[one] for run in runs)
        }
        for one, others in runs[0].items()
        if all(one in run for run in runs)
    }


def _differences(runs: Sequence[Comparison]) -> Comparison:
    """Mean difference, smallest and largest one, and the largest p; intervals of a single run stay."""
    if len(runs) == 1:
        return runs[0]
    found = [run.difference for run in runs if run.difference is not None]
    p = [run.p for run in runs if run.p is not None]
    return Comparison(plain(sum(found) / len(found)), min(found), max(found), max(p))


def _over_runs(means: Iterable[float | None]) -> Figure:
    """Mean and interval over the runs that define a figure."""
    values = torch.tensor([mean for mean in means if mean is not None], dtype=torch.float64)[:, None]
    low, high = bootstrap(values, torch.ones_like(values), seed=0)[0].tolist()
    return Figure(plain(float(values.mean())), plain(low), plain(high))


def _origin(origins: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Provenance of the first run; seeds of all, and data, model and how they were measured where they differ."""
    origin = {**origins[0], "seed": [other["seed"] for other in origins]}
    for key in ("data", "model", "model_hash", "commit", "device", "reader"):
        found = [other.get(key) for other in origins]
        origin |= {key: found} if len(set(found)) > 1 else {}
    every = [note for other in origins for note in other.get("notes") or ()]
    notes = [note for place, note in enumerate(every) if SHRUNK.match(note) or note not in every[:place]]
    origin |= {"notes": notes} if notes else {}
    judging = [other.get("judging_clips") for other in origins]
    origin |= {} if None in judging else {"judging_clips": sum(judging)}
    for key in ("data", "clips"):
        found = [other["settings"].get(key) for other in origins]
        if len(set(found)) > 1:
            origin["settings"] = {**origin["settings"], key: found}
    return origin
