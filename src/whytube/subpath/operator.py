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
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from whytube.checks import check_choice
from whytube.subpath import reference
from whytube.subpath.job import Job, item_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whytube.subpath.reference import Found

BACKENDS = ("auto", "reference", "cpu", "cuda")

_forced: ContextVar[str] = ContextVar("subpath_backend", default="auto")


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
    ctx.save_for_backward(cells, job.positive, job.negative)
    ctx.shape, ctx.dtype, ctx.classes = job.volumes.shape, job.volumes.dtype, job.classes
    ctx.backend = _forced.get()  # backward may run on another thread


def _backward(ctx: Any, grad: torch.Tensor | None, *_: None) -> tuple[torch.Tensor | None, ...]:
    dense = None
    if grad is not None:
        cells, positive, negative = ctx.saved_tensors
        with use_backend(ctx.backend):
            dense = torch.ops.whytube.subpath_spread(
                grad.to(ctx.dtype), cells, positive, negative, ctx.classes, list(ctx.shape)
            )
    return dense, *(None for _ in Job._fields[1:])


class _Subpath(torch.autograd.Function):
    """The operator without the dispatcher, for kernels that run on the host."""

    forward = staticmethod(_subpath)
    setup_context = staticmethod(_save)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[torch.Tensor | None, ...]:
        return _backward(ctx, *grads)


def _spread(
    weight: torch.Tensor,
    cells: torch.Tensor,
    positive: torch.Tensor | None,
    negative: torch.Tensor | None,
    classes: int,
    shape: Sequence[int],
) -> torch.Tensor:
    """Add `weight` (N,) onto the cells of each path, its negative for the class subtracted: (R, K, T, H, W)."""
    if not len(weight):
        return weight.new_zeros(shape)
    if backend_for(weight.device) == "cuda":
        from whytube.subpath import cuda

        return cuda.spread(weight, cells, positive, negative, classes, shape)
    if weight.device.type == "cpu":
        # numpy's zeros come untouched from the system: several times cheaper than filling, also once they are read.
        blank = np.zeros(math.prod(shape) * weight.element_size(), dtype=np.uint8)
        dense = torch.from_numpy(blank).view(weight.dtype)
    else:
        dense = torch.zeros(math.prod(shape), dtype=weight.dtype, device=weight.device)
    inside, plus, minus = _flat_index(cells, positive, negative, classes, shape)
    share = torch.where(inside, weight[:, None], 0).flatten()
    dense.scatter_add_(0, plus.flatten(), share)
    if minus is not None:
        dense.scatter_add_(0, minus.flatten(), -share)
    return dense.view(shape)


def _save_spread(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:  # noqa: ARG001
    _, cells, positive, negative, ctx.classes, ctx.shape = inputs
    ctx.save_for_backward(cells, positive, negative)


def _backward_spread(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    cells, positive, negative = ctx.saved_tensors
    inside, plus, minus = _flat_index(cells, positive, negative, ctx.classes, ctx.shape)
    along = grad.flatten()[plus]
    if minus is not None:
        along = along - grad.flatten()[minus]
    return (torch.where(inside, along, 0).sum(1),) + (None,) * 5


def _flat_index(
    cells: torch.Tensor,
    positive: torch.Tensor | None,
    negative: torch.Tensor | None,
    classes: int,
    shape: Sequence[int],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Where the paths run in a flat tensor of `shape`: inside (N, T), indices (N, T) to add at and to subtract at."""
    count, k, t, h, w = shape
    form, row, col = cells.clamp_min(0).unbind(-1)
    steps = torch.arange(t, device=cells.device)
    offset = ((form * t + steps) * h + row) * w + col
    plus, minus = item_rows(count, positive, negative, classes)
    if plus is None:
        plus = torch.arange(count, device=cells.device)
    size = k * t * h * w
    return (
        cells[:, :, 0] >= 0,
        plus[:, None] * size + offset,
        None if minus is None else minus[:, None] * size + offset,
    )


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
