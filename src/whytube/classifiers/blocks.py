"""Run a convolutional network again only where its input changed (Nakandala et al. 2019, "Krypton").

What a tube covers reaches a block of every map: its bounding box, wider by the filters on the way. Only that block is
computed again, from the kept map before it; the result is exact, to rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from whytube.classifiers.inference import Pads, Triple

Block = tuple[slice, slice, slice]
"""A box of cells of a map, in T, H, W."""


class Step(NamedTuple):
    """A part of a network whose output cells see only input cells within a kernel, padded as "SAME" is.

    run: a block of the input (B, d, t, h, w) and how to pad it -> the block of the output.
    """

    kernel: Triple
    stride: Triple
    run: Callable[[Tensor, Pads], Tensor]


def same_padding(size: Sequence[int], kernel: Triple, stride: Triple) -> Pads:
    """TensorFlow's "SAME": how much to pad before and after each of T, H, W."""
    totals = (max((-(-n // s) - 1) * s + k - n, 0) for n, k, s in zip(size, kernel, stride, strict=True))
    return [(total // 2, total - total // 2) for total in totals]


def run_all(steps: Sequence[Step], x: Tensor) -> list[Tensor]:
    """Run on whole (B, d, T, H, W); return that and every step's output."""
    maps = [x]
    for step in steps:
        maps.append(step.run(maps[-1], same_padding(maps[-1].shape[2:], step.kernel, step.stride)))
    return maps


def run_again(steps: Sequence[Step], maps: Sequence[Tensor], changed: Tensor, where: Block) -> Tensor:
    """Last output once a block of the input is `changed`, from the maps of `run_all` of one clip.

    maps: each (1, d, T, H, W), as before the change. changed: (1, d, t, h, w), what stands at `where` now.
    """
    for step, before in zip(steps, maps[:-1], strict=True):
        reached, needed, pads = spread(where, before.shape[2:], step.kernel, step.stride)
        changed, where = step.run(_pasted(before, changed, where, needed), pads), reached
    return _pasted(maps[-1], changed, where, (slice(None),) * 3)


def spread(where: Block, size: Sequence[int], kernel: Triple, stride: Triple) -> tuple[Block, Block, Pads]:
    """Cells of the output that see a block of an input of this size, the cells that they see, and the zeros beside."""
    reached, needed, pads = [], [], []
    for one, n, k, s, (before, _) in zip(where, size, kernel, stride, same_padding(size, kernel, stride), strict=True):
        first = max(0, -(-(one.start + before - k + 1) // s))
        end = min(-(-n // s), (one.stop - 1 + before) // s + 1)
        start, stop = first * s - before, (end - 1) * s - before + k
        reached.append(slice(first, end))
        needed.append(slice(max(0, start), min(n, stop)))
        pads.append((max(0, -start), max(0, stop - n)))
    return tuple(reached), tuple(needed), pads  # type: ignore[return-value]


def _pasted(kept: Tensor, changed: Tensor, where: Block, part: Block) -> Tensor:
    """Copy a part of a kept map, with what changed put into it."""
    x = kept[(..., *part)].clone()
    begins = [whole.start or 0 for whole in part]
    t, h, w = (slice(one.start - at, one.stop - at) for one, at in zip(where, begins, strict=True))
    x[..., t, h, w] = changed
    return x
