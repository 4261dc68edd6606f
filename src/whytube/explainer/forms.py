"""The forms a tube's element can take: scales x shapes on one common grid (section 3.6 of the paper).

A shape is a box of 2 or 3 cells in each direction. Its weight on the 3x3 window of a convolution is the share of each
cell that the box covers, normalised to sum 1. The four shapes' windows are combinations of the same four partial sums
(centre, sides, ends, corners), so that four shapes cost one convolution.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

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
        """Boxes in pixels of the clip for paths (..., t, 3) on the common grid: (..., T, 4), zeros outside the path.

        A form is centred on its cell of its own scale's map and clipped to the frame; with fewer steps than frames, an
        element covers the frames of its step.
        """
        steps = self.grid[0]
        if steps != self.frames:
            index = torch.arange(self.frames, device=cells.device) * steps // self.frames
            cells = cells.index_select(-2, index)
        scale, row, col = self.scale_cells(cells)
        shape = torch.tensor(SHAPES, device=cells.device, dtype=torch.float32)[cells[..., 0].clamp_min(0) % len(SHAPES)]
        own = torch.tensor(self.grids, device=cells.device, dtype=torch.float32)[scale]
        extent = torch.tensor(self.size, device=cells.device, dtype=torch.float32)
        pitch = extent / own[..., 1:]  # pixels per cell
        centre = (torch.stack([row, col], -1) + 0.5) * pitch
        low = (centre - shape * pitch / 2).clamp_min(0)
        high = torch.minimum(centre + shape * pitch / 2, extent)
        boxes = torch.stack([low[..., 1], low[..., 0], high[..., 1], high[..., 0]], -1)
        return torch.where(cells[..., :1] >= 0, boxes, 0)
