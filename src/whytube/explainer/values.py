"""Values of the best tubes, differentiable in the weights, with little memory.

The search needs no tape: the value is what it finds, and a tube's score is linear in the weights, so its gradient needs
the tube's cells and the features only. Score volumes exist for a chunk of the batch at a time, and only on the way.

On a GPU a step is as long as its host takes to launch it. So there are few chunks, what they share is made once, and
nothing waits: the values are looked at when all is queued.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.function import once_differentiable

from whytube.explainer.gradients import path_bags, pooled
from whytube.subpath import max_subpath, max_subpath_difference, min_subpath_difference, other_classes
from whytube.subpath.operator import looking_later

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeAlias

    from whytube.explainer.scores import Scores
    from whytube.subpath import Subpath

    Maps: TypeAlias = Sequence[torch.Tensor]  # (B, d, T, H, W), one per scale
    Find: TypeAlias = Callable[[slice, torch.Tensor], list[Subpath]]  # clips of the batch and their volumes

VOLUME_BYTES = 192 << 20
"""Of the score volumes that exist at one time; a step takes less than twice as much."""


def difference_values(
    scores: Scores,
    maps: Maps,
    positive: torch.Tensor,
    attribute_ids: torch.Tensor,
    negative: torch.Tensor | None = None,
    *,
    two_sided: bool = False,
) -> torch.Tensor:
    """Return min over tubes of dm (plus the max when two-sided), differentiable in w: (B, N, s).

    attribute_ids: (B, s), -1 where a clip has fewer. negative: (B, N), of which volumes are made, and of no other
    class but A; by default all C - 1 classes but A, in ascending order.
    """
    searches = (min_subpath_difference, max_subpath_difference) if two_sided else (min_subpath_difference,)
    chosen = None if negative is None else torch.cat([positive[:, None], negative], 1)
    positive = positive if chosen is None else torch.zeros_like(positive)  # its place among the chosen
    offsets = scores.class_offsets(attribute_ids, chosen)  # (B, C or 1 + N, s) or None

    def find(part: slice, volumes: torch.Tensor) -> list[Subpath]:
        if offsets is not None:
            volumes.add_(offsets.detach()[part][..., None, None, None, None])
        return [search(volumes, positive[part]) for search in searches]

    classes, gains = scores.class_factors(attribute_ids)
    count = len(classes[0]) if chosen is None else chosen.shape[1]
    rows = _difference_rows(positive, count, attribute_ids.shape[1])
    value, length = _tube_values(scores, maps, find, rows, classes, gains, chosen)
    if offsets is None:
        return value
    added = offsets.flatten()[rows[0]] - offsets.flatten()[rows[1]]
    return value + (added - added.detach()) * length  # the value has the bias: this adds its gradient


def _difference_rows(positive: torch.Tensor, classes: int, count: int) -> torch.Tensor:
    """Tell which of the volumes (B, C, s) each difference adds and subtracts: (2, B, C - 1, s)."""
    clip, attribute = (torch.arange(n, device=positive.device) for n in (len(positive), count))
    negative = other_classes(positive, classes)
    both = torch.stack([positive[:, None].expand_as(negative), negative])[..., None]
    return (clip[:, None, None] * classes + both) * count + attribute


def attribute_values(scores: Scores, maps: Maps) -> torch.Tensor:
    """Return max over tubes of w_s . h + b_s, differentiable in w_s and b_s: (B, S)."""
    bias = scores.attribute_bias
    added = bias.detach().view(-1, 1, 1, 1, 1)

    def find(_: slice, volumes: torch.Tensor) -> list[Subpath]:
        return [max_subpath(volumes.add_(added))]

    rows = torch.arange(len(maps[0]) * len(bias), device=bias.device).view(1, -1, len(bias))
    weights = [kernel[0] for kernel in scores.attribute_kernels()]
    value, length = _tube_values(scores, maps, find, rows, weights)
    return value + (bias - bias.detach()) * length  # the value has the bias: this adds its gradient


def volume_bytes(scores: Scores, count: int) -> int:
    """Bytes of so many score volumes."""
    return scores.attribute_bias.element_size() * count * math.prod(scores.forms.grid) * scores.forms.count


def _chunks(scores: Scores, batch: int, count: int) -> list[slice]:
    """Parts of the batch, as equal as can be, whose volumes, `count` a clip, are not too large."""
    parts = max(1, math.ceil(batch / max(1, VOLUME_BYTES // volume_bytes(scores, count))))
    ends = [batch * i // parts for i in range(parts + 1)]
    return [slice(*pair) for pair in itertools.pairwise(ends)]


def _tube_values(
    scores: Scores,
    maps: Maps,
    find: Find,
    rows: torch.Tensor,
    weights: Sequence[torch.Tensor],
    gains: Sequence[torch.Tensor] = (),
    chosen: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Values (B, ...) of the tubes that `find` finds in volumes, summed over its searches, and their lengths.

    rows: (1 or 2, B, ...) the volumes that a value adds and, if two, subtracts, counted through the batch.
    weights: per scale (n, 9, d). gains: none, or per scale (B, s, 9, d), which weights are multiplied by for n x s
        volumes a clip. Values are differentiable in these two, not in the maps.
    chosen: (B, c), which c of the n weights each clip has volumes of, where there are gains; all by default.
    """
    found: tuple[torch.Tensor, torch.Tensor]
    found = _TubeValues.apply(scores, maps, find, rows, chosen, *weights, *gains)  # type: ignore[no-untyped-call]
    return found


