"""How networks lay out their features, and how to turn these into maps (B, d, T, H, W) and back.

CTHW     (B, d, T, H, W)      3-d convolutions
THWC     (B, T, H, W, d)      windowed transformers such as Swin
TCHW     (B * T, d, H, W)     2-d convolutions, frame by frame
(THW)C   (B, N, d)            tokens, frame after frame, each row by row
(HWT)C   (B, N, d)            tokens, place after place, each through time
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from whytube.checks import shape_of
from whytube.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    Grid = tuple[int, int, int]

LAYOUTS = {"CTHW": 5, "THWC": 5, "TCHW": 4, "(THW)C": 3, "(HWT)C": 3}
"""Number of dimensions of each layout."""
TOKENS = ("(THW)C", "(HWT)C")
_USUAL = {5: "CTHW", 4: "TCHW", 3: "(THW)C"}
_CLASS_TOKENS = 1
"""How many tokens without a cell are tried when the grid is inferred."""


@dataclass(frozen=True)
class Layout:
    """Layout of one layer's features.

    order: one of LAYOUTS. grid: (T, H, W) in cells. shape: of the layer's output without its first dimension. Tokens
    without a cell (class tokens, registers) come first.
    """

    order: str
    grid: Grid
    shape: tuple[int, ...]

    @property
    def cells(self) -> int:
        """Cells in a frame, H * W."""
        return self.grid[1] * self.grid[2]

    @property
    def extra(self) -> int:
        """Number of tokens without a cell."""
        return self.shape[0] - math.prod(self.grid) if self.order in TOKENS else 0

    def to_map(self, features: torch.Tensor, batch: int) -> torch.Tensor:
        """Turn a layer's features into (B, d, T, H, W)."""
        rows = batch * self.grid[0] if self.order == "TCHW" else batch
        if tuple(features.shape) != (rows, *self.shape):
            expected = ", ".join(str(n) for n in (rows, *self.shape))
            raise ModelError(f"a layer gave features of shape {shape_of(features)}, expected ({expected}) as before")
        t, h, w = self.grid
        if self.order == "CTHW":
            return features
        if self.order == "THWC":
            return features.permute(0, 4, 1, 2, 3)
        if self.order == "TCHW":
            return features.reshape(batch, t, *self.shape).transpose(1, 2)
        cells = features[:, self.extra :].transpose(1, 2)  # (B, d, N)
        if self.order == "(THW)C":
            return cells.reshape(batch, -1, t, h, w)
        return cells.reshape(batch, -1, h, w, t).permute(0, 1, 4, 2, 3)

    def from_map(self, maps: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """Undo `to_map`, in new memory; tokens without a cell come from `features`."""
        if self.order == "CTHW":
            return maps.clone()
        if self.order == "THWC":
            return maps.permute(0, 2, 3, 4, 1).clone()
        if self.order == "TCHW":
            return maps.transpose(1, 2).flatten(0, 1).clone()
        cells = maps if self.order == "(THW)C" else maps.permute(0, 1, 3, 4, 2)
        return torch.cat([features[:, : self.extra], cells.flatten(2).transpose(1, 2)], 1)


def find_layout(
    shape: Sequence[int], *, frames: int, order: str | None, grid: Grid | None, grids: Sequence[Grid]
) -> Layout | None:
    """Find the layout of a layer's output for one clip; None where it is no map of at least 2 x 2 cells.

    frames: T of the clip. order, grid: given by the user, or None. grids: of the network's convolutions, the latest
    last; one of them is taken for tokens.
    """
    order = order or _USUAL.get(len(shape))
    if order is None or LAYOUTS[order] != len(shape) or shape[0] != (frames if order == "TCHW" else 1):
        return None
    own = tuple(int(n) for n in shape[1:])
    found: Grid | None
    if order == "CTHW":
        found = (own[1], own[2], own[3])
    elif order == "THWC":
        found = (own[0], own[1], own[2])
    elif order == "TCHW":
        found = (frames, own[1], own[2])
    else:
        found = _token_grid(own[0], grid, grids)
    if found is None or min(found[1:]) < 2:
        return None
    return Layout(order, found, own)


def _token_grid(tokens: int, grid: Grid | None, grids: Sequence[Grid]) -> Grid | None:
    """Grid of N tokens: the given one, or that of the latest convolution with N or N - 1 cells."""
    if grid is not None:
        return grid if math.prod(grid) <= tokens else None
    for extra in range(_CLASS_TOKENS + 1):
        fitting = [known for known in grids if math.prod(known) + extra == tokens]
        if fitting:
            return fitting[-1]
    return None
