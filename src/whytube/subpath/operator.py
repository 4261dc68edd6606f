"""The layer as a torch operator, `whytube::subpath`, and the choice of kernel behind it.

    subpath(volumes, positive, negative, lengths, classes, radius, fixed, maximum) -> (value, start, stop, cells)

`Job` says what the arguments are.

value (N,) is float64 for float64 volumes and float32 otherwise; start, stop (N,) and cells (N, T, 3) are int64. An item
without any admissible cell has value -inf (+inf for the minimum), start = stop = 0 and all cells -1.

The search runs without a tape. Its derivative needs only the path: 1 on its cells, 0 elsewhere (`subpath_spread`).
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from whytube.checks import check_choice, fail
from whytube.errors import ArgumentError
from whytube.subpath import reference

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whytube.subpath.reference import Found

BACKENDS = ("auto", "reference", "cpu", "cuda")

_forced: ContextVar[str] = ContextVar("subpath_backend", default="auto")


class Job(NamedTuple):
    """Find the best path of every item.

    Without `positive` each of the R volumes is an item of its own, N = R. With it, R runs over (B, classes, I) and the
    N items over (B, I, negatives): item (b, i, n) is the volume of class positive[b] minus that of class
    negative[b, n], subtracted on the way and never stored.

    Attributes:
        volumes: (R, K, T, H, W) scores.
        positive: (B,) class indices, or None.
        negative: (B, negatives) class indices; None for all classes but the positive one.
        lengths: (B,), or (R,) without `positive`: the time steps that count. None for all.
        classes: how many there are; 1 without `positive`.
        radius: cells a path may move per step.
        fixed: whether a path keeps its form.
        maximum: whether the largest sum is wanted, or the smallest.
    """

    volumes: torch.Tensor
    positive: torch.Tensor | None
    negative: torch.Tensor | None
    lengths: torch.Tensor | None
    classes: int
    radius: int
    fixed: bool
    maximum: bool

    def counts(self) -> tuple[int, int, int]:
        """Items in all (N), volumes per class (I), and negatives per volume; N, 1, 1 without `positive`."""
        return count_items(self.volumes.shape[0], self.positive, self.negative, self.classes)

    @property
    def items(self) -> int:
        """How many paths are to be found, N."""
        return self.counts()[0]

    def rows(self) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
        """Which volumes each item adds and subtracts, and its length: (N,) or None, see `item_rows`."""
        plus, minus = item_rows(self.volumes.shape[0], self.positive, self.negative, self.classes)
        if self.positive is None or self.lengths is None:
            return plus, minus, self.lengths
        each = self.items // len(self.lengths)
        return plus, minus, self.lengths[:, None].expand(-1, each).flatten()

    def check_value(self, value: torch.Tensor) -> None:
        """Fail on NaN and on values beyond all bounds. Waits for the device, unless a CUDA graph is recorded."""
        if value.is_cuda and torch.cuda.is_current_stream_capturing():
            return
        value = value.detach().cpu()
        seen = value.numpy()
        if (seen < np.inf).all() if self.maximum else (seen > -np.inf).all():
            return
        self.check_indices()
        name = "`scores`" if self.positive is None else "`m`"  # as the layer's callers know it
        sign, other = ("+", "-") if self.maximum else ("-", "+")
        # A difference of infinities may be NaN, so that only a volume of its own has cells to forbid.
        forbid = f". A cell that no path may enter is {other}inf" if self.positive is None else ""
        nans = value.isnan().nonzero().flatten()
        if len(nans):
            raise ArgumentError(
                f"{name} must not contain NaN: {len(nans)} of {len(value)} items do, the first is item {int(nans[0])}"
                f"{forbid}. Look for a diverged model or 0/0 upstream"
            )
        first = int((~value.isfinite()).nonzero()[0])
        raise ArgumentError(f"{name} must not contain {sign}inf: item {first} does, or its path sum overflows{forbid}")

    def check_indices(self) -> None:
        """Fail on classes and lengths that do not exist."""
        for index, name, last in (
            (self.positive, "positive", self.classes - 1),
            (self.negative, "negative", self.classes - 1),
            (self.lengths, "lengths", self.volumes.shape[2]),
        ):
            if index is not None and bool(((index < 0) | (index > last)).any()):
                raise fail(name, f"from 0 to {last}", f"values from {int(index.min())} to {int(index.max())}")


def other_classes(positive: torch.Tensor, classes: int) -> torch.Tensor:
    """All classes but the positive one, in ascending order: (B,) -> (B, classes - 1)."""
    others = torch.arange(classes - 1, device=positive.device)
    return others + (others >= positive[:, None])


def count_items(
    rows: int, positive: torch.Tensor | None, negative: torch.Tensor | None, classes: int
) -> tuple[int, int, int]:
    """Items in all, volumes per class, and negatives per volume."""
    if positive is None:
        return rows, 1, 1
    negatives = classes - 1 if negative is None else negative.shape[1]
    return rows // classes * negatives, rows // max(1, positive.shape[0] * classes), negatives


def item_rows(
    rows: int, positive: torch.Tensor | None, negative: torch.Tensor | None, classes: int
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Which of `rows` volumes each item adds and subtracts: (N,), -1 for an unknown class; None without `positive`."""
    if positive is None:
        return None, None
    if negative is None:
        negative = other_classes(positive, classes)
    batch, n = negative.shape
    _, inner, _ = count_items(rows, positive, negative, classes)
    within = torch.arange(inner, device=positive.device)[:, None]

    def row(index: torch.Tensor) -> torch.Tensor:  # (B, n) -> (B, inner, n)
        first = torch.arange(batch, device=index.device)[:, None] * classes + index
        legal = (index >= 0) & (index < classes)
        return torch.where(legal[:, None], first[:, None] * inner + within, -1)

    return row(positive[:, None]).expand(batch, inner, n).flatten(), row(negative).flatten()


