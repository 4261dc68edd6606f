"""The paper's baselines (section 4.2), the centre of every frame and the detector's box; and the true answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from whytube.evaluation.methods.answers import as_regions, clip_chances, random_attributes
from whytube.search.verify import separating_attributes
from whytube.tubes import box_areas

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whytube.evaluation.judge import Truth
    from whytube.search.verify import Question, Regions

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
        ids = random_attributes(clip_chances(clips, self.name, self.seed), every, k)
        return as_regions(tube.expand(*ids.shape, clips.shape[2], 4), ids, ids >= 0)


@dataclass(frozen=True, eq=False)
class DetectorBox:
    """A true box of the clip, whatever the question, with a random attribute: the paper's baseline on UCF101-24.

    It is the actor's where the clip has one, else that of any attribute.
    """

    seed: int = 0
    name: str = "detector-box"

    def with_truth(self, question: Question, truth: Truth, k: int) -> Regions:
        """Answer all negatives of a clip with the actor's box, or with boxes of its entities in random order."""
        acted = (box_areas(truth.actors) > 0).any(-1)[:, None, None]
        chances = clip_chances(question.clips, self.name, self.seed)
        chosen = random_attributes(chances, truth.known[:, None], k).expand(-1, question.negative.shape[1], -1)
        every = torch.ones_like(truth.known)[:, None].expand(*question.negative.shape, -1)
        ids = random_attributes(chances, every, k)
        tubes = torch.where(acted[..., None, None], truth.actors[:, None, None], _boxes_of(truth, chosen))
        only_one = torch.arange(k, device=ids.device) == 0
        return as_regions(tubes, ids, torch.where(acted, only_one, chosen >= 0))


@dataclass(frozen=True, eq=False)
class TrueBox:
    """The box and the name of an attribute that A has and B lacks: what a perfect answer looks like.

    Where no such attribute is annotated in the clip (B has more than A, or A was predicted wrongly) there is no answer.
    """

    seed: int = 0
    name: str = "true-box"

    def with_truth(self, question: Question, truth: Truth, k: int) -> Regions:
        """Answer with the separating attributes in random order."""
        apart = separating_attributes(truth.table, question.positive, question.negative)
        ids = random_attributes(clip_chances(question.clips, self.name, self.seed), apart & truth.known[:, None], k)
        return as_regions(_boxes_of(truth, ids), ids, ids >= 0)


def _centre_box(size: Sequence[int], side: float) -> torch.Tensor:
    height, width = size
    half = side * min(height, width) / 2
    return torch.tensor([width / 2 - half, height / 2 - half, width / 2 + half, height / 2 + half])


def _boxes_of(truth: Truth, ids: torch.Tensor) -> torch.Tensor:
    """Return the true boxes of attributes (B, N, k): (B, N, k, T, 4); any where the id is -1."""
    clip = torch.arange(len(ids), device=ids.device)[:, None, None]
    return truth.boxes[clip, ids.clamp_min(0)]
