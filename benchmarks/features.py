"""Training of an explainer with and without kept features: runs of the classifier, CPU time, and the weights.

python benchmarks/features.py [--model demo | --preset i3d] [--data world] [--clips N] [--distinct N] [--batch N]

The loss of `ours`, without what follows it (places, the response). Only the ratio of CPU times is given, of one reading
each. The largest difference of weights is told as a part of the largest weight. A preset has random weights.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a program finds only its own folder

from benchmarks.measure import options, publish
from whytube.cli.options import open_source
from whytube.data.source import Kept
from whytube.models import build_classifier, load_model
from whytube.training import Recipe, features, fit_explainer
from whytube.versions import provenance

if TYPE_CHECKING:
    from whytube.classifiers.base import Features, VideoClassifier
    from whytube.data.source import Source
    from whytube.explainer.scores import Scores


def run(model: str, data: str, recipe: Recipe, device: torch.device, *, preset: bool = False) -> dict[str, Any]:
    """Train twice on the same clips, which are read before the time begins."""
    network = build_classifier(model, ["any", "other"]) if preset else load_model(model, device=device).classifier
    size = (min(network.size),) * 2 if preset else network.size  # the world is square
    source = open_source(data, size=size, frames=network.frames, seed=recipe.seed)
    classifier = build_classifier(model, source.classes, size=size).to(device) if preset else network
    available, wanted = source.count("train"), recipe.distinct or recipe.clips
    count = wanted if available is None else min(wanted, available)
    clips = Kept(source, "train", count, device=device)
    _fit(classifier, clips, Recipe(clips=recipe.batch_size, batch_size=recipe.batch_size, boxes=0), share=0.0)  # warm
    kept, plain = (_fit(classifier, clips, recipe, share=share) for share in (features.SHARE, 0.0))
    return {
        "benchmark": "features",
        "model": Path(model).name,
        "steps": recipe.steps,
        "batch": recipe.batch_size,
        "different clips": count,
        "bytes of a clip": features.bytes_of_features(classifier.map_shapes(), len(classifier.classes), 1),
        "runs": {"kept": kept[1], "plain": plain[1]},
        "times faster": round(plain[0] / kept[0], 2),
        "largest difference": _apart(kept[2], plain[2]),
        "provenance": provenance(device, seed=recipe.seed),
    }


def _fit(classifier: VideoClassifier, clips: Source, recipe: Recipe, *, share: float) -> tuple[float, int, Scores]:
    """Train with features kept in this share of the memory: seconds, clips that the classifier was run on, weights."""
    before, features.SHARE, runs, look = features.SHARE, share, 0, classifier.features

    def count(clips: torch.Tensor) -> Features:
        nonlocal runs
        runs += len(clips)
        return look(clips)

    classifier.features = count  # type: ignore[method-assign]
    try:
        start = time.process_time()
        explainer, _ = fit_explainer(classifier, clips, recipe, device=classifier.device)
        return time.process_time() - start, runs, explainer.scores
    finally:
        del classifier.features  # the class's own is left
        features.SHARE = before


@torch.no_grad()
def _apart(first: Scores, second: Scores) -> float:
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    return max(float((a - b).abs().max() / b.abs().max().clamp_min(1e-12)) for a, b in pairs)


def table(report: dict[str, Any]) -> str:
    """Write the report as text."""
    runs, source = report["runs"], report["provenance"]
    size = report["bytes of a clip"] * report["different clips"]
    return (
        f"{report['model']}: {report['steps']} steps of {report['batch']} clips, {report['different clips']} different "
        f"ones. Kept: {size / 2**20:.0f} MiB. Clips run: {runs['kept']} instead of {runs['plain']}. "
        f"{report['times faster']:.2f} times faster (CPU time); weights differ by {report['largest difference']:.0e}. "
        f"{source['device']}, commit {source['commit']}."
    )


def main(words: list[str] | None = None) -> None:
    """Train, print what was measured, write the report."""
    parser = options(__doc__)
    parser.add_argument("--model", default="demo")
    parser.add_argument("--preset", help="instead of a model: a network of that kind, untrained")
    parser.add_argument("--data", default="world")
    for name, default in (("clips", 2000), ("distinct", 200), ("batch", 8)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args(words)
    shown, different, batch = (16, 4, 4) if given.quick else (given.clips, given.distinct, given.batch)
    recipe = Recipe(
        clips=shown, distinct=different, batch_size=batch, optimizer="adamw", lr=1e-2, boxes=0, seed=given.seed
    )
    report = run(given.preset or given.model, given.data, recipe, given.device, preset=bool(given.preset))
    publish(report, table(report), given.out)


if __name__ == "__main__":
    main()
