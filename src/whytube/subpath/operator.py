"""The layer as a torch operator, `whytube::subpath`, and the choice of kernel behind it.

    subpath(volumes, positive, negative, lengths, classes, radius, fixed, maximum) -> (value, start, stop, cells)

`volumes` (R, K, T, H, W) holds R score volumes. Without `positive` each is an item of its own, N = R. With it, R runs
over (B, classes, I) and the N items over (B, I, negatives): item (b, i, n) is the volume of class positive[b] minus
that of class negative[b, n], subtracted on the way and never stored. Without `negative` the negatives are all classes
but the positive one. `lengths` (B,), or (R,) without `positive`, are the time steps that count.

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
from whytube.errors import ArgumentError
from whytube.subpath import reference

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


def search(
    volumes: torch.Tensor,
    positive: torch.Tensor | None,
    negative: torch.Tensor | None,
    lengths: torch.Tensor | None,
    classes: int,
    radius: int,
    fixed: bool,
    maximum: bool,
) -> Found:
    """Run the operator; in plain eager mode without the dispatcher, whose Python hops cost as much as a GPU search."""
    arguments = (volumes, positive, negative, lengths, classes, radius, fixed, maximum)
    if torch.compiler.is_compiling() or type(volumes) not in (torch.Tensor, torch.nn.Parameter):
        found: Found = torch.ops.whytube.subpath(*arguments)
    elif volumes.requires_grad and torch.is_grad_enabled():
        taped = backend_for(volumes.device) == "cuda" and items(*arguments[:3], classes) > 0
        found = _search_taped(*arguments) if taped else _Subpath.apply(*arguments)  # type: ignore[no-untyped-call]
    else:
        found = _subpath(*arguments)
    return found


def _search_taped(
    volumes: torch.Tensor,
    positive: torch.Tensor | None,
    negative: torch.Tensor | None,
    lengths: torch.Tensor | None,
    classes: int,
    radius: int,
    fixed: bool,
    maximum: bool,
) -> Found:
    """Search on a GPU for training: nothing waits for the device before backward has queued all its work.

    The values travel to the host meanwhile and are checked at the end of backward, before any weight can change.
    """
    from whytube.subpath import cuda

    found, last = cuda.search_taped(volumes, positive, negative, lengths, classes, radius, fixed, maximum)
    value = found[0].detach()
    if value.is_cuda and not torch.cuda.is_current_stream_capturing():
        copy = value.to("cpu", non_blocking=True)
        event = torch.cuda.current_stream(value.device).record_event()

        def check(_: torch.Tensor) -> None:
            event.synchronize()
            _check_value(copy, (volumes.detach(), positive, negative, lengths, classes), maximum)

        last.register_hook(check)  # type: ignore[no-untyped-call]
    else:
        _check_value(value, (volumes, positive, negative, lengths, classes), maximum)
    return found


def _subpath(
    volumes: torch.Tensor,
    positive: torch.Tensor | None,
    negative: torch.Tensor | None,
    lengths: torch.Tensor | None,
    classes: int,
    radius: int,
    fixed: bool,
    maximum: bool,
) -> Found:
    arguments = (volumes, positive, negative, lengths, classes)
    if items(*arguments[:3], classes) == 0:
        return _empty(volumes, positive, negative, lengths, classes)
    backend = backend_for(volumes.device)
    if backend == "cuda":  # imported on first use, like numba's: both bring a compiler along
        from whytube.subpath import cuda

        found = cuda.search(*arguments, radius, fixed, maximum)
    elif backend == "cpu":
        from whytube.subpath import cpu

        found = cpu.search(volumes, *rows(*arguments), radius, fixed, maximum)
    else:
        plus, minus, steps = rows(*arguments)
        _check_indices(*arguments)  # standard operations would fail on such indices in their own words, or not at all
        found = reference.search(volumes, plus, minus, steps, radius, fixed, maximum)
    _check_value(found[0], arguments, maximum)
    return found


def items(volumes: torch.Tensor, positive: torch.Tensor | None, negative: torch.Tensor | None, classes: int) -> int:
    """Count the paths to be found."""
    if positive is None:
        return volumes.shape[0]
    return volumes.shape[0] // classes * (classes - 1 if negative is None else negative.shape[1])


def rows(
    volumes: torch.Tensor,
    positive: torch.Tensor | None,
    negative: torch.Tensor | None,
    lengths: torch.Tensor | None,
    classes: int,
) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    """Which volumes each item adds and subtracts, and its length: (N,) or None; -1 for a class that is not there."""
    if positive is None:
        return None, None, lengths
    if negative is None:
        others = torch.arange(classes - 1, device=positive.device)
        negative = others + (others >= positive[:, None])
    batch, n = negative.shape
    inner = volumes.shape[0] // max(1, batch * classes)
    within = torch.arange(inner, device=positive.device)[:, None]

    def row(index: torch.Tensor) -> torch.Tensor:  # (B, n) -> (B, inner, n)
        first = torch.arange(batch, device=index.device)[:, None] * classes + index
        legal = (index >= 0) & (index < classes)
        return torch.where(legal[:, None], first[:, None] * inner + within, -1)

    plus = row(positive[:, None]).expand(batch, inner, n)
    if lengths is not None:
        lengths = lengths[:, None, None].expand(batch, inner, n).flatten()
    return plus.flatten(), row(negative).flatten(), lengths


def _check_value(value: torch.Tensor, arguments: tuple[Any, ...], maximum: bool) -> None:
    """Fail on NaN and on values beyond all bounds. Waits for the device, which a CUDA graph being recorded forbids."""
    if value.is_cuda and torch.cuda.is_current_stream_capturing():
        return
    value = value.detach().cpu()
    seen = value.numpy()
    if (seen < np.inf).all() if maximum else (seen > -np.inf).all():
        return
    _check_indices(*arguments)
    sign, other = ("+", "-") if maximum else ("-", "+")
    nans = value.isnan().nonzero().flatten()
    if len(nans):
        raise ArgumentError(
            f"`scores` must not contain NaN: {len(nans)} of {len(value)} items do, the first is item {int(nans[0])}. "
            f"A cell that no path may enter is {other}inf; look for a diverged model or 0/0 upstream"
        )
    first = int((~value.isfinite()).nonzero()[0])
    raise ArgumentError(
        f"`scores` must not contain {sign}inf: item {first} does, or its path sum overflows. "
        f"A cell that no path may enter is {other}inf"
    )


def _check_indices(
    volumes: torch.Tensor,
    positive: torch.Tensor | None,
    negative: torch.Tensor | None,
    lengths: torch.Tensor | None,
    classes: int,
) -> None:
    for index, name, last in (
        (positive, "positive", classes - 1),
        (negative, "negative", classes - 1),
        (lengths, "lengths", volumes.shape[2]),
    ):
        if index is not None and bool(((index < 0) | (index > last)).any()):
            low, high = int(index.min()), int(index.max())
            raise ArgumentError(f"`{name}` must be from 0 to {last}, got values from {low} to {high}")


def _empty(
    volumes: torch.Tensor,
    positive: torch.Tensor | None,
    negative: torch.Tensor | None,
    lengths: torch.Tensor | None,  # noqa: ARG001 - the operator's signature
    classes: int,
    *_: object,
) -> Found:
    n = items(volumes, positive, negative, classes)
    value = volumes.new_empty(n, dtype=torch.promote_types(volumes.dtype, torch.float32))
    start = volumes.new_empty(n, dtype=torch.long)
    return value, start, torch.empty_like(start), volumes.new_empty((n, volumes.shape[2], 3), dtype=torch.long)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Found) -> None:
    volumes, positive, negative, _, classes, *_ = inputs
    _, start, stop, cells = output
    ctx.mark_non_differentiable(start, stop, cells)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(cells, positive, negative)
    ctx.shape, ctx.dtype, ctx.classes = volumes.shape, volumes.dtype, classes
    ctx.backend = _forced.get()  # backward may run on another thread


def _backward(ctx: Any, grad: torch.Tensor | None, *_: None) -> tuple[torch.Tensor | None, ...]:
    if grad is None:
        return (None,) * 8
    cells, positive, negative = ctx.saved_tensors
    with use_backend(ctx.backend):
        dense = torch.ops.whytube.subpath_spread(
            grad.to(ctx.dtype), cells, positive, negative, ctx.classes, list(ctx.shape)
        )
    return dense, None, None, None, None, None, None, None


class _Subpath(torch.autograd.Function):
    """The operator without the dispatcher, for kernels that run on the host."""

    @staticmethod
    def forward(*arguments: Any) -> Found:
        volumes, *rest = arguments
        return _subpath(volumes, *rest)

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
    plus, minus, _ = rows(torch.empty(count, 0), positive, negative, None, classes)
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
