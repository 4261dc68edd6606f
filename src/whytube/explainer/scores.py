"""The auxiliary model g: a linear score for every (class, attribute) pair, cell and form (sections 3.3 and 3.6).

    w_cs = w_c * w_s + w_c + w_s                                per scale, on 3x3 windows
    dm   = (w_pos - w_neg) * (1 + w_s) . window(h)              the additive w_s cancels in the difference

Scores of tubes are linear in the features, so training needs no tape through the search: find the paths, pool the
features along them, and differentiate `dw . pool(h, R*)` (the paper's maximum subpath pooling).

A tube's element takes one of K forms, scales x shapes. A shape is a box of 2 or 3 cells in each direction. Its weight
on the 3x3 window is the share of each cell that the box covers, normalised to sum 1. The windows of the four shapes are
combinations of the same four partial sums (centre, sides, ends, corners), so that four shapes cost one convolution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import nn

from whytube.tubes import cell_boxes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whytube.classifiers.base import VideoClassifier

SHAPES = ((2, 2), (2, 3), (3, 2), (3, 3))
"""Height and width in cells."""

TAPS = tuple((dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1))
"""The 3x3 window, row by row."""


def shape_windows() -> torch.Tensor:
    """Overlap weights a_i of every shape with the window's cells: (4, 9), each summing to 1."""
    rows = []
    for height, width in SHAPES:
        window = [_overlap(dy, height) * _overlap(dx, width) for dy, dx in TAPS]
        rows.append([weight / sum(window) for weight in window])
    return torch.tensor(rows)


def shape_parts() -> torch.Tensor:
    """Weights of the partial sums (centre, sides, ends, corners) in every shape: (4, 4)."""
    windows = shape_windows()
    one_of_each = [TAPS.index(tap) for tap in ((0, 0), (0, 1), (1, 0), (1, 1))]
    return windows[:, one_of_each]


def _overlap(offset: int, extent: int) -> float:
    """Share of the cell `offset` away from the centre that a box of `extent` cells covers."""
    return 1.0 if offset == 0 or extent == 3 else 0.5


