"""Many classes and words: bytes and work of a training step of the paper's objective, and work of one question.

python benchmarks/many.py [--classes 400] [--attributes 100] [--negatives 8] [--device cpu] [--quick] [--out FILE.json]

Bytes are those of all tensors that live at one time, counted as they are made and freed; work is that of the matrix
products, counted too: both are the same on every machine. Times are CPU times, one reading each, as a ratio alone.
On a GPU also what it really takes: seconds by its own clock and memory that it allocates and reserves, of a step of the
loss, of one question to its end, and of short trainings.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a program finds only its own folder

from benchmarks.many_device import device_table, fits_on_device, measured, pair_on_device
from benchmarks.measure import options, publish
from whytube.classifiers.base import Features
from whytube.explainer.explainer import Explainer, find_objective
from whytube.explainer.objective import class_term, drawn_negatives
from whytube.explainer.scores import build_scores
from whytube.models import build_classifier
from whytube.search.verify import Question
from whytube.training.plan import Live, peak_of_step
from whytube.versions import provenance

if TYPE_CHECKING:
    from collections.abc import Callable

    from whytube.classifiers.base import VideoClassifier

GIB = 2**30
H200 = 139 * GIB
PAPER = (24, 40)
"""Classes and words of UCF101-24."""
FITS = (60, 20)
"""Steps of the trainings on a GPU: with few negatives, and with all."""
BATCH, OF_CLIP = 30, 8
"""Clips of a step, as in the paper, and words of each, which the paper does not say."""


def run(
    device: torch.device, *, sizes: tuple[int, int], negatives: int, seed: int = 0, quick: bool = False
) -> dict[str, Any]:
    """Count at the paper's sizes, and with other numbers of classes and words; with all negatives and with few.

    quick: a small network and batches of two.
    """
    classifiers = {count: _network(count, device, seed, quick=quick) for count in (PAPER[0], sizes[0])}
    asked = [(pair, count) for pair in (PAPER, sizes) for count in (None, negatives)]
    batch = 2 if quick else BATCH
    rows = [_row(classifiers[pair[0]], pair[1], batch, count, seed) for pair, count in asked]
    device_only = {}
    if device.type == "cuda":
        device_only["fits"] = fits_on_device(
            classifiers[sizes[0]], sizes[1], device, [(negatives, FITS[0]), (None, FITS[1])], batch=batch
        )
    first = rows[0]["seconds"]
    for row in rows:
        row["times the first"] = round(row.pop("seconds") / first, 2)
    network = next(iter(classifiers.values()))
    return {
        "benchmark": "many",
        "sizes": {"batch": batch, "of_clip": OF_CLIP, "maps": [list(shape) for shape in network.map_shapes()]},
        "rows": rows,
        **device_only,
        "provenance": provenance(device, seed=seed),
    }


def _network(classes: int, device: torch.device, seed: int, *, quick: bool) -> VideoClassifier:
    preset = "c3d-resnet-small" if quick else "c3d-resnet"
    return build_classifier(preset, [f"class {c}" for c in range(classes)], seed=seed).to(device).eval()


def _row(classifier: VideoClassifier, words: int, batch: int, negatives: int | None, seed: int) -> dict[str, Any]:
    classes, device = len(classifier.classes), classifier.device
    scores, features = _explainer(classifier, words, "paper", seed).scores, _features(classifier, batch, seed)
    positive = torch.arange(batch, device=device) % classes
    present = torch.arange(words, device=device).expand(batch, -1) < OF_CLIP
    negative = drawn_negatives(positive, classes, negatives, torch.Generator().manual_seed(seed))
    weights = [weight for weight in scores.parameters() if weight is not scores.attribute_bias]

    def step() -> None:
        term = class_term(scores, scores.normalise(features.maps), positive, present, negative=negative)
        torch.autograd.grad(term, weights)

    pairs = {name: _of_pair(classifier, words, name, seed) for name in ("paper", "ours")}  # also compiles the search
    before = time.process_time()
    peak, work = _counted(step)
    seconds = time.process_time() - before
    kept = sum(tensor.nbytes for tensor in (*scores.parameters(), *scores.buffers(), *features.maps))
    kept += 2 * sum(weight.nbytes for weight in scores.parameters())  # AdamW's states
    found = {
        "classes": classes,
        "attributes": words,
        "negatives": classes - 1 if negative is None else negative.shape[1],
        "bytes": {"step": peak, "kept": kept, "classifier": peak_of_step(classifier, batch, _look)},
        "gigaflops": {"step": work / 1e9, **pairs},
        "seconds": seconds,
    }
    if device.type == "cuda":
        told = {n: pair_on_device(_explainer(classifier, words, n, seed), device) for n in ("paper", "ours")}
        found["device"] = {"step": measured(step, device), **told}
    return found


def _look(net: VideoClassifier, clips: torch.Tensor) -> None:
    with torch.no_grad():
        net.features(clips)


@torch.no_grad()
def _of_pair(classifier: VideoClassifier, words: int, objective: str, seed: int) -> float:
    """Work of one question, the classifier's own left out: the paper's tubes of every word, or those of A's words."""
    explainer = _explainer(classifier, words, objective, seed)
    first = torch.zeros(1, dtype=torch.long, device=classifier.device)
    asked = Question(first, _features(classifier, 1, seed), first, first[None] + 1)

    def answer() -> None:
        if explainer.verifies:
            explainer.word_tubes(explainer.places(asked), asked)
        else:
            explainer.attribute_tubes(asked)

    return _counted(answer)[1] / 1e9


