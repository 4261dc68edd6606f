"""Teach an explainer where words are, and new words, from a few boxes; the classifier stays as it is.

Only the weights of words with a box in the data change. Every word is first learnt from four fifths of the clips with
boxes and judged on the rest, before and after. A word that the explainer knew keeps what it had where that is better.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from whytube.checks import check_int, unknown_name
from whytube.data.source import BoxedBatch, boxed_indices, boxes_of
from whytube.errors import DataError
from whytube.explainer.places import place_boxes, place_iou
from whytube.explainer.scores import Scores
from whytube.training.calibration import FOLDS, calibrate
from whytube.training.places import drawn_clips, drawn_steps, fit_places
from whytube.tubes import region_iou

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from whytube.data.source import Source
    from whytube.explainer.explainer import Explainer
    from whytube.explainer.fit import FitCurve
    from whytube.training.places import DrawnSteps

STEPS, LR = 400, 0.005
ENOUGH = 3
"""Clips with a box of a word from which on its fit is told."""


@dataclass(frozen=True)
class Placed:
    """How well words were placed on `boxes` drawn boxes that were held out.

    iou: of the box that the word points to with the drawn one, the mean. pointing: how often its middle lies in the
    drawn one. right: how often no other box of the frame is overlapped more than the word's own.
    """

    iou: float
    pointing: float
    right: float
    boxes: int


@dataclass(frozen=True)
class TaughtWord:
    """What became of a word.

    new: whether the explainer did not know it. clips: with a box of it. before, after: on held-out boxes, None where
    too few were drawn; before, a new word has looked at nothing. kept: whether what it knew before was kept, as better.
    """

    word: str
    new: bool
    clips: int
    before: Placed | None
    after: Placed | None
    kept: bool


@dataclass(frozen=True, eq=False)
class Taught:
    """An explainer that was taught, and how well its words are placed: each, and all boxes together."""

    explainer: Explainer
    words: tuple[TaughtWord, ...]
    before: Placed | None
    after: Placed | None

    @property
    def placed(self) -> dict[str, Placed | None]:
        """Before and after, by name."""
        return {"before": self.before, "after": self.after}

    @property
    def sentence(self) -> str:
        """What came of it, for people."""
        names = ", ".join(f'"{word.word}"' for word in self.words if not word.kept) or "nothing new"
        if self.before is None or self.after is None:
            return f"learnt {names}; boxes of two clips at least are needed to tell how well"
        before, after = (f"{100 * placed.pointing:.0f} %" for placed in (self.before, self.after))
        return f"learnt {names}; of {self.after.boxes} boxes held out, words point into {after} (before: {before})"


def teach(
    explainer: Explainer,
    source: Source,
    *,
    steps: int = STEPS,
    lr: float = LR,
    seed: int = 0,
    on_step: Callable[[int, int], None] | None = None,
) -> Taught:
    """Teach words by the boxes of a source's "train" clips; returns a new explainer, and leaves the given one as it is.

    source: its classes are among the classifier's. Its attributes may be new words; its table says which of its classes
        has which of them, and replaces what the explainer's table says of the same.
    steps, lr: of learning places, see `fit_places`. on_step: called with (done, total) after each of the few parts of
        the work; what it raises stops it.
    """
    check_int(steps, "steps", 1)
    wide = _Widened(explainer, source)
    clips = drawn_clips(wide)
    if not clips:
        raise DataError('there is no box to learn from: draw one of an attribute in a "train" clip')
    scores, device = _widened_scores(explainer, wide), explainer.device
    drawn = drawn_steps(explainer.classifier, wide, scores, clips, device)
    folds = min(FOLDS, len(clips))
    total = folds + 1 if folds > 1 else 1

    def learnt(part: DrawnSteps, done: int) -> Scores:
        own = copy.deepcopy(scores)
        fit_places(own, part, steps=steps, lr=lr, seed=seed)
        if on_step is not None:
            on_step(done, total)
        return own

    cases = []
    for fold in range(folds if folds > 1 else 0):
        held = drawn.clip % folds == fold
        own = learnt(drawn.part(~held), fold + 1)
        seen = torch.unique(drawn.attribute_ids[~held])
        cases.append(_judged(scores, own, drawn.part(held), seen))
    judged = torch.cat(cases) if cases else torch.zeros(0, 7, device=device)
    after = learnt(drawn, total)
    words = _words(wide, explainer, judged, drawn.clips_per_attribute)
    kept = [place for place, word in words if word.kept]
    _restore(after, scores, kept)
    same = torch.isin(judged[:, 0], judged.new_tensor(kept))
    judged[same, 4:] = judged[same, 1:4]
    fit = _fit(explainer, scores, drawn, words, steps=steps, lr=lr, seed=seed)
    taught = replace(explainer, scores=after.eval(), attribute_names=wide.attribute_names, table=wide.table, fit=fit)
    return Taught(taught, tuple(word for _, word in words), _placed(judged, 1), _placed(judged, 4))


class _Widened:
    """A source with the classifier's classes, and all words of an explainer before its own new ones."""

    def __init__(self, explainer: Explainer, source: Source) -> None:
        self.source, self.classes = source, explainer.classes
        known = {name: place for place, name in enumerate(self.classes)}
        for name in source.classes:
            if name not in known:
                raise unknown_name("class", name, known)
        self.labels = torch.tensor([known[name] for name in source.classes])
        names = (*explainer.attribute_names, *source.attribute_names)
        self.attribute_names = tuple(dict.fromkeys(names))
        self.columns = torch.tensor([self.attribute_names.index(name) for name in source.attribute_names])
        more = len(self.attribute_names) - explainer.table.shape[1]
        self.table = torch.nn.functional.pad(explainer.table.cpu(), (0, more))
        self.table[self.labels[:, None], self.columns] = source.table.cpu()

    def count(self, split: str) -> int | None:
        return self.source.count(split)

    def boxed(self, split: str) -> Sequence[int] | None:
        return boxed_indices(self.source, split)

    def batch(self, split: str, indices: Sequence[int], device: torch.device | str = "cpu") -> BoxedBatch:
        batch: Any = self.source.batch(split, indices, device)
        labels = self.labels.to(batch.labels.device)[batch.labels]
        attributes = self.table.to(labels.device)[labels]
        attributes[:, self.columns.to(labels.device)] = batch.attributes
        return BoxedBatch(batch.clips, labels, attributes, boxes_of(batch))