@dataclass(frozen=True)
class Forms:
    """K = scales x shapes forms over clips of `frames` x `size` pixels.

    Attributes:
        grids: (T, H, W) of each scale's feature map, finer first; the first is the common grid.
        size: (H, W) of the clip in pixels.
        frames: T of the clip.
    """

    grids: tuple[tuple[int, int, int], ...]
    size: tuple[int, int]
    frames: int

    @property
    def count(self) -> int:
        """K."""
        return len(self.grids) * len(SHAPES)

    @property
    def grid(self) -> tuple[int, int, int]:
        """The common grid (T, H, W)."""
        return self.grids[0]

    def to_common(self, scores: torch.Tensor, scale: int) -> torch.Tensor:
        """Bring scores (..., t, h, w) of a scale to the common grid: a cell takes the value of the cell it lies in."""
        for dim, (have, want) in enumerate(zip(self.grids[scale], self.grid, strict=True)):
            if have != want:
                index = torch.arange(want, device=scores.device) * have // want
                scores = scores.index_select(dim - 3, index)
        return scores

    def scale_cells(self, cells: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Scale, row and column on that scale's own map of cells (..., 3) of the common grid."""
        scale = cells[..., 0].clamp_min(0) // len(SHAPES)
        own = torch.tensor(self.grids, device=cells.device)[scale]  # (..., 3)
        common = torch.tensor(self.grid, device=cells.device)
        place = cells[..., 1:].clamp_min(0) * own[..., 1:] // common[1:]
        return scale, place[..., 0], place[..., 1]

    def boxes(self, cells: torch.Tensor) -> torch.Tensor:
        """Boxes in pixels of the clip for paths (..., t, 3) on the common grid: (..., T, 4), zeros outside the path."""
        _, row, col = self.scale_cells(cells)
        shapes = torch.tensor(SHAPES * len(self.grids), dtype=torch.float32, device=cells.device)
        grids = torch.tensor(self.grids, device=cells.device)[:, 1:].repeat_interleave(len(SHAPES), 0)
        own = torch.stack([cells[..., 0], row, col], -1)
        return cell_boxes(own, shapes, grids, frames=self.frames, size=self.size)


class Scores(nn.Module):
    """Weights w_c and w_s for C classes and S attributes on maps of `channels` channels each, one per scale.

    Maps are standardised first, (h - mean) * gain per channel: the identity until `standardise` is called.
    """

    def __init__(self, classes: int, attributes: int, channels: Sequence[int], forms: Forms) -> None:
        super().__init__()
        self.forms = forms
        self.channels = tuple(channels)
        self.class_weights = nn.ParameterList(_weights(classes, d) for d in channels)
        self.attribute_weights = nn.ParameterList(_weights(attributes, d) for d in channels)
        self.attribute_bias = nn.Parameter(torch.zeros(attributes))
        for i, d in enumerate(channels):
            self.register_buffer(f"mean{i}", torch.zeros(d))
            self.register_buffer(f"gain{i}", torch.ones(d))
        self.register_buffer("parts", shape_parts(), persistent=False)
        self.register_buffer("windows", shape_windows(), persistent=False)

    parts: torch.Tensor
    windows: torch.Tensor

    def standardise(self, means: Sequence[torch.Tensor], deviations: Sequence[torch.Tensor]) -> None:
        """Give every channel mean 0 and a cell's d channels about unit length, so that tube sums are well scaled.

        means, deviations: (d,) of each scale's map.
        """
        for i, (mean, deviation) in enumerate(zip(means, deviations, strict=True)):
            self.get_buffer(f"mean{i}").copy_(mean)
            self.get_buffer(f"gain{i}").copy_(1 / (deviation.clamp_min(1e-3) * math.sqrt(self.channels[i])))

    def normalise(self, maps: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Standardise maps (B, d, T, H, W)."""
        shape = (1, -1, 1, 1, 1)
        return tuple(
            (h - self.get_buffer(f"mean{i}").view(shape)) * self.get_buffer(f"gain{i}").view(shape)
            for i, h in enumerate(maps)
        )

    def forward(self, maps: Sequence[torch.Tensor]) -> torch.Tensor:
        """Attribute scores of the classifier's own maps: see `attribute_volumes`, which takes standardised ones."""
        return self.attribute_volumes(self.normalise(maps))

    def class_volumes(self, maps: Sequence[torch.Tensor], attributes: torch.Tensor) -> torch.Tensor:
        """Class scores w_c * (1 + w_s) . h, without the additive w_s, which cancels in any class difference.

        maps and attributes (B, s) -> (B, C, s, K, T, H, W).
        """
        volumes = []
        for scale, h in enumerate(maps):
            w_c, w_s = self.class_weights[scale], self.attribute_weights[scale]
            kernels = w_c[None, :, None] * (1 + w_s[attributes.clamp_min(0)])[:, None]  # (B, C, s, d, 3, 3)
            volumes.append(self._volumes(h, kernels, scale))
        return torch.cat(volumes, 3)

    def attribute_volumes(self, maps: Sequence[torch.Tensor]) -> torch.Tensor:
        """Attribute scores w_s . h + b_s, how much a cell looks like attribute s: maps -> (B, S, K, T, H, W)."""
        volumes = [self._volumes(h, self.attribute_weights[scale][None], scale) for scale, h in enumerate(maps)]
        return torch.cat(volumes, 2) + self.attribute_bias.view(1, -1, 1, 1, 1, 1)

    def step_volumes(self, rows: Sequence[torch.Tensor], attribute_ids: torch.Tensor) -> torch.Tensor:
        """Attribute scores w_s . h of single steps, without b_s: (R, d, h, w) per scale -> (R, s, K, H, W).

        rows: of standardised maps. attribute_ids: (R, s), the few attributes that are asked about in each row. Quick to
        differentiate: one matrix product for all taps, shifted and weighted after.
        """
        volumes = []
        for scale, h in enumerate(rows):
            count, d, *grid = h.shape
            taps = self.tap_weights("attribute", scale).view(-1, len(TAPS), d)[attribute_ids.clamp_min(0)]
            products = taps.flatten(1, 2) @ h.flatten(2)  # (R, s * 9, h * w)
            padded = F.pad(products.view(count, -1, len(TAPS), *grid), (1, 1, 1, 1))
            shifted = [
                padded[:, :, tap, 1 + dy : 1 + dy + grid[0], 1 + dx : 1 + dx + grid[1]]
                for tap, (dy, dx) in enumerate(TAPS)
            ]
            own = torch.einsum("kt,trshw->rskhw", self.windows, torch.stack(shifted))
            row, col = (
                torch.arange(want, device=h.device) * have // want
                for have, want in zip(grid, self.forms.grid[1:], strict=True)
            )
            volumes.append(own[..., row, :][..., col])
        return torch.cat(volumes, 2)

    def _volumes(self, h: torch.Tensor, kernels: torch.Tensor, scale: int) -> torch.Tensor:
        """Convolve h (B, d, t, h, w) with kernels (B or 1, ..., d, 3, 3): (B, ..., 4, T, H, W).

        Nine matrix products, one per tap, gathered into the four partial sums that all shapes share.
        """
        batch, d, *grid = h.shape
        many = kernels.shape[1:-3]
        padded = torch.nn.functional.pad(h, (1, 1, 1, 1))
        weights = kernels.flatten(1, -4).expand(batch, -1, -1, -1, -1).permute(3, 4, 0, 1, 2)  # (3, 3, B, n, d)
        weights = weights.contiguous()
        sums = h.new_zeros(4, batch, weights.shape[3], math.prod(grid))
        for dy, dx in TAPS:
            x = padded[..., 1 + dy : 1 + dy + grid[1], 1 + dx : 1 + dx + grid[2]].reshape(batch, d, -1)
            part = abs(dx) + 2 * abs(dy)  # centre, sides, ends, corners
            sums[part].baddbmm_(weights[1 + dy, 1 + dx], x)
        scores = torch.einsum("kp,pbnx->bnkx", self.parts, sums)
        return self.forms.to_common(scores.view(batch, *many, len(SHAPES), *grid), scale)

    def pool(self, maps: Sequence[torch.Tensor], cells: torch.Tensor, item: torch.Tensor) -> list[torch.Tensor]:
        """Sum windows of features along paths, weighted by their forms: the paper's pool of h over R.

        maps of B items, cells (N, T, 3), item (N,) the clip of each path -> per scale (N, 9 * d).
        """
        scales, rows, cols = self.forms.scale_cells(cells)  # (N, T) each
        windows = self.windows[cells[..., 0].clamp_min(0) % len(SHAPES)]  # (N, T, 9)
        inside = cells[..., 0] >= 0
        steps = torch.arange(cells.shape[1], device=cells.device)
        taps = torch.tensor(TAPS, device=cells.device)  # (9, 2)
        pooled = []
        for scale, h in enumerate(maps):
            _, d, t, height, width = h.shape
            table = F.pad(h, (1, 1, 1, 1)).permute(0, 2, 3, 4, 1).reshape(-1, d)  # a row of features per padded cell
            step = steps * t // len(steps)
            row = rows[:, None] + 1 + taps[:, :1]  # (N, 9, T)
            col = cols[:, None] + 1 + taps[:, 1:]
            index = ((item[:, None, None] * t + step) * (height + 2) + row) * (width + 2) + col
            here = (inside & (scales == scale))[:, None]  # (N, 1, T)
            weight = torch.where(here, windows.transpose(1, 2), 0)
            bags = F.embedding_bag(
                torch.where(here, index, 0).flatten(0, 1),
                table,
                mode="sum",
                per_sample_weights=weight.flatten(0, 1).to(table.dtype),
            )
            pooled.append(bags.view(len(cells), -1))
        return pooled

    def tap_weights(self, kind: str, scale: int) -> torch.Tensor:
        """Weights of a scale laid out as `pool` does: (classes or attributes, 9 * d)."""
        weights = self.class_weights if kind == "class" else self.attribute_weights
        laid: torch.Tensor = weights[scale].permute(0, 2, 3, 1).flatten(1)
        return laid


def build_scores(classifier: VideoClassifier, attributes: int, *, seed: int = 0) -> Scores:
    """Build untrained scores that fit a classifier's maps."""
    shapes = classifier.map_shapes()
    forms = Forms(tuple((t, h, w) for _, t, h, w in shapes), classifier.size, classifier.frames)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Scores(len(classifier.classes), attributes, [d for d, *_ in shapes], forms)


def _weights(rows: int, channels: int) -> nn.Parameter:
    """Draw a convolution's usual initial weights: (rows, d, 3, 3)."""
    bound = 1 / math.sqrt(9 * channels)
    return nn.Parameter(torch.empty(rows, channels, 3, 3).uniform_(-bound, bound))
