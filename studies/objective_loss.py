"""The paper's loss, eq. (8), of explainers on clips that they were not trained on, and what it can be compared with.

    python studies/objective_loss.py "paper=runs/paper/explainer.safetensors" ... --out FILE.json

Rates and lengths are chosen by it, on clips of "val". c_pos is drawn from p(c|x), as in training, and beside that the
predicted class is taken. All-zero weights have (C - 1) log 2. The floor is what attributes of classes allow, whatever
the clips show (docs/method.md): for a classifier that is certain, and for this one.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from whytube.cli.options import open_source
from whytube.errors import WhytubeError
from whytube.explainer.objective import class_term
from whytube.files import write_whole
from whytube.models import find_device, load_explainer, load_model
from whytube.versions import provenance

if TYPE_CHECKING:
    from whytube.data.source import ClipBatch, Source
    from whytube.explainer.explainer import Explainer

BATCH = 4


def main() -> None:
    """Measure, print a table, write the JSON."""
    options = _options()
    try:
        device = find_device(options.device)
        classifier = load_model(options.model, device=device).classifier
        source = _Read(open_source(options.data, size=classifier.size, frames=classifier.frames, seed=0), device)
        pairs = [text.rpartition("=") for text in options.explainers]
        explainers = {name or path: load_explainer(path, classifier).to(device) for name, _, path in pairs}
        how = {"split": options.split, "count": options.count}
        losses = {name: loss_of(one, source, **how) for name, one in explainers.items()}
        predicted = {name: loss_of(one, source, **how, drawn=False) for name, one in explainers.items()}
    except WhytubeError as error:
        raise SystemExit(f"error: {error}") from error
    sure = certainty(explainers[next(iter(explainers))], source, **how)
    levels = {"all-zero weights": zero_level(len(source.classes)), "floor": floor(source.table)}
    levels |= {"certainty of the classifier": sure, "floor with that": floor(source.table, sure)}
    for name, value in levels.items():
        print(f"{value:8.2f}  {name}")
    for name, value in losses.items():
        print(f"{value:8.2f}  {name}; of the predicted class {predicted[name]:.2f}")
    about = {"split": options.split, "clips": options.count, "model": Path(options.model).name}
    document = about | {"levels": levels, "losses": losses, "losses of the predicted class": predicted}
    document["provenance"] = provenance(device, seed=0)
    write_whole(options.out, json.dumps(document, indent=1) + "\n")


class _Read:
    """A source whose batches are read once, onto a device: every explainer sees the same ones."""

    def __init__(self, source: Source, device: torch.device) -> None:
        self.classes, self.table = source.classes, source.table
        self._read = functools.cache(lambda split, indices: source.batch(split, indices, device))

    def batch(self, split: str, indices: range) -> ClipBatch:
        return self._read(split, indices)


@torch.no_grad()
def loss_of(explainer: Explainer, source: Source | _Read, *, split: str, count: int, drawn: bool = True) -> float:
    """Eq. (8) on the first `count` clips of a split; drawn: c_pos from p(c|x), else the predicted class."""
    total, generator = 0.0, torch.Generator().manual_seed(0)
    for start in range(0, count, BATCH):
        batch = source.batch(split, range(start, min(start + BATCH, count)))
        logits, maps = explainer.classifier.features(batch.clips)
        lot = torch.multinomial(logits.softmax(1).cpu(), 1, generator=generator)[:, 0]
        positive = lot.to(logits.device) if drawn else logits.argmax(1)
        term = class_term(explainer.scores, explainer.scores.normalise(maps), positive, batch.attributes)
        total += float(term) * len(batch.clips)
    return total / count


@torch.no_grad()
def certainty(explainer: Explainer, source: Source | _Read, *, split: str, count: int) -> float:
    """Return the mean probability that the classifier gives to its own answer."""
    batches = [source.batch(split, range(at, min(at + BATCH, count))) for at in range(0, count, BATCH)]
    return float(torch.cat([explainer.classifier(batch.clips).softmax(1).amax(1) for batch in batches]).mean())


def zero_level(classes: int) -> float:
    """Return the loss of all-zero weights."""
    return (classes - 1) * math.log(2)


def floor(table: torch.Tensor, certainty: float = 1.0) -> float:
    """Return what attributes of classes, table (C, S) bool, leave of that, whatever the clips show.

    certainty: of the classifier, p(c|x) of the right class; the other classes share the rest, and are drawn as c_pos
    with attributes of a class that is not theirs.
    """
    count = len(table)
    share = table.double() / table.sum(1, keepdim=True)  # of an attribute in the mean over S(x)
    drawn = torch.full((count, count), (1 - certainty) / (count - 1), dtype=torch.float64).fill_diagonal_(certainty)
    weight = drawn.T @ share / count  # (C, S): how often a class is c_pos with an attribute
    one, other = weight[:, None], weight[None]  # of a against b, and of b against a
    both = one + other
    entropy = -torch.special.xlogy(one, one / both) - torch.special.xlogy(other, other / both)
    return float(entropy.nan_to_num(0).sum()) / 2 - float(entropy.diagonal().nan_to_num(0).sum()) / 2


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("explainers", nargs="+", help="FILE or NAME=FILE")
    parser.add_argument("--model", default="demo", help="the classifier that they explain")
    parser.add_argument("--data", default="world")
    parser.add_argument("--split", default="val")
    parser.add_argument("--count", type=int, default=48)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", required=True, type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
