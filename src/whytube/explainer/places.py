"""Places: where attributes are, step by step, and how well a tube fits that.

A place is a form on a cell of the common grid, so a step has P = K x H x W places, each with its box. The softmax of an
attribute's scores over the places of a step says where the attribute is. From it follow:

- the loss on drawn boxes, `place_term` in objective.py: cross-entropy against `place_targets`;
- the expected IoU of any box with the attribute's box, `Places.expected_iou`; its mean over a tube's steps is the raw
  fit of the tube, `Places.raw_fit`;
- the fit of the tube, `Places.fits`: the chance that the attribute is right about it, see fit.py;
- volumes for the search, `Places.volumes`: the expected IoU of every place, less an offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch

from whytube.explainer.fit import rivals
from whytube.explainer.scores import Forms
from whytube.tubes import box_areas

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whytube.explainer.fit import FitCurve
    from whytube.explainer.scores import Scores

SHARPNESS = 40.0
"""Targets are proportional to exp(SHARPNESS * IoU); chosen of 12 to 60 on held-out training clips of J-HMDB."""
OFFSET = 0.5
"""What `Places.volumes` takes off: this share of the attribute's best expected IoU in the clip."""
_VALUES = {"cpu": 1 << 20, "cuda": 1 << 24}
"""Of IoUs of tubes with places that exist at one time; a CPU's caches hold few."""


def place_boxes(forms: Forms) -> torch.Tensor:
    """Boxes (P, 4) in pixels of the clip of all places of a step, in the order of (K, H, W)."""
    sizes = (forms.count, *forms.grid[1:])
    cells = torch.cartesian_prod(*(torch.arange(n) for n in sizes))[:, None]  # (P, 1, 3)
    one_step = Forms(tuple((1, h, w) for _, h, w in forms.grids), forms.size, 1, forms.shapes)
    return one_step.boxes(cells)[:, 0]


def place_targets(forms: Forms, boxes: torch.Tensor) -> torch.Tensor:
    """Target distribution over the places of a step for each drawn box: (..., 4) -> (..., P)."""
    boxes = boxes.float()
    return (SHARPNESS * place_iou(forms, boxes, place_boxes(forms).to(boxes))).softmax(-1)


def steps_of_frames(steps: int, frames: int, device: torch.device | None = None) -> torch.Tensor:
    """Step of the common grid in which each frame of the clip lies: (T,)."""
    return torch.arange(frames, device=device) * steps // frames