def _counted(call: Callable[[], None]) -> tuple[int, int]:
    """Most bytes of tensors that live at one time in a call, and the work of its matrix products."""
    with FlopCounterMode(display=False) as work, Live() as live:
        call()
    return live.most, work.get_total_flops()


def _explainer(classifier: VideoClassifier, words: int, objective: str, seed: int) -> Explainer:
    """Random scores; every class has the first words."""
    bias = find_objective(objective).class_bias
    scores = build_scores(classifier, words, class_bias=bias, seed=seed).to(classifier.device)
    table = (torch.arange(words) < OF_CLIP).expand(len(classifier.classes), -1)
    return Explainer(classifier, scores, tuple(f"word {s}" for s in range(words)), table, objective)


def _features(classifier: VideoClassifier, batch: int, seed: int) -> Features:
    generator = torch.Generator().manual_seed(seed)
    maps = tuple(torch.randn(batch, *shape, generator=generator).relu() for shape in classifier.map_shapes())
    logits = torch.zeros(batch, len(classifier.classes))
    return Features(logits.to(classifier.device), tuple(h.to(classifier.device) for h in maps))


def table(report: dict[str, Any]) -> str:
    """Write the report as text."""
    head = ("classes x words", "negatives", "a step", "with all that is kept", "the classifier", "work", "time")
    pair = ("one pair, paper", "one pair, ours")
    rows = [f"| {' | '.join((*head, *pair))} |", f"| --- | {' | '.join(['---:'] * (len(head) + 1))} |"]
    first = report["rows"][0]["gigaflops"]["step"]
    for row in report["rows"]:
        size, work = row["bytes"], row["gigaflops"]
        memory = [f"{n / GIB:.2f} GiB" for n in (size["step"], size["step"] + size["kept"], size["classifier"])]
        cells = [f"{row['classes']} x {row['attributes']}", str(row["negatives"]), *memory]
        cells += [f"{work['step'] / first:.2f}", f"{row['times the first']:.2f}"]
        rows.append(f"| {' | '.join([*cells, *(f'{work[name]:.2f} G' for name in ('paper', 'ours'))])} |")
    if "fits" in report:
        rows += device_table(report["rows"], report["fits"])
    most = max(row["bytes"]["kept"] + max(row["bytes"]["step"], row["bytes"]["classifier"]) for row in report["rows"])
    source = report["provenance"]
    rows += [
        "",
        f"At most {most / GIB:.2f} GiB, {H200 / most:.0f} times below the {H200 / GIB:.0f} GiB of an H200, by count; "
        f"{source['device']}, commit {source['commit']}, sizes {report['sizes']}.",
    ]
    return "\n".join(rows)


def main(words: list[str] | None = None) -> None:
    """Count, print the table, write the report."""
    parser = options(__doc__)
    parser.add_argument("--classes", type=int, default=400)
    parser.add_argument("--attributes", type=int, default=100)
    parser.add_argument("--negatives", type=int, default=8, help="classes but A that are drawn for a clip")
    given = parser.parse_args(words)
    sizes = (given.classes, given.attributes)
    report = run(given.device, sizes=sizes, negatives=given.negatives, seed=given.seed, quick=given.quick)
    publish(report, table(report), given.out)


if __name__ == "__main__":
    main()
