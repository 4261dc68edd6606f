"""How far words can be trusted about short tubes: what their fits say and how often they are right, by length.

    python studies/lengths.py --data DATA [--model jhmdb-i3d] [--out results/words-lengths-jhmdb.json]
    python studies/lengths.py --set 0.75 --model FILE.safetensors

DATA is J-HMDB as `whytube data import jhmdb` writes it, split 1, or "world". Judged are the test clips with boxes whose
class is right, about each of the three most probable negatives. Tubes are such as the search proposes: the best ones of
words, what becomes of them when they are changed once, twice and three times, and random ones. The word of a tube is
the one that fits it best. No clip is masked, so whether tubes matter plays no part.

--set writes `lasting` (see FitCurve) into the file of an explainer. It was chosen on one half of J-HMDB's clips, by a
hash of their names; `other half` is the rest.
"""

from __future__ import annotations

import argparse
import json
import zlib
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from whytube import read_dataset
from whytube.cli.options import open_source
from whytube.data.source import boxed_indices
from whytube.documents import build
from whytube.evaluation import metrics
from whytube.evaluation.suite import truth_of
from whytube.explainer.explainer import Explainer
from whytube.explainer.fit import SAID, FitCurve
from whytube.models import load_model
from whytube.models.stored import load_tensors, save_tensors
from whytube.search.anytime import AREA
from whytube.search.tracks import changed, joined, random_tracks, tracks_of
from whytube.search.verify import ask
from whytube.tubes import box_areas
from whytube.versions import provenance

if TYPE_CHECKING:
    from whytube.evaluation.judge import Truth
    from whytube.search.verify import Question

ROUNDS, KEPT, RANDOM = 3, 40, 60
"""Times that tubes are changed, how many at most of each time, and random tubes."""
ORIGINS = ("tubes of words", "changed once", "changed twice", "changed three times", "random")
PARTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Limits of the share of the clip that tubes last."""


def main() -> None:
    """Measure, print, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--model", default="jhmdb-i3d")
    parser.add_argument("--count", type=int, default=16, help="test clips of the world")
    parser.add_argument("--set", type=float, metavar="SHARE", help="write this into an explainer's file, and no more")
    parser.add_argument("--out", type=Path, default=Path("results/words-lengths-jhmdb.json"))
    options = parser.parse_args()
    if options.set is not None:
        _write(options.model, options.set)
        return
    if options.data is None:
        parser.error("--data is needed")
    explainer = load_model(options.model, device="cpu")
    if not isinstance(explainer, Explainer) or explainer.fit is None:
        raise SystemExit(f"{options.model} has no fits: give a model whose explainer was trained with boxes")
    classifier = explainer.classifier
    source = open_source(options.data, size=classifier.size, frames=classifier.frames, seed=0)
    boxed = boxed_indices(source, "test")
    names = {
        index: f"{path.parent.name}/{path.stem}"
        for index, path in enumerate(
            [] if boxed is None else [i.path for i in read_dataset(options.data).items("test")]
        )
    }
    halves: dict[str, list[torch.Tensor]] = {"half it was chosen on": [], "other half": []}
    for index in range(options.count) if boxed is None else boxed:
        batch = source.batch("test", [index], "cpu")
        question, truth = ask(classifier, batch.clips, negatives=3), truth_of(source, batch)
        if torch.equal(question.positive, truth.labels):
            half = list(halves)[zlib.crc32(names.get(index, str(index)).encode()) % 2]
            halves[half].append(_cases(explainer, question, truth, seed=index))
    told = {
        name: {"clips": len(cases), **_summed_up(torch.cat(cases))}
        for name, cases in {**halves, "all": [case for cases in halves.values() for case in cases]}.items()
        if cases
    }
    origin = provenance(torch.device("cpu"), seed=0) | {"data": Path(options.data).name, "model": options.model}
    text = json.dumps({"halves": told, "lasting": explainer.fit.lasting, "provenance": origin}, indent=1)
    print(text)
    options.out.write_text(text + "\n")


