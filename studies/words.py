"""What boxes buy: concept accuracy, pointing and tube IoU over the number of training clips with drawn boxes.

    python studies/words.py --data DATA [--model jhmdb-i3d] [--out results/words-jhmdb.json]

DATA is J-HMDB as `whytube data import jhmdb` writes it, split 1, or "world". The start are scores that class labels
alone have trained (`train explainer --boxes 0`): the row for 0 clips. For every other number of boxed clips, and every
seed of choosing them, places are learnt and judged on the test clips with boxes: each annotated attribute of a clip
proposes its best tube, which is compared with all annotated boxes of the clip. With all boxed clips the fit is
calibrated too, and its reliability measured on the test clips. The classifier runs once per clip.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from whytube.cli.options import open_source
from whytube.data.source import boxed_indices, boxes_of
from whytube.evaluation import metrics
from whytube.evaluation.summary import means_with_intervals
from whytube.explainer.fit import SAID, reliability
from whytube.explainer.places import find_places
from whytube.models import load_model
from whytube.search.verify import listed
from whytube.subpath import max_subpath
from whytube.training.calibration import calibrate
from whytube.training.places import drawn_clips, drawn_steps, fit_places
from whytube.training.recipe import Recipe
from whytube.tubes import box_areas
from whytube.versions import provenance

if TYPE_CHECKING:
    from whytube.data.source import Source
    from whytube.explainer.explainer import Explainer
    from whytube.explainer.fit import FitCurve
    from whytube.explainer.scores import Scores
    from whytube.training.places import DrawnSteps

HOW = Recipe(clips=64)


def main() -> None:
    """Measure, print a table, write the JSON."""
    options = _options()
    explainer = load_model(options.model, device=options.device)
    classifier = explainer.classifier
    if explainer.fit is not None:
        raise SystemExit(f"{options.model} has seen boxes: give a model whose explainer was trained with --boxes 0")
    source = open_source(options.data, size=classifier.size, frames=classifier.frames, seed=0)
    device, started = torch.device(options.device), time.perf_counter()
    origin = provenance(device, seed=0) | {"data": Path(options.data).name, "model": options.model}
    judged = boxed_clips(explainer, source, "test", options.test, device)
    drawn = drawn_steps(classifier, source, explainer.scores, drawn_clips(source, options.boxes), device)
    total = len(drawn.clip.unique())
    print(
        f"{total} training clips with boxes, {len(judged['known'])} test clips; {time.perf_counter() - started:.0f} s"
    )
    rows = []
    for count in [n for n in options.counts if n <= total]:
        seeds = range(options.seeds if 0 < count < total else 1)
        figures = [placed(_trained(explainer.scores, drawn, count, seed), judged) for seed in seeds]
        rows.append(summed_up(count, figures))
        print(json.dumps(rows[-1]), f"{time.perf_counter() - started:.0f} s", flush=True)
    how = {"steps": HOW.place_steps, "lr": HOW.place_lr}
    curve = calibrate(explainer.scores, drawn, **how)
    told: dict[str, Any] = {"clips": rows, "training boxes": int((drawn.attribute_ids >= 0).sum())}
    if curve is not None:
        scores = _trained(explainer.scores, drawn, total, 0)
        told["fit"] = _fit(scores, curve, explainer, judged)
        print(json.dumps(told["fit"], indent=1))
    told["provenance"] = origin | {"recipe": how, "seconds": round(time.perf_counter() - started)}
    Path(options.out).write_text(json.dumps(told, indent=1) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--model", default="jhmdb-i3d")
    parser.add_argument("--out", default="results/words-jhmdb.json")
    parser.add_argument("--counts", type=int, nargs="+", default=[0, 10, 21, 42, 105])
    parser.add_argument("--boxes", type=int, help="clips per attribute, as for `train explainer`")
    parser.add_argument("--test", type=int, default=120, help="test clips where there is no end of them")
    parser.add_argument("--seeds", type=int, default=3, help="ways to choose the clips with boxes")
    parser.add_argument("--device", default="cpu")
    return parser.parse_args()


@torch.no_grad()
def boxed_clips(explainer: Explainer, source: Source, split: str, count: int, device: torch.device) -> dict[str, Any]:
    """Return maps, labels and boxes of the clips that have boxes of attributes; count: of endless ones."""
    indices = boxed_indices(source, split)
    chosen = list(range(count) if indices is None else indices)
    parts: dict[str, list[Any]] = {"maps": [], "labels": [], "tracks": []}
    for start in range(0, len(chosen), 8):
        batch = source.batch(split, chosen[start : start + 8], device)
        parts["maps"].append(explainer.classifier.features(batch.clips).maps)
        parts["labels"].append(batch.labels)
        parts["tracks"] += boxes_of(batch)
    boxes, known = metrics.annotated_boxes(parts["tracks"], source.attribute_names, frames=batch.clips.shape[2])
    return {
        "maps": [torch.cat(scale) for scale in zip(*parts["maps"], strict=True)],
        "labels": torch.cat(parts["labels"]),
        "boxes": boxes.to(device),
        "known": known.to(device),
    }


def _trained(start: Scores, drawn: DrawnSteps, count: int, seed: int) -> Scores:
    """Learn places from `count` clips with boxes, chosen by the seed: one of every class, then a second, and so on."""
    scores = copy.deepcopy(start)
    chances, rounds = np.random.default_rng(seed), {}
    turns: dict[str, int] = {}
    for clip in chances.permutation(drawn.clip.unique().cpu().numpy()).tolist():
        label = str(drawn.present[drawn.clip == clip][0].int().tolist())  # classes differ in their attributes
        rounds[clip] = turns[label] = turns.get(label, -1) + 1
    order = sorted(rounds, key=rounds.__getitem__)
    if count:
        chosen = torch.isin(drawn.clip, torch.tensor(order[:count], device=drawn.clip.device))
        fit_places(scores, drawn.part(chosen), steps=HOW.place_steps, lr=HOW.place_lr, seed=seed)
    return scores


@torch.no_grad()
def placed(scores: Scores, judged: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Figures (B, s) of the best tube of every annotated attribute; NaN where a clip has fewer."""
    ids = listed(judged["known"])  # (B, s)
    tubes = _best_tubes(scores, judged, ids)[:, :, None]  # (B, s, 1, T, 4)
    iou, known, words = metrics.attribute_iou(tubes, judged["boxes"]), judged["known"], ids[..., None]
    own = torch.nn.functional.one_hot(ids.clamp_min(0), known.shape[1]).bool()
    found = {f"tied.top{top}": metrics.tied_hits(iou, known, words, top=top) for top in (1, 3)}
    found |= {f"shared.top{top}": metrics.concept_hits(iou, known, words, top=top) for top in (1, 3)}
    found["pointing"] = metrics.pointing(tubes, judged["boxes"], known, own)
    found["tube_iou"] = metrics.true_box_iou(iou, known, own)
    found["tube_frames"] = metrics.tube_frames(tubes)
    return {name: torch.where(ids >= 0, values[..., 0].double(), torch.nan) for name, values in found.items()}


