"""A method of your own in whytube's table, judged as every other one: see docs/benchmark.md.

    whytube evaluate --count 12 --peers centre,random-tube --method examples/my_method.py:Grid

It cuts the frame into a grid, masks each cell in turn over the whole clip, and answers with the cell whose masking
raises B most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from whytube.search.masked import masked_logits
from whytube.search.score import log_odds
from whytube.search.verify import top_regions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whytube.classifiers.base import VideoClassifier
    from whytube.search.verify import Question, Regions


class Grid:
    """Tries every cell of a grid; says no words."""

    name = "grid"

    def __init__(self, classifier: VideoClassifier, attribute_names: Sequence[str], table: torch.Tensor) -> None:
        """Take what every method is given.

        attribute_names: the S words, and table: (C, S) bool, which class has which; for methods that say words.
        """
        self.classifier, self.attribute_names, self.table = classifier, attribute_names, table
        self.cells = 4  # to a side

    def __call__(self, question: Question, k: int) -> Regions:
        """Answer with the k best cells for every clip and negative class."""
        count, negatives = question.negative.shape
        frames, height, width = question.clips.shape[2:]
        sides = torch.tensor([width, height], device=question.clips.device) / self.cells
        corner = torch.cartesian_prod(*[torch.arange(self.cells, device=question.clips.device)] * 2) * sides
        tubes = torch.cat([corner, corner + sides], dim=1)  # (M, 4): x1, y1, x2, y2 in pixels of the clip
        boxes = tubes[None, :, None].expand(count, -1, frames, 4)  # (B, M, T, 4)
        every = torch.ones(boxes.shape[:2], dtype=torch.bool, device=boxes.device)
        after = masked_logits(self.classifier, question, boxes, every, fill="zero")  # (B, M, C)
        rise = log_odds(after, question.negative[:, None]).transpose(1, 2)  # (B, N, M)
        no_word = torch.full(rise.shape, -1, device=rise.device)
        return top_regions(boxes[:, None].expand(-1, negatives, -1, -1, -1), no_word, rise, k)