class _TubeValues(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        scores: Scores,
        maps: Maps,
        find: Find,
        rows: torch.Tensor,
        chosen: torch.Tensor | None,
        *factors: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        weights, gains = factors[: len(maps)], factors[len(maps) :]
        own = len(weights[0]) if chosen is None else chosen.shape[1]
        ctx.count, ctx.chosen = own * (gains[0].shape[1] if gains else 1), chosen
        ctx.scores, ctx.parts = scores, _chunks(scores, len(maps[0]), ctx.count)
        with looking_later() as ctx.unseen:
            found = [
                find(part, scores.volumes([h[part] for h in maps], _kernels(weights, gains, part, chosen)))
                for part in ctx.parts
            ]
        paths = [[torch.cat(parts) for parts in zip(*search, strict=True)] for search in zip(*found, strict=True)]
        value, length = (sum(each[1:], each[0]) for each in zip(*((p[0], p[2] - p[1]) for p in paths), strict=True))
        if value.is_cuda and any(ctx.needs_input_grad):
            ctx.unseen.fetch()
        else:
            ctx.unseen.look()
        ctx.save_for_backward(torch.stack([path[3] for path in paths]), rows, *maps, *factors)
        ctx.mark_non_differentiable(length)
        return value, length

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor, _: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        scales = len(ctx.scores.channels)
        cells, rows, *rest = ctx.saved_tensors  # (sides, B, ..., T, 3), (1 or 2, B, ...)
        maps, weights, gains = rest[:scales], rest[scales : 2 * scales], rest[2 * scales :]
        own = [rows[:, part].flatten(1) - part.start * ctx.count for part in ctx.parts]
        each = grad[0].numel()  # paths of a clip
        clip = rows[0].flatten() // ctx.count
        for_weights, for_gains = [], []
        for scale, bags in enumerate(path_bags(ctx.scores, maps, cells.flatten(1, -3), clip, grad.flatten())):
            parts: list[torch.Tensor] = []
            total = torch.zeros_like(weights[scale])
            for part, places in zip(ctx.parts, own, strict=True):
                items, size = slice(part.start * each, part.stop * each), part.stop - part.start
                w = _chosen(weights[scale], ctx.chosen, part)  # (b or 1, n, 9, d)
                gradient = pooled(bags, items, places, size * ctx.count).view(size, w.shape[1], -1, *w.shape[2:])
                if gains:
                    parts.append((gradient * w[:, :, None]).sum(1))
                    gradient *= gains[scale][part][:, None]
                if ctx.chosen is None:
                    total += gradient.sum((0, 2))
                else:
                    total.index_add_(0, ctx.chosen[part].flatten(), gradient.sum(2).flatten(0, 1))
            for_weights.append(total)
            for_gains += [torch.cat(parts)] if gains else []
        ctx.unseen.look()
        return None, None, None, None, None, *for_weights, *for_gains


def _chosen(weights: torch.Tensor, chosen: torch.Tensor | None, part: slice) -> torch.Tensor:
    """Weights (n, 9, d) of a chunk's clips: (1, n, 9, d), or of those chosen for each clip (b, c, 9, d)."""
    return weights[None] if chosen is None else weights[chosen[part]]


def _kernels(weights: Maps, gains: Maps, part: slice, chosen: torch.Tensor | None) -> Iterable[torch.Tensor]:
    """Kernels (b or 1, ..., 9, d) of a chunk, made one scale after the other."""
    own = (_chosen(w, chosen, part) for w in weights)
    if not gains:
        return own
    return (w[:, :, None] * gain[part][:, None] for w, gain in zip(own, gains, strict=True))