def _best_tubes(scores: Scores, judged: dict[str, Any], ids: torch.Tensor) -> torch.Tensor:
    """Tubes (B, s, T, 4), a clip at a time."""
    found = []
    for b in range(len(ids)):
        places = find_places(scores, [h[b : b + 1] for h in judged["maps"]], ids[b : b + 1])
        found.append(scores.forms.boxes(max_subpath(places.volumes()).cells))
    return torch.cat(found)


def summed_up(count: int, figures: list[dict[str, torch.Tensor]]) -> dict[str, Any]:
    """Means over seeds, clips and attributes, with intervals over clips."""
    joined = {name: torch.cat([found[name] for found in figures], 1) for name in figures[0]}
    summed = means_with_intervals(joined, seed=0)
    return {"clips": count, "seeds": len(figures)} | {
        name: {"mean": figure.mean, "interval": [figure.low, figure.high]} for name, figure in summed.items()
    }


@torch.no_grad()
def _fit(scores: Scores, curve: FitCurve, explainer: Explainer, judged: dict[str, Any]) -> dict[str, Any]:
    """Reliability of fits on held-out training clips and on the test clips, and how often a word is said and right.

    Tubes of a test clip: the best of every attribute of its class. Words: its annotated attributes. `own`: only the
    words about their own tubes, as an answer has them.
    """
    table = explainer.table.to(judged["known"].device)
    ids = listed(table[judged["labels"]])
    fits, right, own = [], [], []
    for b in range(len(ids)):
        places = find_places(scores, [h[b : b + 1] for h in judged["maps"]], ids[b : b + 1], curve)
        tubes = scores.forms.boxes(max_subpath(places.volumes()).cells)[:, None]  # (1, 1, s, T, 4)
        told = places.fits(tubes)[0, 0]  # (tubes, words)
        iou = metrics.attribute_iou(tubes, judged["boxes"][b : b + 1])[0, 0]  # (tubes, S)
        known = judged["known"][b]
        exists = (box_areas(tubes[0, 0]).sum(-1) > 0) & (ids[b] >= 0)
        for place, word in enumerate(ids[b].tolist()):
            if word >= 0 and known[word] and not told[0, place].isnan():
                fits.append(told[exists, place])
                hit = (iou[:, word] > 0) & (iou[:, word] >= torch.where(known, iou, 0).amax(-1))
                right.append(hit[exists])
                own.append(torch.arange(len(ids[b]), device=hit.device)[exists] == place)
    fit, hit, mine = torch.cat(fits), torch.cat(right), torch.cat(own)
    said = mine & (fit >= SAID)
    return {
        "held-out training clips": [vars(row) for row in curve.reliability],
        "test clips": [vars(row) for row in reliability(fit, hit)],
        "test clips, own tubes": [vars(row) for row in reliability(fit[mine], hit[mine])],
        "said": round(float(said.sum() / mine.sum()), 4),
        "right when said": round(float(hit[said].double().mean()), 4),
        "right of all": round(float(hit[mine].double().mean()), 4),
    }


if __name__ == "__main__":
    main()
