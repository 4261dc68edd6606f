"""The paper's loss, eq. (8), of explainers on clips that they were not trained on, and what it can be compared with.

    python studies/objective_loss.py "paper=runs/paper/explainer.safetensors" ... --out FILE.json

Rates and lengths are chosen by it, on clips of "val". c_pos is drawn from p(c|x), as in training, and beside that the
predicted class is taken. All-zero weights have (C - 1) log 2. The floor is what attributes of classes allow, whatever
the clips show and with c_pos never drawn wrongly (docs/method.md).
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from whytube.cli.options import open_source
from whytube.errors import WhytubeError
from whytube.explainer.objective import class_term
from whytube.files import write_whole
from whytube.models import load_explainer, load_model
from whytube.versions import provenance

if TYPE_CHECKING:
    from whytube.data.source import Source
    from whytube.explainer.explainer import Explainer

BATCH = 4


def main() -> None:
    """Measure, print a table, write the JSON."""
    options = _options()
    try:
        classifier = load_model(options.model).classifier
        source = open_source(options.data, size=classifier.size, frames=classifier.frames, seed=0)
        pairs = [text.rpartition("=") for text in options.explainers]
        explainers = {name or path: load_explainer(path, classifier) for name, _, path in pairs}
        how = {"split": options.split, "count": options.count}
        losses = {name: loss_of(one, source, **how) for name, one in explainers.items()}
        predicted = {name: loss_of(one, source, **how, drawn=False) for name, one in explainers.items()}
    except WhytubeError as error:
        raise SystemExit(f"error: {error}") from error
    levels = {"all-zero weights": zero_level(len(source.classes)), "floor": floor(source.table)}
    for name, value in levels.items():
        print(f"{value:8.2f}  {name}")
    for name, value in losses.items():
        print(f"{value:8.2f}  {name}; of the predicted class {predicted[name]:.2f}")
    about = {"split": options.split, "clips": options.count, "model": Path(options.model).name}
    document = about | {"levels": levels, "losses": losses, "losses of the predicted class": predicted}
    document["provenance"] = provenance(torch.device("cpu"), seed=0)
    write_whole(options.out, json.dumps(document, indent=1) + "\n")


@torch.no_grad()
def loss_of(explainer: Explainer, source: Source, *, split: str, count: int, drawn: bool = True) -> float:
    """Eq. (8) on the first `count` clips of a split; drawn: c_pos from p(c|x), else the predicted class."""
    total, generator = 0.0, torch.Generator().manual_seed(0)
    for start in range(0, count, BATCH):
        batch = source.batch(split, range(start, min(start + BATCH, count)))
        logits, maps = explainer.classifier.features(batch.clips)
        lot = torch.multinomial(logits.softmax(1), 1, generator=generator)[:, 0]
        positive = lot if drawn else logits.argmax(1)
        term = class_term(explainer.scores, explainer.scores.normalise(maps), positive, batch.attributes)
        total += float(term) * len(batch.clips)
    return total / count


def zero_level(classes: int) -> float:
    """Return the loss of all-zero weights."""
    return (classes - 1) * math.log(2)


def floor(table: torch.Tensor) -> float:
    """Return what attributes of classes, table (C, S) bool, leave of that: those that classes share hold it up."""
    total, sizes = 0.0, table.sum(1).tolist()
    for a in range(len(table)):
        for b in range(a):
            one, other = 1 / sizes[a], 1 / sizes[b]
            share = one / (one + other)
            entropy = -share * math.log(share) - (1 - share) * math.log(1 - share)
            total += int((table[a] & table[b]).sum()) * (one + other) * entropy
    return total / len(table)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("explainers", nargs="+", help="FILE or NAME=FILE")
    parser.add_argument("--model", default="demo", help="the classifier that they explain")
    parser.add_argument("--data", default="world")
    parser.add_argument("--split", default="val")
    parser.add_argument("--count", type=int, default=48)
    parser.add_argument("--out", required=True, type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
