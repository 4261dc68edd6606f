"""Controls: what remains of a method's figures when its tube, or its word, is left to chance.

The paper's concept accuracy is what a random tube with a present word reaches, and a bigger region moves a classifier
more than a smaller one. So every method is to be read beside a random tube of its own areas, and its words beside
random and shuffled ones on its own tubes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from whytube.evaluation.methods.answers import as_regions, clip_chances, random_attributes
from whytube.evaluation.methods.baselines import SIDE
from whytube.evaluation.methods.maps import TUBES
from whytube.search.anytime import AREA
from whytube.search.tracks import random_tracks
from whytube.search.verify import Regions, best_regions, suited_attributes
from whytube.tubes import random_tube

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from whytube.classifiers.base import VideoClassifier
    from whytube.search.verify import Method, Question


class Remembered:
    """A method that answers the question it has just answered from memory, for controls that ask it again."""

    def __init__(self, method: Method) -> None:
        self.method, self.name = method, method.name
        self.last: tuple[Question, int, Regions] | None = None

    def __call__(self, question: Question, k: int) -> Regions:
        """Answer as the method does; fewer regions than it was asked for are the first of those."""
        if self.last is None or self.last[0] is not question or self.last[1] < k:
            self.last = question, k, self.method(question, k)
        found = self.last[2]
        if self.last[1] == k:
            return found
        ids, scores, fits = found.attribute_ids[:, :, :k], found.scores[:, :, :k], found.fits
        return replace(
            found,
            boxes=found.boxes[:, :, :k],
            attribute_ids=ids,
            scores=scores,
            fits=None if fits is None else fits[:, :, :k],
        )


@dataclass(frozen=True, eq=False)
class Called:
    """A method under another name, where two have the same."""

    method: Method
    name: str

    def __call__(self, question: Question, k: int) -> Regions:
        """Answer as the method does."""
        return self.method(question, k)


@dataclass(frozen=True, eq=False)
class RandomTube:
    """A box that drifts at random, with a random word of the positive class.

    table: (C, S) bool. like: a method whose boxes are matched in size, frame by frame; it is asked the same question.
    side: without `like`, of a square box in all frames, as a share of the frame's shorter side.
    """

    table: torch.Tensor
    like: Method | None = None
    side: float = SIDE
    seed: int = 0
    name: str = "random-tube"

    def __call__(self, question: Question, k: int) -> Regions:
        """Answer with k tubes of their own and k words, again from the first when they run out."""
        clips, shape = question.clips, (*question.negative.shape, k)
        chances = clip_chances(clips, self.name, self.seed)
        sides = self._sides(question, k)
        tubes = _drifting_tubes(question, sides, chances)
        present = self.table.to(clips.device)[question.positive][:, None].expand(*shape[:2], -1)
        drawn = random_attributes(chances, present, k)
        return as_regions(tubes, _in_turn(drawn, k), torch.from_numpy(sides.any((-1, -2))).to(clips.device))

    def _sides(self, question: Question, k: int) -> NDArray[np.float64]:
        """Height and width of the boxes, (B, N, k, T, 2); 0 where there is none."""
        frames, height, width = question.clips.shape[2:]
        if self.like is None:
            return np.full((*question.negative.shape, k, frames, 2), self.side * min(height, width))
        return _sides_of(self.like(question, k).boxes, question)


@dataclass(frozen=True, eq=False)
class RandomVerified:
    """The best of many random tubes, found as "ours" finds it: what verification alone is worth.

    classifier: asked again for every tube. table: (C, S) bool. tubes: how many are tried for a clip and negative class;
    the negatives of a clip share them. area: share of the clip's volume that a tube covers, at most.
    """

    classifier: VideoClassifier
    table: torch.Tensor
    tubes: int = TUBES
    area: float = AREA
    seed: int = 0
    name: str = "random-verified"

    def __call__(self, question: Question, k: int) -> Regions:
        """Answer with the k tubes of the largest value, each with a random word of A that B lacks."""
        chances = clip_chances(question.clips, self.name, self.seed)
        frames, height, width = question.clips.shape[2:]
        drawn = [
            random_tracks(rng, self.tubes, frames=frames, area=self.area).tubes((height, width)) for rng in chances
        ]
        shape = (*question.negative.shape, self.tubes)
        boxes = torch.from_numpy(np.stack(drawn)).to(question.clips.device)[:, None]
        every = torch.ones(shape, dtype=torch.bool, device=boxes.device)
        best = best_regions(self.classifier, question, boxes.expand(*shape, *boxes.shape[-2:]), every, k)
        words = random_attributes(chances, suited_attributes(self.table, question), k)
        return replace(best, attribute_ids=torch.where(best.scores > -torch.inf, _in_turn(words, k), -1))


@dataclass(frozen=True, eq=False)
class RandomAttribute:
    """Another method's tubes with random words: of all attributes, or of the positive class's where `present`."""

    like: Method
    table: torch.Tensor
    present: bool = False
    seed: int = 0
    name: str = "random-attribute"

    def __call__(self, question: Question, k: int) -> Regions:
        """Answer with the same tubes in the same order."""
        regions = self.like(question, k)
        row = self.table.to(question.clips.device)[question.positive]
        suited = row if self.present else torch.ones_like(row)
        chances = clip_chances(question.clips, self.name, self.seed)
        ids = random_attributes(chances, suited[:, None].expand(*question.negative.shape, -1), k)
        ids = torch.where(regions.scores > -torch.inf, ids, -1)
        return Regions(regions.boxes, ids, regions.scores, masked_clips=regions.masked_clips)


@dataclass(frozen=True, eq=False)
class ShuffledAttributes:
    """Another method's answers with every word exchanged for a fixed other one: its concept figures must fall.

    attributes: S, the number of words.
    """

    like: Method
    attributes: int
    seed: int = 0
    name: str = "shuffled-attributes"

    def __call__(self, question: Question, k: int) -> Regions:
        """Answer with the same tubes and exchanged words."""
        regions = self.like(question, k)
        other = self.exchange().to(regions.attribute_ids.device)
        ids = torch.where(regions.attribute_ids >= 0, other[regions.attribute_ids.clamp_min(0)], -1)
        return Regions(regions.boxes, ids, regions.scores, masked_clips=regions.masked_clips)

    def exchange(self) -> torch.Tensor:
        """Word -> the word said in its place, (S,): one round trip through all words, so that none stays."""
        order = torch.from_numpy(np.random.default_rng(self.seed).permutation(self.attributes))
        return torch.empty_like(order).scatter(0, order, order.roll(1))


def _in_turn(ids: torch.Tensor, k: int) -> torch.Tensor:
    """Repeat the ids of (B, N, k) from the first where they run out (-1)."""
    turn = torch.arange(k, device=ids.device) % (ids >= 0).sum(-1, keepdim=True).clamp_min(1)
    return ids.gather(-1, turn)


def _sides_of(boxes: torch.Tensor, question: Question) -> NDArray[np.float64]:
    """Height and width of boxes (..., 4) inside the frame: (..., 2); 0 where there is none."""
    height, width = question.clips.shape[-2:]
    inside = boxes.double().cpu().numpy().clip(0, [width, height, width, height])
    sides: NDArray[np.float64] = (inside[..., 2:] - inside[..., :2])[..., ::-1]
    return np.where((sides > 0).all(-1, keepdims=True), sides, 0)


def _drifting_tubes(
    question: Question, sides: NDArray[np.float64], chances: Sequence[np.random.Generator]
) -> torch.Tensor:
    """Tubes of the given heights and widths (B, N, k, T, 2), drifting by the chances of their clip: (B, N, k, T, 4)."""
    frame = (question.clips.shape[-2], question.clips.shape[-1])
    boxes = np.stack([_drifting(sides[place], frame, chances[place[0]]) for place in np.ndindex(sides.shape[:3])])
    return torch.from_numpy(boxes.reshape(*sides.shape[:4], 4)).to(question.clips.device)


def _drifting(sides: NDArray[np.float64], frame: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float64]:
    """Boxes (T, 4) of the given heights and widths (T, 2), drifting inside the frame; zeros where they are 0."""
    there = np.flatnonzero(sides.all(-1))
    return random_tube(frame, sides[there], there, rng=rng).at(np.arange(len(sides)))
