"""Maps as methods: whatever says *where*, turned into tubes of equal area by the layer, one shot or verified.

A map maker says where a clip speaks for A rather than B. All makers get the same treatment: the same boxes, the same
search, the same area, the same words by lot and, where verified, the same number of tubes and the same score as ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from whytube.evaluation.methods.answers import random_words
from whytube.evaluation.runs import BACKWARD
from whytube.search.anytime import AREA, EFFORTS
from whytube.search.grad_cam import STRETCH, box_tubes
from whytube.search.verify import best_regions, top_regions

if TYPE_CHECKING:
    from collections.abc import Callable

    from whytube.classifiers.base import VideoClassifier
    from whytube.search.verify import Question, Regions

TUBES = EFFORTS["normal"]
"""How many tubes a verified method tries for a clip and negative class."""
SIZES = (1.0, 2.0, 4.0, 0.5)
"""Boxes of a map's tubes, in units of AREA of the frame: one of 2 lasts half the clip. Those below 1 are tried last."""


@dataclass(frozen=True, eq=False)
class MapMaker:
    """Says where a clip speaks for A rather than B.

    Attributes:
        name: of the method that is made of it.
        make: (classifier, question, seed) -> maps (B, N, t, h, w), of any scale and sign; more is better.
        forwards, backwards: runs of the classifier for one clip and one negative class, asked alone. The run that
            answered the question itself is not counted.
    """

    name: str
    make: Callable[[VideoClassifier, Question, int], torch.Tensor]
    forwards: int
    backwards: int = 0

    @property
    def masked_clips(self) -> int:
        """What a map costs, in masked clips."""
        return self.forwards + BACKWARD * self.backwards

    def remembered(self) -> MapMaker:
        """Return a maker that gives the maps it has just made from memory, for two methods that share it."""
        last: list[tuple[VideoClassifier, Question, int, torch.Tensor]] = []

        def make(classifier: VideoClassifier, question: Question, seed: int) -> torch.Tensor:
            if not last or last[0][0] is not classifier or last[0][1] is not question or last[0][2] != seed:
                last[:] = [(classifier, question, seed, self.make(classifier, question, seed))]
            return last[0][3]

        return replace(self, make=make)


@dataclass(frozen=True, eq=False)
class MapMethod:
    """The tube that holds most of a map, among tubes of equal area.

    Attributes:
        classifier: whose map is asked.
        maker: makes the map.
        table: (C, S) bool. A map has no words: it says one that A has and B lacks, or else one that A has, drawn at
            random; without a table none.
        area: share of the clip's volume that a tube covers, at most; see AREA.
    """

    classifier: VideoClassifier
    maker: MapMaker
    table: torch.Tensor | None = None
    area: float = AREA
    seed: int = 0

    @property
    def name(self) -> str:
        """What its results are filed under."""
        return self.maker.name

    def __call__(self, question: Question, k: int) -> Regions:
        """Answer with k tubes of the box that holds most; they keep apart by half a box at least."""
        boxes, held = map_tubes(self.maker.make(self.classifier, question, self.seed), question, self.area, k)
        form = held[..., 0].argmax(-1)[..., None, None].expand(*held.shape[:2], 1, k)
        chosen = boxes.gather(2, form[..., None, None].expand(*form.shape, *boxes.shape[-2:]))[:, :, 0]
        answers = top_regions(chosen, torch.full_like(form[:, :, 0], -1), held.gather(2, form)[:, :, 0], k)
        return self.worded(answers, question, torch.zeros_like(question.negative))

    def worded(self, answers: Regions, question: Question, tried: torch.Tensor) -> Regions:
        """Give answers their words by lot and their cost: `tried` (B, N) masked clips and the map's."""
        ids = random_words(self.table, question, answers.scores.shape[-1], name=self.name, seed=self.seed)
        ids = torch.where(answers.scores > -torch.inf, ids, -1)
        return replace(answers, attribute_ids=ids, masked_clips=tried + self.maker.masked_clips)