def place_iou(forms: Forms, boxes: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """IoU of boxes (..., 4) with all places, whose boxes are `own` (P, 4): (..., P).

    Places of a form share their columns and rows, so overlaps are worked out per column and row. Each has an area.
    """
    grid = own.view(forms.count, *forms.grid[1:], 4)  # (K, H, W, 4)
    wide = _overlap(boxes[..., 0], boxes[..., 2], grid[:, 0, :, 0], grid[:, 0, :, 2])  # (..., K, W)
    high = _overlap(boxes[..., 1], boxes[..., 3], grid[:, :, 0, 1], grid[:, :, 0, 3])  # (..., K, H)
    shared = high[..., :, None] * wide[..., None, :]
    union = (box_areas(boxes)[..., None, None, None] + box_areas(grid)).sub_(shared)
    return shared.div_(union).flatten(-3)


def _overlap(low: torch.Tensor, high: torch.Tensor, lows: torch.Tensor, highs: torch.Tensor) -> torch.Tensor:
    """Length that intervals (...) share with others (K, W): (..., K, W)."""
    return (torch.minimum(high[..., None, None], highs) - torch.maximum(low[..., None, None], lows)).clamp_min_(0)


@dataclass(frozen=True, eq=False)
class Places:
    """Where s attributes are in each of B clips.

    Attributes:
        forms: the K forms and their grid.
        attribute_ids: (B, s) which attributes, -1 where a clip has fewer.
        scores: (B, s, K, t, H, W) w_s . h + b_s of every place.
        chances: (B, s, t, P) their softmax over the places of each of t steps.
        own: (P, 4) boxes of the places.
        curve: from raw fits to chances; None where nobody measured it.
    """

    forms: Forms
    attribute_ids: torch.Tensor
    scores: torch.Tensor
    chances: torch.Tensor
    own: torch.Tensor
    curve: FitCurve | None = None

    @cached_property
    def known(self) -> torch.Tensor:
        """Which of these attributes have a fit: (B, s) bool."""
        return self.has_fit(self.attribute_ids)

    def has_fit(self, attribute_ids: torch.Tensor) -> torch.Tensor:
        """Which of any attributes (...) have a fit, those that were trained with boxes: (...) bool, not -1."""
        if self.curve is None:
            return torch.zeros_like(attribute_ids, dtype=torch.bool)
        return self._boxed[attribute_ids.clamp_min(0)] & (attribute_ids >= 0)

    @cached_property
    def _boxed(self) -> torch.Tensor:
        """Which of all attributes were trained with boxes: (S,) bool."""
        assert self.curve is not None
        return torch.tensor(self.curve.boxes, device=self.attribute_ids.device) > 0

    @cached_property
    def _level(self) -> torch.Tensor:
        """Levels of the attributes in the fit: (B, s, 1)."""
        assert self.curve is not None
        return self.curve.level_of(self.attribute_ids)[..., None]

    def fits(self, boxes: torch.Tensor) -> torch.Tensor:
        """Chance that each attribute is right about tubes: (B, N, M, T, 4) in pixels -> (B, N, M, s).

        NaN for attributes without a fit, see `known`.
        """
        return torch.where(self.known[:, None, None], self.fits_or_raw(boxes), torch.nan)

    def fits_or_raw(self, boxes: torch.Tensor) -> torch.Tensor:
        """Fits of tubes (B, N, M, T, 4), or raw fits of attributes that have none, to compare tubes: (B, N, M, s)."""
        fits = self.raw_fit(boxes.flatten(1, 2))  # (B, s, N * M)
        if self.curve is not None:
            share = (box_areas(boxes) > 0).to(fits).mean(-1).flatten(1, 2)[:, None]  # (B, 1, N * M)
            chances = self.curve(fits, rivals(fits, self.known), share, self._level.to(fits))
            fits = torch.where(self.known[..., None], chances, fits)
        return fits.transpose(1, 2).reshape(*boxes.shape[:3], fits.shape[1])

    def fit_of(self, boxes: torch.Tensor, attribute_ids: torch.Tensor) -> torch.Tensor:
        """Chance that one attribute per tube is right: (B, N, M, T, 4) and (B, N, M) -> (B, N, M), NaN for none."""
        fits = self.fits(boxes)
        same = (attribute_ids[..., None] == self.attribute_ids[:, None, None]) & (attribute_ids >= 0)[..., None]
        chosen = torch.where(same, fits, 0).sum(-1)
        return torch.where(same.any(-1), chosen, torch.nan)

    def expected_iou(self, boxes: torch.Tensor) -> torch.Tensor:
        """Return the expected IoU of a box at every step with each attribute's box: (B, M, t, 4) -> (B, s, M, t)."""
        boxes, own = boxes.to(self.chances.dtype), self.own
        values = _VALUES["cpu" if own.device.type == "cpu" else "cuda"]
        chunk = max(1, values // (len(boxes) * boxes.shape[2] * len(own)))
        parts = [
            torch.einsum("bmtp,bstp->bsmt", place_iou(self.forms, part, own), self.chances)
            for part in torch.split(boxes, chunk, dim=1)
        ]
        return torch.cat(parts, 2)

    def raw_fit(self, boxes: torch.Tensor) -> torch.Tensor:
        """How well tubes lie where each attribute is: (B, M, T, 4) in pixels -> (B, s, M) in [0, 1].

        The expected IoU, averaged over the steps at which the tube exists, however few. A tube's box at a step is the
        mean of its boxes in the step's frames. 0 for a tube without boxes.
        """
        steps = self.chances.shape[2]
        exists = (box_areas(boxes) > 0).to(boxes.dtype)[..., None]  # (B, M, T, 1)
        place = steps_of_frames(steps, boxes.shape[2], boxes.device)
        shape = (*boxes.shape[:2], steps)
        count = boxes.new_zeros(*shape, 1).index_add_(2, place, exists)
        mean = boxes.new_zeros(*shape, 4).index_add_(2, place, boxes * exists) / count.clamp_min(1)
        there = (count[..., 0] > 0)[:, None]  # (B, 1, M, t)
        return (self.expected_iou(mean) * there).sum(-1) / there.sum(-1).clamp_min(1)

    def volumes(self, *, offset: float = OFFSET) -> torch.Tensor:
        """Scores for `max_subpath`, (B, s, K, t, H, W): the expected IoU of every place less an offset.

        The offset is a share of the attribute's best value in the clip, so that a tube goes on as long as it finds the
        attribute at least that well, and ends where the attribute is no longer to be told from the rest.
        """
        expected = self.chances @ place_iou(self.forms, self.own, self.own)  # (B, s, t, P)
        scores = expected - offset * expected.amax((-1, -2), keepdim=True)
        return scores.view(*scores.shape[:3], self.forms.count, *self.forms.grid[1:]).transpose(2, 3).contiguous()

    def volumes_or_scores(self) -> torch.Tensor:
        """Scores for `max_subpath`: `volumes`, or of attributes that have no fit their scores: (B, s, K, t, H, W)."""
        if self.curve is None:
            return self.scores
        return torch.where(self.known[..., None, None, None, None], self.volumes(), self.scores)


@torch.no_grad()
def find_places(
    scores: Scores, maps: Sequence[torch.Tensor], attribute_ids: torch.Tensor, curve: FitCurve | None = None
) -> Places:
    """Say where attributes (B, s) are by a classifier's maps (B, d, T, H, W) of B clips."""
    volumes = scores(maps, attribute_ids)  # (B, s, K, t, H, W)
    chances = volumes.transpose(2, 3).flatten(3).softmax(-1)
    return Places(scores.forms, attribute_ids, volumes, chances, place_boxes(scores.forms).to(chances), curve)
