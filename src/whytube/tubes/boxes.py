"""Arithmetic of boxes x1 y1 x2 y2: areas, overlap, and boxes of grid cells.

Empties, decided once: a tube without volume (no box, or boxes without area) overlaps nothing, so its IoU with any tube
is 0, and so is that of two such tubes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from whytube.tubes.tube import Tube

Boxes = TypeVar("Boxes", "NDArray[np.float64]", torch.Tensor)


def box_areas(boxes: Boxes) -> Boxes:
    """Areas in pixels, (..., 4) -> (...); 0 where x2 < x1 or y2 < y1."""
    sides = (boxes[..., 2:] - boxes[..., :2]).clip(min=0)
    areas: Boxes = sides[..., 0] * sides[..., 1]
    return areas


def region_iou(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Spatio-temporal IoU of tubes (..., T, 4) and (..., T, 4), broadcast: sum of intersections over sum of unions."""
    common = torch.cat([torch.maximum(a, b)[..., :2], torch.minimum(a, b)[..., 2:]], dim=-1)
    shared = box_areas(common).sum(-1)
    union = box_areas(a).sum(-1) + box_areas(b).sum(-1) - shared
    return torch.where(union > 0, shared / union.clamp_min(1e-9), 0)


def tube_iou(a: Tube, b: Tube, frames: ArrayLike | None = None) -> float:
    """IoU of two tubes over the frames of both, or on the given frames alone, e.g. the annotated ones."""
    shared = np.unique(np.concatenate([a.frames, b.frames]) if frames is None else np.asarray(frames, dtype=np.int64))
    return float(region_iou(*(torch.from_numpy(tube.at(shared)) for tube in (a, b))))


def cell_boxes(
    cells: torch.Tensor, shapes: torch.Tensor, grids: torch.Tensor, *, frames: int, size: tuple[int, int]
) -> torch.Tensor:
    """Boxes of paths of grid cells, in pixels of the clip: (..., t, 3) -> (..., T, 4), zeros outside the path.

    A form is centred on its cell's centre and clipped to the frame. With fewer steps t than frames T, an element covers
    the frames of its step.

    Args:
        cells: (form, row, column) at every step, rows and columns on the form's own grid; -1 outside the path.
        shapes: (K, 2) height and width of each form, in cells of its grid.
        grids: (K, 2) rows and columns of each form's grid.
        frames: T of the clip.
        size: (height, width) of the clip.
    """
    steps = cells.shape[-2]
    if steps != frames:
        cells = cells.index_select(-2, torch.arange(frames, device=cells.device) * steps // frames)
    form = cells[..., 0].clamp_min(0)
    extent = torch.tensor(size, dtype=torch.float32, device=cells.device)
    pitch = extent / grids[form]  # pixels per cell
    centre = (cells[..., 1:] + 0.5) * pitch
    half = shapes[form] * pitch / 2
    low, high = (centre - half).clamp_min(0), torch.minimum(centre + half, extent)
    return torch.where(cells[..., :1] >= 0, torch.cat([low.flip(-1), high.flip(-1)], dim=-1), 0)
