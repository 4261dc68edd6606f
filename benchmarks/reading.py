"""How long a training waits for its clips: videos read ahead, read in turn, or kept on the device.

python benchmarks/reading.py [--device cpu] [--seed 0] [--quick] [--out FILE.json] [--data FOLDER] [--preset NAME]
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a program finds only its own folder

from benchmarks.measure import options, publish
from whytube.data.export import export_world
from whytube.data.layout import read_dataset
from whytube.models import build_classifier
from whytube.training import Recipe, fit_classifier
from whytube.versions import provenance

if TYPE_CHECKING:
    import torch

WAYS = {"kept": "kept on the device", "ahead": "read ahead", "in turn": "read in turn"}
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
    device: torch.device, *, seed: int = 0, quick: bool = False, data: Path | None = None, preset: str | None = None
) -> dict[str, Any]:
    """Train a classifier in each of WAYS; every clip is decoded each time it is read.

    data: a folder of videos as in docs/data.md, by default clips of the embedded world as H.264.
    """
    sizes = SIZES["quick" if quick else device.type]
    with tempfile.TemporaryDirectory() as made:
        folder = data or export_world(Path(made) / "world", count=sizes.videos, size=sizes.video, seed=seed)
        found = {way: _train(way, folder, preset or sizes.preset, sizes, device, seed) for way in WAYS}
    for numbers in found.values():
        numbers["beyond_kept"] = 1 - found["kept"]["seconds_per_step"] / numbers["seconds_per_step"]
    return {
        "benchmark": "reading",
        "preset": preset or sizes.preset,
        "batch": sizes.batch,
        "steps": sizes.steps,
        "data": f"the embedded world at {sizes.video} x {sizes.video}" if data is None else data.name,
        "ways": found,
        "provenance": provenance(device, seed=seed),
    }


def _train(
    way: str, folder: Path, preset: str, sizes: Sizes, device: torch.device, seed: int
) -> dict[str, float | None]:
    """Seconds of a step, and the share of them that the loop waited for clips."""
    dataset = read_dataset(folder)
    model = build_classifier(preset, dataset.classes, seed=seed)
    source = dataset.source(frames=model.frames, size=model.size, workers=4, cache_bytes=0)
    distinct = source.count("train") if way == "kept" else None
    recipe = Recipe(
        clips=2 * sizes.steps * sizes.batch, batch_size=sizes.batch, distinct=distinct, precision="bfloat16", seed=seed
    )
    with mock.patch("whytube.training.loop.AHEAD", 0 if way == "in turn" else 2):
        first, last = fit_classifier(model, source, recipe, device=device, report_every=sizes.steps).records
    return {"seconds_per_step": (last.seconds - first.seconds) / sizes.steps, "waiting": last.waiting}


def table(report: dict[str, Any]) -> str:
    """Write the report as text."""
    source = report["provenance"]
    rows = ["| clips | seconds of a step | the loop waits | longer than kept |", "| --- | ---: | ---: | ---: |"]
    for way, name in WAYS.items():
        numbers = report["ways"][way]
        longer = "" if way == "kept" else f"{100 * numbers['beyond_kept']:.0f} % of the time"
        rows.append(f"| {name} | {numbers['seconds_per_step']:.2f} | {100 * numbers['waiting']:.0f} % | {longer} |")
    rows += [
        "",
        f"{report['preset']}, {report['steps']} steps of {report['batch']} clips, {report['data']}; "
        f"{source['device']}, commit {source['commit']}.",
    ]
    return "\n".join(rows)


def main(words: list[str] | None = None) -> None:
    """Measure, print the table, write the report."""
    parser = options(__doc__)
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="videos of your own; by default exported ones")
    parser.add_argument("--preset", help="the network; by default i3d on a GPU, c3d-resnet-small elsewhere")
    given = parser.parse_args(words)
    report = run(given.device, seed=given.seed, quick=given.quick, data=given.data, preset=given.preset)
    publish(report, table(report), given.out)


if __name__ == "__main__":
    main()
