"""What mirrored and cropped copies of boxed clips add to where words are.

    python studies/copies.py --data DATA [--model jhmdb-i3d] [--out results/words-copies-jhmdb.json]

DATA is J-HMDB as `whytube data import jhmdb` writes it, split 1. Words begin with random weights, so that the model may
have seen the boxes. Judged as in words.py: on training clips, of which a fifth is held out at a time, to choose by; and
on the test clips with boxes.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from words import boxed_clips, placed, summed_up

from whytube.cli.options import open_source
from whytube.data.source import boxed_indices
from whytube.explainer.scores import build_scores
from whytube.models import load_model
from whytube.training.calibration import FOLDS
from whytube.training.places import drawn_clips, drawn_steps, fit_places
from whytube.training.recipe import Recipe
from whytube.versions import provenance

if TYPE_CHECKING:
    from whytube.explainer.explainer import Explainer
    from whytube.explainer.scores import Scores
    from whytube.training.places import DrawnSteps

LR = Recipe(clips=64).place_lr
VARIANTS = ((0, 200), (0, 500), (1, 400), (4, 500))
"""Copies of every clip, and steps."""


def main() -> None:
    """Measure, print, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--model", default="jhmdb-i3d")
    parser.add_argument("--out", type=Path, default=Path("results/words-copies-jhmdb.json"))
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    device, started = torch.device(options.device), time.perf_counter()
    origin = provenance(device, seed=0) | {"data": Path(options.data).name, "model": options.model, "lr": LR}
    explainer = load_model(options.model, device=options.device)
    classifier = explainer.classifier
    source = open_source(options.data, size=classifier.size, frames=classifier.frames, seed=0)
    test, train = (boxed_clips(explainer, source, split, 0, device) for split in ("test", "train"))
    most = max(copies for copies, _ in VARIANTS)
    clips = drawn_clips(source)
    assert [clip.index for clip in clips] == list(boxed_indices(source, "train") or ()), "a fold is of the same clips"
    drawn = drawn_steps(classifier, source, explainer.scores, clips, device, copies=most)
    fold = torch.arange(len(train["labels"]), device=device) % FOLDS
    rows = []
    for copies, steps in VARIANTS:
        own = drawn.part(drawn.copy <= copies)
        held = []
        for number in range(FOLDS):
            scores = _learnt(explainer, own.part(own.clip % FOLDS != number), steps, seed=number)
            held.append(placed(scores, _part(train, fold == number)))
        tested = placed(_learnt(explainer, own, steps, seed=0), test)
        widest = max(found["pointing"].shape[1] for found in held)
        joined = {name: torch.cat([_wide(found[name], widest) for found in held]) for name in held[0]}
        told = {"held out": summed_up(len(fold), [joined]), "test": summed_up(len(fold), [tested])}
        rows.append({"copies": copies, "steps": steps, **told})
        print(json.dumps(rows[-1]), f"{time.perf_counter() - started:.0f} s", flush=True)
    options.out.write_text(json.dumps({"variants": rows, "provenance": origin}, indent=1) + "\n")


def _learnt(explainer: Explainer, drawn: DrawnSteps, steps: int, *, seed: int) -> Scores:
    """Learn places from random weights."""
    scores = copy.deepcopy(explainer.scores)
    new = build_scores(explainer.classifier, len(explainer.attribute_names), seed=seed)
    with torch.no_grad():
        for weights, random in zip(scores.attribute_weights, new.attribute_weights, strict=True):
            weights.copy_(random)
    fit_places(scores, drawn, steps=steps, lr=LR, seed=seed)
    return scores


def _part(judged: dict[str, Any], rows: torch.Tensor) -> dict[str, Any]:
    maps = [h[rows] for h in judged["maps"]]
    return {"maps": maps} | {name: judged[name][rows] for name in ("labels", "boxes", "known")}


def _wide(values: torch.Tensor, width: int) -> torch.Tensor:
    return torch.nn.functional.pad(values, (0, width - values.shape[1]), value=torch.nan)


if __name__ == "__main__":
    main()
