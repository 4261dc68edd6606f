"""Masked clips per second: `masked_logits` against a plain loop that erases a tube and runs the classifier.

python benchmarks/masked.py [--device cpu] [--seed 0] [--quick] [--variants] [--out FILE.json]
"""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a program finds only its own folder

from benchmarks import masked_variants
from benchmarks.measure import options, publish
from whytube.classifiers import C3DResNet
from whytube.models import load_classifier
from whytube.search import masked
from whytube.search.verify import ask
from whytube.tubes import erase_boxes
from whytube.versions import provenance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from whytube.classifiers.base import VideoClassifier
    from whytube.search.verify import Question

MODELS = ("demo", "jhmdb-i3d")
FILL = "shift"
ROWS = ("one by one", "in batches", "ours, exact", "ours, to search")
"""The first two are the plain loop."""


def run(device: torch.device, *, seed: int = 0, quick: bool = False) -> dict[str, Any]:
    """Measure every model on tubes drawn at random, after checking that all ways agree."""
    torch.manual_seed(seed)
    tiny = C3DResNet(["a", "b"], width=0.1, frames=4, size=(16, 16))
    models = {"tiny": tiny} if quick else {name: load_classifier(name) for name in MODELS}
    count = 3 if quick else 128 if device.type == "cuda" else 12
    found = {name: _measured(model.to(device).eval(), count, seed) for name, model in models.items()}
    return {
        "benchmark": "masked",
        "tubes": count,
        "fill": FILL,
        "models": found,
        "provenance": provenance(device, seed=seed),
    }


def _measured(model: VideoClassifier, count: int, seed: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)
    clips = torch.rand(1, 3, model.frames, *model.size, generator=generator) * 0.3
    clips[..., : model.size[1] // 2] += 0.5
    question = ask(model, clips.to(model.device))
    boxes = typical_tubes(count, model.frames, model.size, generator).to(model.device)
    fast = model.for_inference()
    every = torch.ones(1, count, dtype=torch.bool, device=model.device)
    calls: dict[str, Callable[[], torch.Tensor]] = {
        "one by one": lambda: plain(model, question, boxes, 1),
        "in batches": lambda: plain(model, question, boxes, 8),
        "ours, exact": lambda: masked.masked_logits(fast, question, boxes[None], every, fill=FILL)[0],
        "ours, to search": lambda: masked.masked_logits(fast, question, boxes[None], every, fill=FILL, exact=False)[0],
    }
    wanted = calls["one by one"]()
    effect = float((wanted - question.features.logits).std())
    rows = {}
    for name in ROWS:
        error = float((calls[name]() - wanted).square().mean().sqrt())
        with network_seconds(model.device) as spent:
            began = time.perf_counter()
            calls[name]()
            _finish(model.device)
            seconds = time.perf_counter() - began
        rows[name] = {"clips_per_second": count / seconds, "error_of_effect": error / effect}
        if name.startswith("ours"):
            rows[name]["network_share"] = spent[0] / seconds
    return {"precision": str(masked.search_precision(fast) or torch.float32).removeprefix("torch."), "rows": rows}


@torch.no_grad()
def plain(model: VideoClassifier, question: Question, boxes: torch.Tensor, batch: int) -> torch.Tensor:
    """Erase and classify, `batch` tubes (n, T, 4) of the first clip at a time: (n, C)."""
    parts = [boxes[first : first + batch] for first in range(0, len(boxes), batch)]
    clip = question.clips[:1]
    return torch.cat([model(erase_boxes(clip.expand(len(p), -1, -1, -1, -1), p, fill=FILL)) for p in parts])


def typical_tubes(count: int, frames: int, size: tuple[int, int], generator: torch.Generator) -> torch.Tensor:
    """Boxes (n, T, 4): squares of about a third of the height that drift, in a third of the frames to all of them."""

    def uniform(low: float, high: float) -> torch.Tensor:
        return low + (high - low) * torch.rand(count, 1, generator=generator)

    side, t = size[0] * uniform(0.28, 0.36), torch.arange(frames)[None] / max(1, frames - 1)
    x = uniform(0, 1) * (size[1] - side) + uniform(-0.1, 0.1) * size[0] * t
    y = uniform(0, 1) * (size[0] - side) + uniform(-0.1, 0.1) * size[0] * t
    length = uniform(0.3, 1)
    start = uniform(0, 1) * (1 - length)
    there = (t >= start) & (t <= start + length)
    return torch.stack([x, y, x + side, y + side], -1) * there[..., None]


@contextlib.contextmanager
def network_seconds(device: torch.device) -> Iterator[list[float]]:
    """Within the block, add up in a list's one number the seconds that `masked_logits` runs networks for."""
    spent, before = [0.0], {name: getattr(masked, name) for name in ("_run_whole", "_run_block", "_run_rest")}

    def timed(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*words: Any) -> Any:
            _finish(device)
            began = time.perf_counter()
            result = call(*words)
            _finish(device)
            spent[0] += time.perf_counter() - began
            return result

        return run

    for name, call in before.items():
        setattr(masked, name, timed(call))
    try:
        yield spent
    finally:
        for name, call in before.items():
            setattr(masked, name, call)


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def table(report: dict[str, Any]) -> str:
    """Write the report as text."""
    if "ways" in report:
        return masked_variants.table(report)
    rows = ["| model | way | masked clips per second | times the loop | error | in the network |"]
    rows.append("| --- | --- | ---: | ---: | ---: | ---: |")
    for model, found in report["models"].items():
        for name, row in found["rows"].items():
            times = row["clips_per_second"] / found["rows"]["one by one"]["clips_per_second"]
            share = f"{100 * row['network_share']:.0f} %" if "network_share" in row else ""
            way = f"{name} ({found['precision']})" if name == "ours, to search" else name
            error = f"{100 * row['error_of_effect']:.2g} %"
            rows.append(f"| {model} | {way} | {row['clips_per_second']:.1f} | {times:.1f} | {error} | {share} |")
    source = report["provenance"]
    rows += [
        "",
        f"{report['tubes']} tubes of one clip; error: of the logits, as a share of what masking does to them. "
        f"{source['device']}, commit {source['commit']}.",
    ]
    return "\n".join(rows)


def main(words: list[str] | None = None) -> None:
    """Measure, print the table, write the report."""
    parser = options(__doc__)
    parser.add_argument("--variants", action="store_true", help="I3D on whole clips, plainly and ours")
    given = parser.parse_args(words)
    if given.variants:
        report = masked_variants.run(given.device, seed=given.seed, quick=given.quick)
        report = {"benchmark": "masked variants", **report, "provenance": provenance(given.device, seed=given.seed)}
    else:
        report = run(given.device, seed=given.seed, quick=given.quick)
    publish(report, table(report), given.out)


if __name__ == "__main__":
    main()
