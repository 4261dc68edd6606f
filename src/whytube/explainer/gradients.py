"""Gradient of tube scores in the weights: sums along paths, weighted by their forms.

A tube's score adds up products of a tap's weights and a cell's features (`Scores.volumes`). There are two ways to its
gradient, with the same result up to rounding. `pooled` adds up features along every path: the paper's pool of h over R.
`dense` writes the gradient of every product into a volume, nearly all of it zero, and multiplies that volume by the
features: many more operations, but a GPU is quick at matrix products, and slow at many short sums.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import embedding_bag

from whytube.explainer.scores import SHAPES, TAPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whytube.explainer.scores import Scores

WAYS = {"cpu": "pooled", "cuda": "dense"}
"""Which way is taken on which type of device; others pool."""


def kernel_gradients(
    scores: Scores,
    maps: Sequence[torch.Tensor],
    cells: torch.Tensor,
    rows: torch.Tensor,
    grad: torch.Tensor,
    count: int,
) -> list[torch.Tensor]:
    """Gradient of sums along N paths, or of N pairs of paths, in the kernels that `Scores.volumes` took.

    Args:
        scores: what the volumes were made by.
        maps: per scale (B, d, t, h, w).
        cells: (1 or 2, N, T, 3), one path or two of each sum.
        rows: (1 or 2, N), which of the B * count volumes a sum adds and, if two, subtracts; both of the same clip.
        grad: (N,) of the sums.
        count: volumes of a clip.

    Returns per scale (B * count, 9, d).
    """
    scale, place, weight = window_cells(scores, cells)
    weight = weight.to(grad.dtype) * grad[:, None, None]
    if WAYS.get(grad.device.type) == "dense":
        return _dense(scores, maps, (scale, place, weight), rows, count)
    return [_pooled(h, torch.where((scale == i)[..., None], weight, 0), place, rows, count) for i, h in enumerate(maps)]


def window_cells(scores: Scores, cells: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Windows around cells (..., T, 3): their scale (..., T); where on its flat map, and with what weight (..., T, 9).

    Beyond the border and off the path the weight is 0; the place then is some cell of the map.
    """
    scale, row, col = scores.forms.scale_cells(cells, scores.grids)
    t, height, width = (side[..., None] for side in scores.grids[scale].unbind(-1))
    y, x = row[..., None] + scores.taps[:, 0], col[..., None] + scores.taps[:, 1]
    inside = (cells[..., :1] >= 0) & (y >= 0) & (y < height) & (x >= 0) & (x < width)
    weight = torch.where(inside, scores.windows[cells[..., 0].clamp_min(0) % len(SHAPES)], 0)
    steps = torch.arange(cells.shape[-2], device=cells.device)[:, None]
    own = steps * t // cells.shape[-2]
    place = ((own * height + y) * width + x).clamp_min(0)
    return scale, torch.minimum(place, t * height * width - 1), weight


def _pooled(h: torch.Tensor, weight: torch.Tensor, place: torch.Tensor, rows: torch.Tensor, count: int) -> torch.Tensor:
    """Add up features of h (B, d, t, h, w) along paths: weight and place (sides, N, T, 9) -> (B * count, 9, d)."""
    features = h.flatten(2).transpose(1, 2).reshape(-1, h.shape[1])  # a row per cell
    first = rows[0] // count * h[0, 0].numel()
    index = torch.where(weight != 0, place, 0) + first[:, None, None]
    bags = [x.permute(1, 3, 0, 2).flatten(2).flatten(0, 1) for x in (index, weight)]  # (N * 9, sides * T)
    sums = embedding_bag(bags[0], features, per_sample_weights=bags[1], mode="sum").view(len(first), len(TAPS), -1)
    gradient = sums.new_zeros(len(h) * count, *sums.shape[1:])
    for sign, row in zip((1, -1), rows, strict=False):
        gradient.index_add_(0, row, sums, alpha=sign)
    return gradient


def _dense(
    scores: Scores,
    maps: Sequence[torch.Tensor],
    windows: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    rows: torch.Tensor,
    count: int,
) -> list[torch.Tensor]:
    """Scatter the gradient of every product into one list for all scales, and multiply it by the features."""
    scale, place, weight = windows  # (sides, N, T), (sides, N, T, 9) twice
    total, sizes = len(maps[0]) * count, scores.grids.prod(1)
    size, before = sizes[scale], (sizes.cumsum(0) - sizes)[scale]  # cells of the scale, and of those before it
    tap = torch.arange(len(TAPS), device=place.device)
    # The list runs over scales, volumes, taps and cells.
    first = (total * before + rows[:, None, :, None] * size) * len(TAPS)  # (1 or 2, sides, N, T)
    index = first[..., None] + (tap * size[..., None] + place)
    signed = torch.stack([weight, -weight]) if len(rows) == 2 else weight
    lengths = [total * len(TAPS) * math.prod(grid) for grid in scores.forms.grids]
    dense = weight.new_zeros(sum(lengths)).scatter_add_(0, index.flatten(), signed.flatten())
    gradients = []
    for h, part in zip(maps, torch.split(dense, lengths), strict=True):
        products = part.view(len(h), count * len(TAPS), -1)
        gradients.append(torch.matmul(products, h.flatten(2).transpose(1, 2)).view(total, len(TAPS), -1))
    return gradients