def _write(path: str, share: float) -> None:
    """Write `lasting` into the file of an explainer; all else stays."""
    tensors, header = load_tensors(path, kind="explainer")
    fit = build(FitCurve, header["fit"] | {"lasting": share}, "fit")  # checked
    save_tensors(path, tensors, {**header, "fit": asdict(fit)}, kind="explainer")


@torch.no_grad()
def _cases(explainer: Explainer, question: Question, truth: Truth, *, seed: int) -> torch.Tensor:
    """Return (n, 7): fit by the curve alone, fit, whether right, whether among three, share of the clip, drawn, origin.

    Drawn: whether the tube is there on any frame with a drawn box; if not, it counts as wrong. Origin: see ORIGINS.
    """
    assert explainer.fit is not None
    places = replace(explainer.places(question), curve=replace(explainer.fit, lasting=0.0))
    suited = explainer._suited(places, question)
    given, there = explainer.word_tubes(places, question)
    frames, height, width = question.clips.shape[2:]
    drawn = (box_areas(truth.boxes) > 0).any(1)[0]
    found = []
    for n in range(question.negative.shape[1]):
        rng = np.random.default_rng([seed, n])
        parts = [tracks_of(given[0, n][there[0, n]].float().numpy(), (height, width)).within(AREA)]
        for _ in range(ROUNDS):
            twice = np.repeat(np.arange(len(parts[-1])), 2)
            parts.append(changed(parts[-1][twice[:KEPT]], rng, area=AREA))
        parts.append(random_tracks(rng, RANDOM, frames=frames, area=AREA))
        boxes = torch.from_numpy(joined(parts).tubes((height, width)))[None, None]
        exists = box_areas(boxes[0, 0]) > 0
        fits = torch.where(suited[0, n] & places.known[0], places.fits(boxes)[0, 0], 0)
        alone, word = fits.max(-1)
        share = exists.double().mean(-1)
        ids = places.attribute_ids[0, word][None, None]
        iou = metrics.attribute_iou(boxes.double(), truth.boxes)
        right, three = (metrics.tied_hits(iou, truth.known, ids, top=top)[0, 0] for top in (1, 3))
        fit = alone * explainer.fit.part(share)
        origin = torch.cat([torch.full((len(part),), float(place)) for place, part in enumerate(parts)])
        found.append(torch.stack([alone, fit, right, three, share, (exists & drawn).any(-1), origin], 1).double())
    return torch.cat(found)


def _summed_up(cases: torch.Tensor) -> dict[str, Any]:
    """Words that the curve alone would say, by length; all that are said, by the curve, by the fit, by origin."""
    alone, fit, right, three, share, drawn, origin = cases.unbind(1)
    rows = []
    for low, high in pairwise(PARTS):
        inside = (alone >= SAID) & (share >= low) & ((share < high) | (high == PARTS[-1]))
        kept = {"curve alone": alone, "fit": fit, "right": right, "among three": three, "drawn": drawn}
        seen = _means({"right": right, "among three": three}, inside & (drawn > 0))
        row = {"lasts": [low, high], "count": int(inside.sum()), **_means(kept, inside), "where drawn": seen}
        rows.append(row)
    said = {
        name: {"said": _rounded((values >= SAID).double()), **_means({"fit": values, **hits}, values >= SAID)}
        for hits in [{"right": right, "among three": three}]
        for name, values in (("curve alone", alone), ("fit", fit))
    }
    origins = {
        name: {"count": int(own.sum()), **_means({"fit": fit, "right": right, "among three": three}, own)}
        for place, name in enumerate(ORIGINS)
        for own in [(fit >= SAID) & (origin == place)]
    }
    return {"by length": rows, "said": said, "said, by origin": origins}


def _means(values: dict[str, torch.Tensor], rows: torch.Tensor) -> dict[str, float | None]:
    return {name: _rounded(value[rows]) for name, value in values.items()}


def _rounded(values: torch.Tensor) -> float | None:
    return round(float(values.mean()), 4) if len(values) else None


if __name__ == "__main__":
    main()