@contextlib.contextmanager
def use_backend(name: str) -> Iterator[None]:
    """Force a kernel inside the block: "reference", "cpu" (numba), "cuda" (Triton), or "auto"."""
    token = _forced.set(check_choice(name, "name", BACKENDS))
    try:
        yield
    finally:
        _forced.reset(token)


def backend_for(device: torch.device) -> str:
    """Name the kernel that a search on `device` runs through."""
    name = _forced.get()
    if name == "auto":
        name = os.environ.get("WHYTUBE_SUBPATH_BACKEND", "auto")
        check_choice(name, "WHYTUBE_SUBPATH_BACKEND", BACKENDS)
    if name != "auto":
        return name
    if device.type == "cuda" and _installed("triton"):
        return "cuda"
    if device.type == "cpu" and _installed("numba"):
        return "cpu"
    return "reference"


@cache
def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def search(job: Job) -> Found:
    """Run the operator; in plain eager mode without the dispatcher, whose Python hops cost as much as a GPU search."""
    volumes = job.volumes
    if torch.compiler.is_compiling() or type(volumes) not in (torch.Tensor, torch.nn.Parameter):
        found: Found = torch.ops.whytube.subpath(*job)
    elif volumes.requires_grad and torch.is_grad_enabled():
        taped = backend_for(volumes.device) == "cuda" and job.items > 0
        found = _search_taped(job) if taped else _Subpath.apply(*job)  # type: ignore[no-untyped-call]
    else:
        found = _subpath(*job)
    return found


def _search_taped(job: Job) -> Found:
    """Search on a GPU for training: nothing waits for the device before backward has queued all its work.

    The values travel to the host meanwhile and are checked at the end of backward, before any weight can change.
    """
    from whytube.subpath import cuda

    found, last = cuda.search_taped(job)
    value = found[0].detach()
    if value.is_cuda and not torch.cuda.is_current_stream_capturing():
        copy = value.to("cpu", non_blocking=True)
        event = torch.cuda.current_stream(value.device).record_event()
        untaped = job._replace(volumes=job.volumes.detach())

        def check(_: torch.Tensor) -> None:
            event.synchronize()
            untaped.check_value(copy)

        last.register_hook(check)  # type: ignore[no-untyped-call]
    else:
        job.check_value(value)
    return found


def _subpath(*arguments: Any) -> Found:
    job = Job(*arguments)
    if job.items == 0:
        return _empty(*job)
    backend = backend_for(job.volumes.device)
    if backend == "cuda":  # imported on first use, like numba's: both bring a compiler along
        from whytube.subpath import cuda

        found = cuda.search(job)
    elif backend == "cpu":
        from whytube.subpath import cpu

        found = cpu.search(job)
    else:
        job.check_indices()  # standard operations would fail on such indices in their own words, or not at all
        found = reference.search(job)
    job.check_value(found[0])
    return found


def _empty(*arguments: Any) -> Found:
    job = Job(*arguments)
    volumes, n = job.volumes, job.items
    value = volumes.new_empty(n, dtype=torch.promote_types(volumes.dtype, torch.float32))
    start = volumes.new_empty(n, dtype=torch.long)
    return value, start, torch.empty_like(start), volumes.new_empty((n, volumes.shape[2], 3), dtype=torch.long)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Found) -> None:
    job = Job(*inputs)
    _, start, stop, cells = output
    ctx.mark_non_differentiable(start, stop, cells)
    ctx.set_materialize_grads(False)
    _keep(ctx, Paths(cells, job.positive, job.negative, job.classes, job.volumes.shape))
    ctx.dtype, ctx.backend = job.volumes.dtype, _forced.get()  # backward may run on another thread


