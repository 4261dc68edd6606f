"""How long a training waits for its clips: videos read ahead, read in turn, from memory, or kept on the device.

python benchmarks/reading.py [--workers 4 8 16] [--device cpu] [--seed 0] [--quick] [--out FILE.json] [--data FOLDER]
                             [--preset NAME]
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a program finds only its own folder

from benchmarks.measure import options, publish
from whytube.data.export import export_world
from whytube.data.layout import read_dataset
from whytube.data.layout.clips import FolderSource, cores, training_workers
from whytube.models import build_classifier
from whytube.training import Recipe, fit_classifier
from whytube.training.loop import Loop
from whytube.versions import provenance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whytube.data.source import ClipBatch

WAYS = {
    "kept": "kept on the device",
    "memory": "read ahead, bytes kept in memory (what `train` does)",
    "ahead": "read ahead, decoded each time",
    "in turn": "read in turn, decoded each time",
}
"""Where the clips of a step come from, as the table calls it."""


@dataclass(frozen=True)
class Sizes:
    """A training: `video` is the side of exported videos, `steps` those that are measured, after as many others."""

    preset: str
    batch: int
    steps: int
    videos: int
    video: int


SIZES = {
    "cuda": Sizes("i3d", 32, 40, 256, 224),
    "cpu": Sizes("c3d-resnet-small", 8, 12, 96, 224),
    "quick": Sizes("c3d-resnet-small", 2, 1, 12, 32),
}


def run(
    device: torch.device,
    *,
    workers: list[int] | None = None,
    seed: int = 0,
    quick: bool = False,
    data: Path | None = None,
    preset: str | None = None,
) -> dict[str, Any]:
    """Train a classifier in each of WAYS; those that decode each time with each number of `workers`.

    workers: videos decoded at a time; by default as many as `train` takes.
    data: a folder of videos as in docs/data.md, by default clips of the embedded world as H.264.
    """
    sizes, counts = SIZES["quick" if quick else device.type], workers or [training_workers()]
    asked = [("kept", counts[-1]), ("memory", counts[-1])]
    asked += [*(("ahead", count) for count in counts), ("in turn", counts[-1])]
    with tempfile.TemporaryDirectory() as made:
        folder = data or export_world(Path(made) / "world", count=sizes.videos, size=sizes.video, seed=seed)
        rows = [_train(way, count, folder, preset or sizes.preset, sizes, device, seed) for way, count in asked]
    for row in rows:
        row["beyond_kept"] = 1 - rows[0]["seconds_per_step"] / row["seconds_per_step"]
    return {
        "benchmark": "reading",
        "preset": preset or sizes.preset,
        "batch": sizes.batch,
        "steps": sizes.steps,
        "cores": cores(),
        "data": f"the embedded world at {sizes.video} x {sizes.video}" if data is None else data.name,
        "rows": rows,
        "provenance": provenance(device, seed=seed),
    }


def _train(
    way: str, workers: int, folder: Path, preset: str, sizes: Sizes, device: torch.device, seed: int
) -> dict[str, Any]:
    """Seconds of a step, the share of them that the loop waited for clips, and the share that the GPU did."""
    dataset = read_dataset(folder)
    model = build_classifier(preset, dataset.classes, seed=seed)
    room = FolderSource.cache_bytes if way == "memory" else 0
    source = dataset.source(frames=model.frames, size=model.size, workers=workers, cache_bytes=room)
    count, each = source.count("train"), 3 * source.frames * source.size[0] * source.size[1]
    if way == "memory":  # as after the first round
        for start in range(0, count, sizes.batch):
            source.batch("train", range(start, min(start + sizes.batch, count)))
    distinct = count if way == "kept" else None
    recipe = Recipe(
        clips=2 * sizes.steps * sizes.batch, batch_size=sizes.batch, distinct=distinct, precision="bfloat16", seed=seed
    )
    ahead = mock.patch("whytube.training.loop.AHEAD", 0 if way == "in turn" else 2)
    with ahead, _watched(device) as gaps:
        first, last = fit_classifier(model, source, recipe, device=device, report_every=sizes.steps).records
    seconds = last.seconds - first.seconds
    return {
        "way": way,
        "workers": workers,
        "seconds_per_step": seconds / sizes.steps,
        "waiting": last.waiting,
        "idle": None if way == "kept" else gaps.idle(sizes.steps, seconds),
        "in_memory": round(min(1.0, room // each / count), 3),
    }


class Gaps:
    """When a GPU had done the work of one step, and when it could begin with the clips of the next."""

    def __init__(self) -> None:
        self.events: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []

    def idle(self, steps: int, seconds: float) -> float | None:
        """Share of the last steps' seconds that the GPU had nothing to do for want of clips; None without a GPU.

        Clips that are read in turn are also copied in that time.
        """
        if not self.events:
            return None
        torch.cuda.synchronize()
        return float(sum(done.elapsed_time(begun) for done, begun in self.events[-steps:]) / 1e3 / seconds)


@contextmanager
def _watched(device: torch.device) -> Iterator[Gaps]:
    """Record an event before and after a step's clips are asked for; the host does not wait for either."""
    gaps, real = Gaps(), Loop.batch

    def event() -> torch.cuda.Event:
        made = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        made.record(torch.cuda.current_stream(device))
        return made

    def batch(loop: Loop, step: int, stop: int) -> ClipBatch:
        done = event()
        found = real(loop, step, stop)
        gaps.events.append((done, event()))
        return found

    with mock.patch.object(Loop, "batch", batch) if device.type == "cuda" else nullcontext():
        yield gaps


def table(report: dict[str, Any]) -> str:
    """Write the report as text."""
    source = report["provenance"]
    rows = [
        "| clips | videos at a time | seconds of a step | the loop waits | the GPU waits | longer than kept |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in report["rows"]:
        kept = row["way"] == "kept"
        cells = ["" if kept else str(row["workers"]), f"{row['seconds_per_step']:.2f}", f"{100 * row['waiting']:.0f} %"]
        cells += ["" if row["idle"] is None else f"{100 * row['idle']:.0f} %"]
        cells += ["" if kept else f"{100 * row['beyond_kept']:.0f} % of the time"]
        rows.append(f"| {WAYS[row['way']]} | {' | '.join(cells)} |")
    held = next(row["in_memory"] for row in report["rows"] if row["way"] == "memory")
    rows += [
        "",
        f"{report['preset']}, {report['steps']} steps of {report['batch']} clips, {report['data']}, of which memory "
        f"holds {100 * held:.0f} %; {report['cores']} cores, {source['device']}, commit {source['commit']}.",
    ]
    return "\n".join(rows)


def main(words: list[str] | None = None) -> None:
    """Measure, print the table, write the report."""
    parser = options(__doc__)
    parser.add_argument("--workers", type=int, nargs="+", metavar="N", help="videos at a time; by default as `train`")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="videos of your own; by default exported ones")
    parser.add_argument("--preset", help="the network; by default i3d on a GPU, c3d-resnet-small elsewhere")
    given = parser.parse_args(words)
    chosen = {"workers": given.workers, "data": given.data, "preset": given.preset}
    report = run(given.device, seed=given.seed, quick=given.quick, **chosen)
    publish(report, table(report), given.out)


if __name__ == "__main__":
    main()
