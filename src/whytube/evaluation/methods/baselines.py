"""The paper's baselines (section 4.2), the centre of every frame and the detector's box; and the true answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from whytube.data.source import ACTOR
from whytube.errors import ArgumentError
from whytube.evaluation.methods.answers import as_regions, clip_chances, random_words
from whytube.evaluation.metrics import annotated_boxes, separating_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whytube.search.question import Question, Regions

SIDE = 32 / 112
"""Of the centre box, as a share of the frame's shorter side: the paper's 32 x 32 of 112 x 112."""


@dataclass(frozen=True, eq=False)
class Centre:
    """The middle of every frame with a random word: the paper's baseline on Olympic Sports.

    attribute_names: the S words, of which only the number matters here.
    """

    attribute_names: Sequence[str]
    side: float = SIDE
    seed: int = 0
    name: str = "centre"

    def __call__(self, question: Question, k: int) -> Regions:
        """Answer all negatives with the same tube and k words."""
        clips, negatives = question.clips, question.negative.shape[1]
        tube = _centre_box(clips.shape[-2:], self.side).to(clips.device)
        every = torch.ones(len(clips), negatives, len(self.attribute_names), dtype=torch.bool, device=clips.device)
        words = random_words(clip_chances(clips, self.name, self.seed), every, k)
        return as_regions(tube.expand(*words.shape, clips.shape[2], 4), words, words >= 0)


@dataclass(frozen=True, eq=False)
class DetectorBox:
    """A true box of the clip, whatever the question, with a random word: the paper's baseline on UCF101-24.

    It is the actor's where the clip has one, else that of any attribute.
    """

    attribute_names: Sequence[str]
    seed: int = 0
    name: str = "detector-box"

    def __call__(self, question: Question, k: int) -> Regions:
        """Answer all negatives of a clip with the actor's box, or with boxes of its entities in random order."""
        boxes, known = _known_boxes(question, self.attribute_names)
        actor, acted = _known_boxes(question, (ACTOR,))
        chances = clip_chances(question.clips, self.name, self.seed)
        chosen = random_words(chances, known[:, None], k).expand(-1, question.negative.shape[1], -1)
        every = torch.ones(*question.negative.shape, len(self.attribute_names), dtype=torch.bool, device=known.device)
        words = random_words(chances, every, k)
        tubes = torch.where(acted[:, :, None, None, None], actor[:, :, None], _of_words(boxes, chosen))
        only_one = torch.arange(k, device=known.device) == 0
        return as_regions(tubes, words, torch.where(acted[:, :, None], only_one, chosen >= 0))


@dataclass(frozen=True, eq=False)
class TrueBox:
    """The box and the word of an attribute that A has and B lacks: what a perfect answer looks like.

    Where no such attribute is annotated in the clip (B has more than A, or A was predicted wrongly) there is no answer.
    table: (C, S) bool.
    """

    attribute_names: Sequence[str]
    table: torch.Tensor
    seed: int = 0
    name: str = "true-box"

    def __call__(self, question: Question, k: int) -> Regions:
        """Answer with the separating attributes in random order."""
        boxes, known = _known_boxes(question, self.attribute_names)
        apart = separating_words(self.table.to(known.device), question.positive, question.negative)
        words = random_words(clip_chances(question.clips, self.name, self.seed), apart & known[:, None], k)
        return as_regions(_of_words(boxes, words), words, words >= 0)


def _centre_box(size: Sequence[int], side: float) -> torch.Tensor:
    height, width = size
    half = side * min(height, width) / 2
    return torch.tensor([width / 2 - half, height / 2 - half, width / 2 + half, height / 2 + half])


def _known_boxes(question: Question, attributes: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
    if question.boxes is None:
        raise ArgumentError("these clips have no annotated boxes: leave out the methods that look at them")
    boxes, known = annotated_boxes(question.boxes, attributes, frames=question.clips.shape[2])
    return boxes.to(question.clips.device), known.to(question.clips.device)


def _of_words(boxes: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """Boxes (B, S, T, 4) of words (B, N, k): (B, N, k, T, 4); any where the word is -1."""
    clip = torch.arange(len(boxes), device=boxes.device)[:, None, None]
    return boxes[clip, words.clamp_min(0)]
