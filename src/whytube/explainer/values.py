"""Values of the best tubes, differentiable in the weights, with little memory.

The search needs no tape: the value is what it finds, and a tube's score is linear in the weights, so its gradient needs
the tube's cells and the features only. Score volumes exist for a chunk of the batch at a time, and only on the way.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.function import once_differentiable

from whytube.explainer.gradients import kernel_gradients
from whytube.subpath import max_subpath, max_subpath_difference, min_subpath_difference, other_classes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from whytube.explainer.scores import Scores
    from whytube.subpath import Subpath

    Maps: TypeAlias = Sequence[torch.Tensor]  # (B, d, T, H, W), one per scale

VOLUME_BYTES = 128 << 20
"""Of the score volumes that exist at one time; a step takes about twice as much."""


def difference_values(
    scores: Scores, maps: Maps, positive: torch.Tensor, attribute_ids: torch.Tensor, *, two_sided: bool = False
) -> torch.Tensor:
    """Return min over tubes of dm (plus the max when two-sided), differentiable in w: (B, C - 1, s).

    attribute_ids: (B, s), -1 where a clip has fewer.
    """
    searches = (min_subpath_difference, max_subpath_difference) if two_sided else (min_subpath_difference,)
    classes, count = scores.class_weights[0].shape[0], attribute_ids.shape[1]
    values = []
    for part in _chunks(scores, len(positive), classes * count):
        own, chosen = [h[part] for h in maps], positive[part]
        find = partial(_find, searches, chosen)
        rows = _difference_rows(chosen, classes, count)
        values.append(_tube_values(scores, own, find, rows, scores.class_kernels(attribute_ids[part]))[0])
    return torch.cat(values)


def _find(searches: Sequence[Callable[..., Subpath]], positive: torch.Tensor, volumes: torch.Tensor) -> list[Subpath]:
    return [search(volumes, positive) for search in searches]


def _difference_rows(positive: torch.Tensor, classes: int, count: int) -> torch.Tensor:
    """Tell which of the volumes (b, C, s) each difference adds and subtracts: (2, b, C - 1, s)."""
    clip, attribute = (torch.arange(n, device=positive.device) for n in (len(positive), count))
    negative = other_classes(positive, classes)
    both = torch.stack([positive[:, None].expand_as(negative), negative])[..., None]
    return (clip[:, None, None] * classes + both) * count + attribute


def attribute_values(scores: Scores, maps: Maps) -> torch.Tensor:
    """Return max over tubes of w_s . h + b_s, differentiable in w_s and b_s: (B, S)."""
    bias, values = scores.attribute_bias, []
    for part in _chunks(scores, len(maps[0]), len(bias)):
        own = [h[part] for h in maps]
        rows = torch.arange(len(own[0]) * len(bias), device=bias.device).view(1, -1, len(bias))
        kernels = [kernel.expand(len(own[0]), -1, -1, -1) for kernel in scores.attribute_kernels()]
        value, length = _tube_values(scores, own, partial(_find_biased, bias.detach()), rows, kernels)
        values.append(value + (bias - bias.detach()) * length)  # the value has the bias: this adds its gradient
    return torch.cat(values)


def _find_biased(bias: torch.Tensor, volumes: torch.Tensor) -> list[Subpath]:
    return [max_subpath(volumes.add_(bias.view(-1, 1, 1, 1, 1)))]


def _chunks(scores: Scores, batch: int, count: int) -> list[slice]:
    """Parts of the batch whose volumes, `count` a clip, are not too large."""
    size = scores.attribute_bias.element_size() * count * math.prod(scores.forms.grid) * scores.forms.count
    chunk = max(1, VOLUME_BYTES // size)
    return [slice(first, first + chunk) for first in range(0, batch, chunk)]


def _tube_values(
    scores: Scores,
    maps: Maps,
    find: Callable[[torch.Tensor], list[Subpath]],
    rows: torch.Tensor,
    kernels: Sequence[torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Values (...) of the tubes that `find` finds in the kernels' volumes, summed over its searches, and their lengths.

    rows: (1 or 2, ...) the volumes that a value adds and, if two, subtracts, counted through the chunk.
    kernels: per scale (b, ..., 9, d). Values are differentiable in these, not in the maps.
    """
    found: tuple[torch.Tensor, torch.Tensor]
    found = _TubeValues.apply(scores, maps, find, rows, *kernels)  # type: ignore[no-untyped-call]
    return found


class _TubeValues(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        scores: Scores,
        maps: Maps,
        find: Callable[[torch.Tensor], list[Subpath]],
        rows: torch.Tensor,
        *kernels: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        paths = find(scores.volumes(maps, kernels))
        ctx.save_for_backward(torch.stack([path.cells for path in paths]), rows, *maps)
        ctx.scores, ctx.shapes = scores, [kernel.shape for kernel in kernels]
        value = torch.stack([path.value for path in paths]).sum(0)
        length = torch.stack([path.stop - path.start for path in paths]).sum(0)
        ctx.mark_non_differentiable(length)
        return value, length

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor, _: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        cells, rows, *maps = ctx.saved_tensors  # (sides, ..., T, 3), (1 or 2, ...)
        count = math.prod(ctx.shapes[0][1:-2])
        gradients = kernel_gradients(ctx.scores, maps, cells.flatten(1, -3), rows.flatten(1), grad.flatten(), count)
        return None, None, None, None, *(g.view(shape) for g, shape in zip(gradients, ctx.shapes, strict=True))