def _widened_scores(explainer: Explainer, wide: _Widened) -> Scores:
    """Return a copy of the scores with room for new words, whose weights are zero: they are everywhere alike."""
    old = explainer.scores
    bias, count = old.class_bias is not None, len(old.attribute_bias)
    new = Scores(len(wide.classes), len(wide.attribute_names), old.channels, old.forms, class_bias=bias)
    new.to(explainer.device)
    with torch.no_grad():
        for name, tensor in new.state_dict().items():
            if name.startswith("attribute_"):
                tensor.zero_()[:count] = old.state_dict()[name]
            elif name == "class_bias":
                tensor.zero_()[:, :count] = old.state_dict()[name]
            else:
                tensor.copy_(old.state_dict()[name])
    return new


def _restore(scores: Scores, old: Scores, places: Sequence[int]) -> None:
    """Give some words their old weights back."""
    with torch.no_grad():
        for weights, before in zip(scores.attribute_weights, old.attribute_weights, strict=True):
            weights[list(places)] = before[list(places)]


@torch.no_grad()
def _judged(before: Scores, after: Scores, held: DrawnSteps, seen: torch.Tensor) -> torch.Tensor:
    """Judge held-out boxes of words that were `seen` in training: rows of word, then iou, pointing, right twice."""
    asked = (held.attribute_ids >= 0) & torch.isin(held.attribute_ids, seen)
    figures = [_pointed(scores, held)[asked] for scores in (before, after)]
    return torch.cat([held.attribute_ids[asked][:, None].to(figures[0]), *figures], 1)


def _pointed(scores: Scores, held: DrawnSteps) -> torch.Tensor:
    """IoU, pointing and being right of the place that each word takes for the best: (R, s, 3)."""
    own = place_boxes(scores.forms).to(held.boxes)
    chances = scores.step_volumes(held.rows, held.attribute_ids).flatten(2).softmax(-1)  # (R, s, P)
    best = own[(chances @ place_iou(scores.forms, own, own)).argmax(-1)]  # (R, s, 4)
    every = region_iou(best[:, :, None, None], held.boxes[:, None, :, None])  # (R, s, s): with the box of each word
    every = torch.where((held.attribute_ids >= 0)[:, None], every, 0)
    iou = every.diagonal(dim1=1, dim2=2)
    middle = (best[..., :2] + best[..., 2:]) / 2
    inside = ((middle >= held.boxes[..., :2]) & (middle < held.boxes[..., 2:])).all(-1)
    right = (iou > 0) & (iou >= every.amax(-1))
    return torch.stack([iou, inside.to(iou), right.to(iou)], -1)


def _placed(judged: torch.Tensor, column: int) -> Placed | None:
    """Sum up rows of `_judged`: before from column 1, after from column 4."""
    if not len(judged):
        return None
    iou, pointing, right = judged[:, column : column + 3].double().mean(0).tolist()
    return Placed(round(iou, 4), round(pointing, 4), round(right, 4), len(judged))


def _words(
    wide: _Widened, explainer: Explainer, judged: torch.Tensor, clips: Sequence[int]
) -> list[tuple[int, TaughtWord]]:
    """Say what became of every word with a box, with its place among all."""
    found = []
    for place, count in enumerate(clips):
        if not count:
            continue
        rows = judged[judged[:, 0] == place]
        new, before, after = place >= len(explainer.attribute_names), _placed(rows, 1), _placed(rows, 4)
        kept = not new and (before is None or after is None or after.iou < before.iou)
        found.append((place, TaughtWord(wide.attribute_names[place], new, count, before, after, kept)))
    return found


def _fit(
    explainer: Explainer,
    scores: Scores,
    drawn: DrawnSteps,
    words: Sequence[tuple[int, TaughtWord]],
    *,
    steps: int,
    lr: float,
    seed: int,
) -> FitCurve | None:
    """Return the curve of fits: the explainer's own, which knows more clips, or one of these clips.

    A word that was learnt anew has no level: the old one said how hard it was to find before.
    """
    if explainer.fit is None:
        return calibrate(scores, drawn, steps=steps, lr=lr, seed=seed)
    count = len(scores.attribute_bias)
    boxes = [*explainer.fit.boxes, *[0] * (count - len(explainer.fit.boxes))]
    levels = [*explainer.fit.levels, *[0.0] * (count - len(explainer.fit.levels))]
    for place, word in words:
        if not word.kept:
            levels[place] = 0.0
            boxes[place] += word.clips if word.clips >= ENOUGH else 0
    return replace(explainer.fit, boxes=tuple(boxes), levels=tuple(levels) if explainer.fit.levels else ())
