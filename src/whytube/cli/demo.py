"""What `whytube demo` does: the whole mission on the embedded world, with no download.

Train or load; write some clips as video files; explain them from those files; measure on more; write a page.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.table import Table

from whytube.data.world import World
from whytube.evaluation.methods import Remembered, make_methods
from whytube.evaluation.results import Figure
from whytube.evaluation.suite import evaluate
from whytube.explaining import explain
from whytube.files import make_folder
from whytube.given import model_hash
from whytube.models import build_classifier, load_model, save_classifier
from whytube.report import overlay_video, write_report
from whytube.training import EXPLAINER_RECIPES, RECIPES, evaluate_classifier, fit_classifier, fit_explainer
from whytube.tubes import PAPERS_FILL
from whytube.versions import provenance
from whytube.video import write_video

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import torch
    from rich.console import Console

    from whytube.evaluation.results import Results
    from whytube.explanation import Explanation
    from whytube.models.find import Model

SHOWN = 6
FPS = 8.0
PRESET = "c3d-resnet-small"
FOLDERS = {"clips": "mp4", "explanations": "json", "overlays": "mp4"}
MADE = ("report.html", "results.json", *(f"{f}/{i:02d}.{end}" for f, end in FOLDERS.items() for i in range(SHOWN)))
"""What a demo writes to its folder, beside the model that it may train."""
ZERO = "zero, as in the paper"
COLUMNS = (
    ("B gains: 1st", "negative_class_accuracy.top1"),
    ("top 3", "negative_class_accuracy.top3"),
    (ZERO, f"fills.{PAPERS_FILL}.negative_class_accuracy.top3"),
    ("A falls", "positive_drop"),
    ("word: 1st", "concept_accuracy.tied.top1"),
    ("top 3", "concept_accuracy.tied.top3"),
    ("area", "tube_area"),
    ("frames", "tube_frames"),
    ("runs", "masked_clips"),
)
"""Heads of the printed table, and the figures under them; runs are those of the classifier per question."""
PAPERS = (
    ("B gains: 1st", f"fills.{PAPERS_FILL}.negative_class_accuracy.top1"),
    ("top 3", f"fills.{PAPERS_FILL}.negative_class_accuracy.top3"),
    ("A falls", f"fills.{PAPERS_FILL}.positive_drop"),
    ("word: 1st", "concept_accuracy.printed.top1"),
    ("top 3", "concept_accuracy.printed.top3"),
    ("top 5", "concept_accuracy.printed.top5"),
    ("answered", "answered"),
)
"""The same of the paper's protocol, which has each pair of word and tube alone."""


def run_demo(out: Path, *, train: bool, count: int, seed: int, device: torch.device, console: Console) -> Results:
    """Write `report.html`, `results.json`, clips, overlays and explanations to `out`; return the results."""
    began = time.perf_counter()
    make_folder(out)
    if train:
        explainer = train_demo(out / "model", seed=seed, device=device, console=console)
    else:
        explainer = load_model("demo", device=device)
    world = World(size=explainer.classifier.size[0], frames=explainer.classifier.frames, seed=seed)
    pairs = [_explain_one(world, explainer, index, out, console) for index in range(SHOWN)]
    results = measure(explainer, world, count=count, seed=seed, device=device)
    results = results.with_provenance(
        model="trained just now" if train else "demo", model_hash=model_hash(explainer.classifier)
    )
    results.save(out / "results.json")
    title = "Why A, not B? The embedded world"
    write_report(out / "report.html", explanations=pairs, results=results, title=title)
    print_results(results, console)
    seconds = time.perf_counter() - began
    console.print(f"Look at {out / 'report.html'} ({seconds:.0f} s).", highlight=False, soft_wrap=True)
    return results


