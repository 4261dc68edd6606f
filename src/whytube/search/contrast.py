"""Where the features speak for A rather than B: Grad-CAM of the difference of two logits, and tubes through it.

Grad-CAM is Selvaraju et al. 2017; the tubes come from the same search that the paper's method uses. It needs no
training and knows no words.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from whytube.classifiers.base import evaluating
from whytube.errors import ModelError
from whytube.subpath import top_subpaths

if TYPE_CHECKING:
    from whytube.classifiers.base import VideoClassifier

GRID = 14
"""Cells per side of the frame, at least; a coarser map is upsampled."""
BACKGROUND = 0.5
"""A box counts in a tube's favour when its mean lies above the clip's average box by this share of the way to its best
box: 0 gives long tubes, near 1 single frames."""


def contrastive_maps(
    classifier: VideoClassifier, clips: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor
) -> torch.Tensor:
    """Grad-CAM of logit[positive] - logit[negative]: (B, 3, T, H, W), (B,), (B, N) -> (B, N, t, h, w).

    It is taken at the last map that the logits depend on. One run of the classifier for the batch, then one step back
    to the map per negative. Works under `no_grad` and `inference_mode`; the classifier's modes and gradients stay as
    they were.
    """
    with evaluating(classifier), torch.inference_mode(False), torch.enable_grad():
        asked, positive, negative = clips.detach().clone().requires_grad_(), positive.clone(), negative.clone()
        logits, maps = classifier.features(asked)
        margins = logits.gather(1, positive[:, None]) - logits.gather(1, negative)  # (B, N)
        for features in reversed(maps):
            slopes = _slopes(margins, features)
            if slopes is not None:
                return functional.relu(torch.einsum("nbd,bdthw->bnthw", slopes, features)).detach()
    raise ModelError(
        "no gradient of the logits reaches the classifier's maps, so that nothing says where they come from. "
        "Name earlier layers in `wrap`: of a last block often only the class token is read"
    )


def _slopes(margins: torch.Tensor, features: torch.Tensor) -> torch.Tensor | None:
    """Mean slope of margins (B, N) at the cells of features (B, d, t, h, w): (N, B, d), None where all are zero."""
    if not margins.requires_grad or not features.requires_grad:
        return None
    found = []
    for n in range(margins.shape[1]):
        (slope,) = torch.autograd.grad(margins[:, n].sum(), features, retain_graph=True, allow_unused=True)
        if slope is None or not slope.any():
            return None
        found.append(slope.mean((2, 3, 4)))
    return torch.stack(found)


def box_tubes(
    maps: torch.Tensor,
    form: tuple[float, float],
    k: int,
    *,
    frames: int,
    size: tuple[int, int],
    grid: int = GRID,
    background: float = BACKGROUND,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Find the k best tubes of a box through maps (B, N, t, h, w): boxes (B, N, k, T, 4) and their values (B, N, k).

    form: (height, width) of the box in pixels of the clip, which has `frames` frames of `size`. Tubes keep apart by
    half a box at least; where there are fewer than k, the rest have value -inf. grid, background: see GRID, BACKGROUND.
    """
    cells = (max(maps.shape[-2], grid), max(maps.shape[-1], grid))
    fine = functional.interpolate(maps.flatten(0, 1), size=cells, mode="bilinear", align_corners=False)
    extent = (form[0] / size[0] * cells[0], form[1] / size[1] * cells[1])
    means = box_means(fine, extent).view(*maps.shape[:3], *cells)
    average = means.mean((2, 3, 4), keepdim=True)
    best = means.amax((2, 3, 4), keepdim=True)
    scores = means - average - background * (best - average)
    found = top_subpaths(scores[:, :, None], k, gap=round(min(extent) / 2))
    return path_boxes(found.cells, extent, grid=cells, frames=frames, size=size), found.value


def box_means(maps: torch.Tensor, form: tuple[float, float]) -> torch.Tensor:
    """Mean of maps (M, t, h, w) over a box of `form` cells centred on every cell; outside the frame there is 0."""
    for dim, extent in zip((-2, -1), form, strict=True):
        reach = max(0, math.ceil(extent / 2 - 0.5 - 1e-6))
        offsets = torch.arange(-reach, reach + 1, device=maps.device)
        share = (extent / 2 + 0.5 - offsets.abs()).clamp(0, min(1.0, extent)) / extent
        line = maps.movedim(dim, -1)
        summed = functional.conv1d(line.reshape(-1, 1, line.shape[-1]), share.to(maps)[None, None], padding=reach)
        maps = summed.view(line.shape).movedim(-1, dim)
    return maps


def path_boxes(
    cells: torch.Tensor, form: tuple[float, float], *, grid: tuple[int, int], frames: int, size: tuple[int, int]
) -> torch.Tensor:
    """Boxes of paths on a grid in pixels of the clip: cells (..., t, 3) -> (..., T, 4), zeros outside the path.

    form: (height, width) of the box in cells, centred on the cell's centre and clipped to the frame. grid: (H, W) in
    cells. frames: T of the clip; with fewer steps t an element covers the frames of its step. size: (H, W) in pixels.
    """
    steps = cells.shape[-2]
    cells = cells[..., torch.arange(frames, device=cells.device) * steps // frames, :]
    edges = torch.tensor(size, dtype=torch.float32, device=cells.device)
    pitch = edges / torch.tensor(grid, device=cells.device)
    centre = (cells[..., 1:] + 0.5) * pitch
    half = torch.tensor(form, dtype=torch.float32, device=cells.device) * pitch / 2
    low, high = (centre - half).clamp_min(0), torch.minimum(centre + half, edges)
    boxes = torch.cat([low.flip(-1), high.flip(-1)], dim=-1)
    return torch.where(cells[..., :1] >= 0, boxes, 0)