@dataclass(frozen=True, eq=False)
class VerifiedMap(MapMethod):
    """The best of many tubes of a map, found as ours are: each is masked and the classifier asked again.

    tubes: how many are tried for a clip and negative class, the tube of `MapMethod` among them.
    """

    tubes: int = TUBES

    @property
    def name(self) -> str:
        """What its results are filed under."""
        return f"{self.maker.name}-verified"

    def __call__(self, question: Question, k: int) -> Regions:
        """Answer with the k different tubes of the largest value."""
        maps = self.maker.make(self.classifier, question, self.seed)
        each = math.ceil(2 * self.tubes / len(_forms(question, self.area)))
        boxes, held = map_tubes(maps, question, self.area, each)
        # The best tube of every box first, then the second ones; among these the one that holds most.
        held, order = held.transpose(2, 3).sort(dim=-1, descending=True, stable=True)
        held, order = held.flatten(2), order[..., None, None].expand(*order.shape, *boxes.shape[-2:])
        boxes = boxes.transpose(2, 3).gather(3, order).flatten(2, 3)
        place = (held > -torch.inf).int().argsort(dim=-1, descending=True, stable=True)[..., : self.tubes]
        tried = boxes.gather(2, place[..., None, None].expand(*place.shape, *boxes.shape[-2:]))
        exists = held.gather(2, place) > -torch.inf
        best = best_regions(self.classifier, question, tried, exists, k)
        cost = torch.zeros_like(question.negative) if best.masked_clips is None else best.masked_clips
        return self.worded(best, question, cost)


def map_tubes(maps: torch.Tensor, question: Question, area: float, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Find k tubes of every box through maps (B, N, t, h, w), and how much of the map each holds.

    Returns boxes (B, N, F, k, T, 4) and (B, N, F, k), -inf where there is no further tube. A tube through the whole
    clip is cut to its best run of frames, as many as the area allows. What it holds is the mean of the map there,
    scaled to [0, 1], and 1 less for tubes of less than the area, so that they come after all others.
    """
    frames, height, width = question.clips.shape[2:]
    least, most = maps.amin((2, 3, 4), keepdim=True), maps.amax((2, 3, 4), keepdim=True)
    scaled = (maps - least) / (most - least).clamp_min(torch.finfo(maps.dtype).tiny)
    forms, found = _forms(question, area), []
    tubes = box_tubes(scaled, forms, k, frames=frames, size=(height, width), background=None)
    for form, boxes, value in zip(forms, *(part.unbind(2) for part in tubes), strict=True):
        allowed = area * frames * height * width / (form[0] * form[1])
        length = min(int(allowed), frames)
        # Boxes at the edge are moved into the frame, not clipped, so that areas are equal.
        low = torch.minimum(boxes[..., :2], boxes.new_tensor([width - form[1], height - form[0]]))
        whole = torch.cat([low, low + boxes.new_tensor([form[1], form[0]])], -1)
        whole = torch.where(boxes[..., 2:3] > boxes[..., :1], whole, 0)
        boxes, held = _cut(whole, _held(scaled, whole, (height, width)), length)
        held = held / (form[0] * form[1] * length) - float(allowed > 1.5 * frames)
        found.append((boxes, torch.where(value > -torch.inf, held, -torch.inf)))
    every, held = (torch.stack(part, 2) for part in zip(*found, strict=True))
    return every, held


def _forms(question: Question, area: float) -> list[tuple[float, float]]:
    """Height and width of the boxes in pixels: every size square, tall and wide, a rounding error within the area."""
    frames, height, width = question.clips.shape[2:]
    # A box must fit into the frame, and a single one into the area.
    sizes = [size for size in SIZES if size <= frames]
    sides = [min(math.sqrt(size * area * height * width) - 1e-3, height, width) for size in sizes]
    return [
        (min(side * stretch, height), min(side / stretch, width))
        for side in sides
        for stretch in (1.0, STRETCH, 1 / STRETCH)
    ]


def _held(maps: torch.Tensor, boxes: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    """Sum up maps (B, N, t, h, w) inside boxes (B, N, k, T, 4) in pixels of frames of `size`: (B, N, k, T)."""
    frames, cells = boxes.shape[-2], maps.shape[-2:]
    shown = maps[:, :, torch.arange(frames, device=maps.device) * maps.shape[2] // frames]  # (B, N, T, h, w)
    shares = []
    for axis, (length, count) in enumerate(zip(reversed(size), reversed(cells), strict=True)):
        edges = torch.arange(count + 1, device=maps.device) * (length / count)
        low, high = boxes[..., axis, None], boxes[..., axis + 2, None]
        shares.append((torch.minimum(high, edges[1:]) - torch.maximum(low, edges[:-1])).clamp_min(0))
    columns, rows = (share.to(maps.dtype) for share in shares)
    return torch.einsum("bnkth,bnthw,bnktw->bnkt", rows, shown, columns)


def _cut(boxes: torch.Tensor, held: torch.Tensor, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Keep the run of `length` frames of boxes (..., T, 4) that holds most, held (..., T); and how much, (...)."""
    most, start = held.unfold(-1, length, 1).sum(-1).max(-1)
    frame = torch.arange(held.shape[-1], device=held.device)
    kept = (frame >= start[..., None]) & (frame < start[..., None] + length)
    return torch.where(kept[..., None], boxes, 0), most
