"""Gradient of tube scores in the weights: features added up along paths, weighted by their forms.

A tube's score adds up products of a tap's weights and a cell's features (`Scores.volumes`), so its gradient in a tap's
weights is the paper's pool of h over R. It is one `embedding_bag`, whose bags are the paths' cells around one tap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torch.nn.functional import embedding_bag

from whytube.explainer.scores import TAPS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import torch

    from whytube.explainer.scores import Scores


class Bags(NamedTuple):
    """What is added up along N paths on one scale's map.

    Attributes:
        features: (cells of all clips, d).
        places: (N, 9, L), rows of `features` for every tap; some row where the weight is 0.
        weight: (N, 9, L), 0 off the path, beyond the border and where the path is on another scale.
    """

    features: torch.Tensor
    places: torch.Tensor
    weight: torch.Tensor


def path_bags(
    scores: Scores, maps: Sequence[torch.Tensor], cells: torch.Tensor, clip: torch.Tensor, grad: torch.Tensor
) -> Iterator[Bags]:
    """Yield the bags of every scale, for N sums along one path or two.

    Args:
        scores: what the volumes were made by.
        maps: per scale (B, d, t, h, w).
        cells: (1 or 2, N, T, 3) on the common grid, -1 off the path.
        clip: (N,), the clip that a path is in.
        grad: (N,) of the sums.
    """
    _, height, width = scores.forms.grid
    sides, count, steps, _ = cells.shape
    form, row, col = cells.transpose(0, 1).reshape(count, sides * steps, 3).unbind(-1)
    entry = (form * height + row).mul_(width).add_(col).clamp_min_(-1).add_(1)  # entry 0 is for no cell
    entry = entry[:, None] + scores.tap_entries[:, None]  # (N, 9, L)
    for scale, h in enumerate(maps):
        t, *size = h.shape[2:]
        time = scores.get_buffer(f"times{scale}").repeat(sides)
        first = (clip * (t * size[0] * size[1]))[:, None, None] + time
        places = scores.get_buffer(f"places{scale}")[entry].add_(first)
        weight = scores.get_buffer(f"shares{scale}")[entry].mul_(grad[:, None, None])
        yield Bags(h.flatten(2).transpose(1, 2).reshape(-1, h.shape[1]), places, weight)


def pooled(bags: Bags, items: slice, rows: torch.Tensor, total: int) -> torch.Tensor:
    """Add up features along the paths `items`: the gradient in kernels (total, 9, d) of volumes.

    rows: (1 or 2, items), which of the `total` volumes a sum adds and, if two, subtracts.
    """
    features, places, weight = bags.features, bags.places[items].flatten(0, 1), bags.weight[items].flatten(0, 1)
    sums = embedding_bag(places, features, per_sample_weights=weight, mode="sum")
    sums = sums.view(-1, len(TAPS) * features.shape[1])
    gradient = sums.new_zeros(total, sums.shape[1])
    for sign, row in zip((1, -1), rows, strict=False):
        gradient.index_add_(0, row, sums, alpha=sign)
    return gradient.view(total, len(TAPS), -1)
