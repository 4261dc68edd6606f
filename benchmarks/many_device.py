"""What benchmarks/many.py measures on a GPU beside what it counts: seconds by the device's clock, and its memory."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch

from whytube.data.source import PlainBatch
from whytube.search.verify import ask
from whytube.training import Recipe, fit_explainer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from whytube.classifiers.base import VideoClassifier
    from whytube.explainer.explainer import Explainer

GIB = 2**30
REPEATS = 10


class Noise:
    """Clips of noise for a classifier, made on the device; every class has the first words."""

    def __init__(self, classifier: VideoClassifier, words: int, number: int, *, of_clip: int) -> None:
        self.classes, self.number = classifier.classes, number
        self.attribute_names = tuple(f"word {s}" for s in range(words))
        self.table = (torch.arange(words) < of_clip).expand(len(self.classes), -1).clone()
        self.shape = (3, classifier.frames, *classifier.size)

    def count(self, split: str) -> int | None:  # noqa: ARG002 (a Source's)
        """Return how many clips a split has."""
        return self.number

    def batch(self, split: str, indices: Sequence[int], device: torch.device | str = "cpu") -> PlainBatch:  # noqa: ARG002
        """Return clips by their numbers."""
        labels = torch.tensor([index % len(self.classes) for index in indices])
        generator = torch.Generator(device)
        clips = [torch.rand(self.shape, generator=generator.manual_seed(index), device=device) for index in indices]
        return PlainBatch(torch.stack(clips), labels.to(device), self.table[labels].to(device))


def measured(call: Callable[[], object], device: torch.device, *, repeats: int = REPEATS) -> dict[str, float | None]:
    """Seconds of a call, by CUDA events around several; most bytes that the device allocates and reserves in them.

    All bytes count, also what was there before. On a CPU seconds are the clock's, and there are no bytes.
    """
    for _ in range(2):
        call()
    if device.type != "cuda":
        before = time.perf_counter()
        for _ in range(repeats):
            call()
        return {"seconds": (time.perf_counter() - before) / repeats, **_peak(device)}
    _forget_peak(device)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    begin.record()
    for _ in range(repeats):
        call()
    end.record()
    torch.cuda.synchronize(device)
    return {"seconds": begin.elapsed_time(end) / 1e3 / repeats, **_peak(device)}


def _forget_peak(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()  # else what earlier calls reserved would count
        torch.cuda.reset_peak_memory_stats(device)


def _peak(device: torch.device) -> dict[str, float | None]:
    if device.type != "cuda":
        return {"allocated": None, "reserved": None}
    return {
        "allocated": torch.cuda.max_memory_allocated(device),
        "reserved": torch.cuda.max_memory_reserved(device),
    }


def pair_on_device(explainer: Explainer, device: torch.device, *, repeats: int = REPEATS) -> dict[str, float | None]:
    """Measure one question to its end: the classifier, the tubes and, where there is one, the search."""
    classifier = explainer.classifier
    clip = Noise(classifier, 1, 1, of_clip=1).batch("test", [0], device).clips

    def answer() -> None:
        explainer(ask(classifier, clip, negatives=1), 1)

    return measured(answer, device, repeats=repeats)


def fits_on_device(
    classifier: VideoClassifier,
    words: int,
    device: torch.device,
    asked: Sequence[tuple[int | None, int]],
    *,
    batch: int,
) -> list[dict[str, Any]]:
    """Train an explainer for real, with so many negatives (None: all) for so many steps; the second half is timed."""
    found = []
    for negatives, steps in asked:
        source = Noise(classifier, words, steps * batch, of_clip=8)  # as many as are shown: no features are kept
        recipe = Recipe(clips=steps * batch, batch_size=batch, optimizer="adamw", lr=1e-3, negatives=negatives)
        _forget_peak(device)
        half = steps // 2
        _, history = fit_explainer(classifier, source, recipe, objective="paper", device=device, report_every=half)
        first, *_, last = history.records
        row = {
            "classes": len(classifier.classes),
            "attributes": words,
            "negatives": len(classifier.classes) - 1 if negatives is None else negatives,
            "steps": steps,
            "seconds_per_step": (last.seconds - first.seconds) / (last.step - first.step),
        }
        found.append(row | _peak(device))
    return found


def device_table(rows: Sequence[dict[str, Any]], fits: Sequence[dict[str, Any]]) -> list[str]:
    """Lines of a report: what a GPU took, allocated and reserved."""
    head = ("classes x words", "negatives", "a step of the loss", "a step of a real training")
    head += ("one pair, paper", "one pair, ours")
    lines = ["", f"| {' | '.join(head)} |", f"| --- | {' | '.join(['---:'] * (len(head) - 1))} |"]
    real = {(fit["classes"], fit["attributes"], fit["negatives"]): fit for fit in fits}
    for row in rows:
        key = (row["classes"], row["attributes"], row["negatives"])
        cells = [f"{key[0]} x {key[1]}", str(key[2]), _cell(row["device"]["step"])]
        cells += [_cell(real[key] | {"seconds": real[key]["seconds_per_step"]}) if key in real else ""]
        cells += [_cell(row["device"][name]) for name in ("paper", "ours")]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, "", "Milliseconds; GiB allocated / reserved at most, all counted."]


def _cell(found: dict[str, float | None]) -> str:
    memory = [found["allocated"], found["reserved"]]
    told = " / ".join(f"{bytes_ / GIB:.2f}" for bytes_ in memory if bytes_ is not None)
    return f"{1e3 * (found['seconds'] or 0):.1f}; {told}"