def _backward(ctx: Any, grad: torch.Tensor | None, *_: None) -> tuple[torch.Tensor | None, ...]:
    dense = None
    if grad is not None:
        *paths, shape = _kept(ctx)
        with use_backend(ctx.backend):
            dense = torch.ops.whytube.subpath_spread(grad.to(ctx.dtype), *paths, list(shape))
    return dense, *(None for _ in Job._fields[1:])


class _Subpath(torch.autograd.Function):
    """The operator without the dispatcher, for kernels that run on the host."""

    forward = staticmethod(_subpath)
    setup_context = staticmethod(_save)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[torch.Tensor | None, ...]:
        return _backward(ctx, *grads)


class Paths(NamedTuple):
    """Paths that were found in volumes of `shape` (R, K, T, H, W): cells (N, T, 3); the rest as in `Job`."""

    cells: torch.Tensor
    positive: torch.Tensor | None
    negative: torch.Tensor | None
    classes: int
    shape: Sequence[int]

    def counts(self) -> tuple[int, int, int]:
        """Items in all, volumes per class, and negatives per volume."""
        return count_items(self.shape[0], self.positive, self.negative, self.classes)

    def flat_index(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Where the paths run in the flat volumes: inside (N, T), indices (N, T) to add at and to subtract at."""
        count, k, t, h, w = self.shape
        form, row, col = self.cells.clamp_min(0).unbind(-1)
        steps = torch.arange(t, device=self.cells.device)
        offset = ((form * t + steps) * h + row) * w + col
        plus, minus = item_rows(count, self.positive, self.negative, self.classes)
        if plus is None:
            plus = torch.arange(count, device=self.cells.device)
        size = k * t * h * w
        return (
            self.cells[:, :, 0] >= 0,
            plus[:, None] * size + offset,
            None if minus is None else minus[:, None] * size + offset,
        )


def _keep(ctx: Any, paths: Paths) -> None:
    *tensors, ctx.classes, ctx.shape = paths
    ctx.save_for_backward(*tensors)


def _kept(ctx: Any) -> Paths:
    return Paths(*(*ctx.saved_tensors, ctx.classes, ctx.shape))


def _spread(weight: torch.Tensor, *arguments: Any) -> torch.Tensor:
    """Add `weight` (N,) onto the cells of each path, its negative for the class subtracted: (R, K, T, H, W)."""
    paths = Paths(*arguments)
    if not len(weight):
        return weight.new_zeros(paths.shape)
    if backend_for(weight.device) == "cuda":
        from whytube.subpath import cuda

        return cuda.spread(weight, paths)
    if weight.device.type == "cpu":
        # numpy's zeros come untouched from the system: several times cheaper than filling, also once they are read.
        blank = np.zeros(math.prod(paths.shape) * weight.element_size(), dtype=np.uint8)
        dense = torch.from_numpy(blank).view(weight.dtype)
    else:
        dense = torch.zeros(math.prod(paths.shape), dtype=weight.dtype, device=weight.device)
    inside, plus, minus = paths.flat_index()
    share = torch.where(inside, weight[:, None], 0).flatten()
    dense.scatter_add_(0, plus.flatten(), share)
    if minus is not None:
        dense.scatter_add_(0, minus.flatten(), -share)
    return dense.view(paths.shape)


def _save_spread(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:  # noqa: ARG001
    _keep(ctx, Paths(*inputs[1:]))


def _backward_spread(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    inside, plus, minus = _kept(ctx).flat_index()
    along = grad.flatten()[plus]
    if minus is not None:
        along = along - grad.flatten()[minus]
    return (torch.where(inside, along, 0).sum(1),) + (None,) * 5


torch.library.define(
    "whytube::subpath",
    "(Tensor volumes, Tensor? positive, Tensor? negative, Tensor? lengths, SymInt classes, int radius, bool fixed,"
    " bool maximum) -> (Tensor value, Tensor start, Tensor stop, Tensor cells)",
    tags=(torch.Tag.pt2_compliant_tag,),
)
torch.library.impl("whytube::subpath", "CompositeExplicitAutograd", _subpath)
torch.library.register_fake("whytube::subpath", _empty)
torch.library.register_autograd("whytube::subpath", _backward, setup_context=_save)

torch.library.define(
    "whytube::subpath_spread",
    "(Tensor weight, Tensor cells, Tensor? positive, Tensor? negative, SymInt classes, SymInt[] shape) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)
torch.library.impl("whytube::subpath_spread", "CompositeExplicitAutograd", _spread)
torch.library.register_fake("whytube::subpath_spread", lambda weight, *rest: weight.new_empty(rest[-1]))
torch.library.register_autograd("whytube::subpath_spread", _backward_spread, setup_context=_save_spread)