def train_demo(folder: Path, *, seed: int, device: torch.device, console: Console) -> Model:
    """Train the small classifier and its explainer from nothing, as the shipped ones were but for less time."""
    make_folder(folder)
    world = World(size=64, seed=seed)
    classifier = build_classifier(PRESET, world.classes, seed=seed)
    origin = provenance(device, seed=seed)

    def show(stage: str) -> Any:
        return lambda r: console.print(f"{stage}: step {r.step}, loss {r.loss:.2f}, {r.seconds:.0f} s", highlight=False)

    recipe = RECIPES["demo"]
    progress = show("classifier")
    fit_classifier(
        classifier, world, recipe, device=device, out_dir=folder, resume=True, progress=progress, report_every=50
    )
    metrics = {"test accuracy": evaluate_classifier(classifier, world, "test", 480).accuracy}
    console.print(f"classifier: {100 * metrics['test accuracy']:.1f} % of 480 test clips right", highlight=False)
    save_classifier(
        folder / "classifier.safetensors", classifier, provenance=origin, recipe=asdict(recipe), metrics=metrics
    )
    fit_explainer(
        classifier.for_inference(),
        world,
        EXPLAINER_RECIPES["demo"],
        device=device,
        out_dir=folder,
        resume=True,
        progress=show("explainer"),
        provenance=origin,
    )
    return load_model(folder, device=device)


def measure(explainer: Model, world: World, *, count: int, seed: int, device: torch.device) -> Results:
    """Evaluate the explainer beside its baselines on test clips."""
    ours = Remembered(explainer)
    names = ["random-verified", "grad-cam", "centre", "true-box", "random-tube"]
    methods = [ours, *make_methods(names, explainer.classifier, world, like=ours, seed=seed)]
    results = evaluate(methods, explainer.classifier, world, count=count, seed=seed, device=device)
    return results.with_provenance(data="world")


def _explain_one(world: World, explainer: Model, index: int, out: Path, console: Console) -> tuple[Explanation, Path]:
    """Write a test clip as a video, explain it from the file, and draw the answer."""
    clip = world.batch("test", [index]).clips[0]
    for folder in FOLDERS:
        (out / folder).mkdir(exist_ok=True)
    name = f"{index:02d}"
    video = write_video(out / "clips" / f"{name}.mp4", clip, FPS)
    explanation = explain(video, explainer)
    explanation.save(out / "explanations" / f"{name}.json", overwrite=True)
    overlay = overlay_video(video, explanation, out / "overlays" / f"{name}.mp4")
    console.print(f"{video.name}: {explanation.sentence}", markup=False, highlight=False, soft_wrap=True)
    return explanation, overlay


def print_results(results: Results, console: Console) -> None:
    """Print a table: negative class accuracy, how often p(A) falls, concept accuracy, and how large the tubes are.

    Columns in which no method has a figure are left out, but for the paper's fill. A second table is to the letter of
    the paper. What must be known beside the figures stands below.
    """
    found = {name: _cells(method.figures, COLUMNS) for name, method in results.methods.items()}
    shown = [
        place
        for place, (head, _) in enumerate(COLUMNS)
        if head == ZERO or any(cells[place] != "-" for cells in found.values())
    ]
    rows = [(name, *(cells[place] for place in shown)) for name, cells in found.items()]
    _print_table(("method", *(COLUMNS[place][0] for place in shown)), rows, console)
    _print_pairs(results, console)
    console.print(f"classifier: {results.classifier.accuracy.mean:.1%} right", highlight=False)
    for note in results.notes:
        console.print(note, markup=False, highlight=False, soft_wrap=True)


def _print_pairs(results: Results, console: Console) -> None:
    """Print the paper's protocol: pair i = 1 ... k alone, filled with zeros, concept accuracy as printed there.

    Nothing for results of earlier versions, which did not measure that.
    """
    rows = [
        (name, str(i), *_cells(pair, PAPERS))
        for name, method in results.methods.items()
        for i, pair in enumerate(method.ranks, 1)
    ]
    if any(row[2] != "-" for row in rows):
        text = "As in the paper: each pair i alone, filled with zeros (seen by some methods), word as printed there."
        console.print(text, highlight=False, soft_wrap=True)
        _print_table(("method", "i", *(head for head, _ in PAPERS)), rows, console)


def _cells(figures: Mapping[str, Figure], columns: Sequence[tuple[str, str]]) -> list[str]:
    """Write figures; a dash where there is none."""
    means = [figures.get(path, Figure()).mean for _, path in columns]
    return ["-" if mean is None else f"{mean:.2f}" for mean in means]


def _print_table(heads: Sequence[str], rows: Iterable[Sequence[str]], console: Console) -> None:
    table = Table(*heads, box=None)
    for row in rows:
        table.add_row(*row)
    table.columns[0].no_wrap, table.columns[0].overflow = True, "ignore"
    console.print(table)
