"""The contrastive Grad-CAM tube: where the last map speaks for A rather than B, followed through time.

It needs no training, and is the peer to beat.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from whytube.evaluation.methods.answers import as_regions, clip_chances, random_attributes
from whytube.evaluation.methods.baselines import SIDE
from whytube.search.grad_cam import BACKGROUND, GRID, box_tubes, contrastive_maps
from whytube.search.verify import separating_attributes

if TYPE_CHECKING:
    from whytube.classifiers.base import VideoClassifier
    from whytube.search.verify import Question, Regions


@dataclass(frozen=True, eq=False)
class GradCam:
    """A square box through the contrastive Grad-CAM map.

    Attributes:
        classifier: whose map is asked.
        table: (C, S) bool. Grad-CAM has no words of its own: it says one that A has and B lacks, or else one that A
            has, drawn at random; without a table none.
        side: of the box, as a share of the frame's shorter side.
        grid, background: as for `box_tubes`.
    """

    classifier: VideoClassifier
    table: torch.Tensor | None = None
    side: float = SIDE
    grid: int = GRID
    background: float = BACKGROUND
    seed: int = 0
    name: str = "grad-cam"

    def __call__(self, question: Question, k: int) -> Regions:
        """Answer with k tubes that keep apart by half a box at least."""
        frames, height, width = question.clips.shape[2:]
        maps = contrastive_maps(self.classifier, question.clips, question.positive, question.negative)
        side = self.side * min(height, width)
        boxes, value = box_tubes(
            maps, (side, side), k, frames=frames, size=(height, width), grid=self.grid, background=self.background
        )
        return as_regions(boxes, self._attributes(question, k), value > -torch.inf, value)

    def _attributes(self, question: Question, k: int) -> torch.Tensor:
        if self.table is None:
            return torch.full((*question.negative.shape, k), -1, device=question.clips.device)
        table = self.table.to(question.clips.device)
        apart = separating_attributes(table, question.positive, question.negative)
        suited = table[question.positive][:, None].long() + apart.long()  # first those that B lacks
        return random_attributes(clip_chances(question.clips, self.name, self.seed), suited, k)
