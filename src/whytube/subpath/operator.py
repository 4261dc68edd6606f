"""The layer as a torch operator, `whytube::subpath`, and the choice of kernel behind it.

    subpath(volumes, positive, negative, lengths, classes, radius, fixed, maximum) -> (value, start, stop, cells)

`Job` says what the arguments are.

value (N,) is float64 for float64 volumes and float32 otherwise; start, stop (N,) and cells (N, T, 3) are int64. An item
without any admissible cell has value -inf (+inf for the minimum), start = stop = 0 and all cells -1.

The operator searches without a tape and has no derivative. `search` adds the derivative afterwards, in one way for all
kernels and for traced models: the scores are gathered along the path, so it is 1 on the path's cells and 0 elsewhere.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
from contextvars import ContextVar
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch.autograd import forward_ad

from whytube.checks import check_choice, fail
from whytube.errors import ArgumentError
from whytube.subpath import reference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whytube.subpath.reference import Found

Tape: TypeAlias = tuple[torch.Tensor, torch.Tensor]
"""Where paths lie in the flat volumes, and with what weight; see `Job.tape`."""
BACKENDS = ("auto", "reference", "cpu", "cuda")

_forced: ContextVar[str] = ContextVar("subpath_backend", default="auto")
_later: ContextVar[Unseen | None] = ContextVar("subpath_unseen", default=None)


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
        rows = self.volumes.shape[0]
        if self.positive is None:
            return rows, 1, 1
        negatives = self.classes - 1 if self.negative is None else self.negative.shape[1]
        return rows // self.classes * negatives, rows // max(1, self.positive.shape[0] * self.classes), negatives

    def rows(self) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
        """Which volumes each item adds and subtracts, and its length: (N,) each.

        A row is -1 for an unknown class; rows are None without `positive`, lengths where all steps count.
        """
        if self.positive is None:
            return None, None, self.lengths
        positive, negative, classes = self.positive, self.negative, self.classes
        if negative is None:
            negative = other_classes(positive, classes)
        batch, n = negative.shape
        inner = self.counts()[1]
        within = torch.arange(inner, device=positive.device)[:, None]

        def row(index: torch.Tensor) -> torch.Tensor:  # (B, n) -> (B, inner, n)
            first = torch.arange(batch, device=index.device)[:, None] * classes + index
            legal = (index >= 0) & (index < classes)
            return torch.where(legal[:, None], first[:, None] * inner + within, -1)

        lengths = self.lengths
        if lengths is not None:
            lengths = lengths[:, None].expand(-1, inner * n).flatten()
        return row(positive[:, None]).expand(batch, inner, n).flatten(), row(negative).flatten(), lengths

    def tape(self, cells: torch.Tensor, dtype: torch.dtype) -> Tape:
        """Where `cells` (N, T, 3) lie in the flat volumes, and with what weight: (1, N, T), for differences (2, N, T).

        The weight is 1, for what is subtracted -1, off the path 0; there the index is some element that exists.
        """
        count, k, t, h, w = self.volumes.shape
        step, size = h * w, k * t * h * w
        form, row, col = cells.unbind(-1)
        offset = torch.arange(0, t * step, step, device=cells.device) + col
        offset = offset.add(row, alpha=w).add(form, alpha=t * step)
        weight = (form >= 0).to(dtype)[None]
        plus, minus, _ = self.rows()
        if plus is None or minus is None:
            first = torch.arange(0, count * size, size, device=cells.device)[None]
        else:
            first, weight = torch.stack([plus, minus]) * size, torch.cat([weight, -weight])
        return (first[:, :, None] + offset).clamp_min(0), weight

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


class Unseen:
    """Values of searches that nobody has looked at: those of many searches can be waited for together, and late."""

    def __init__(self) -> None:
        self._jobs: list[Job] = []
        self._values: list[torch.Tensor] = []
        self._event: torch.cuda.Event | None = None

    def add(self, job: Job, value: torch.Tensor) -> None:
        """Keep a job, without its volumes, and its value (N,)."""
        self._jobs.append(job._replace(volumes=job.volumes.new_empty((0, *job.volumes.shape[1:]))))
        self._values.append(value)

    def fetch(self) -> None:
        """Let values travel from a GPU to the host, without waiting for them."""
        if not self._values or torch.cuda.is_current_stream_capturing():
            return
        together = torch.cat(self._values)
        counts = [len(value) for value in self._values]
        self._values = list(torch.split(together.to("cpu", non_blocking=True), counts))
        self._event = torch.cuda.current_stream(together.device).record_event()

    def look(self) -> None:
        """Fail as a search does on values that are not finite."""
        if self._event is not None:
            self._event.synchronize()
        for job, value in zip(self._jobs, self._values, strict=True):
            job.check_value(value)


@contextlib.contextmanager
def looking_later() -> Iterator[Unseen]:
    """Let searches in the block, where they have no tape of their own, leave their values to be looked at."""
    token = _later.set(unseen := Unseen())
    try:
        yield unseen
    finally:
        _later.reset(token)


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


def is_transformed() -> bool:
    """Whether torch.func (vmap, grad, jvp) or forward-mode differentiation is at work; tensors do not show it."""
    active: bool = torch._C._are_functorch_transforms_active()
    return active or forward_ad._current_level >= 0


def is_eager(tensor: torch.Tensor) -> bool:
    """Whether a tensor has values that may be looked at: it is not traced, transformed or on the meta device."""
    plain = type(tensor) in (torch.Tensor, torch.nn.Parameter) and not tensor.is_meta
    return plain and not torch.compiler.is_compiling() and not is_transformed()


def search(job: Job) -> Found:
    """Find the best paths; `value` is differentiable where gradients are recorded.

    In plain eager mode the dispatcher is left out: its Python hops cost as much as a GPU search.
    """
    volumes = job.volumes
    eager, transformed = is_eager(volumes), is_transformed()
    taped = transformed or (volumes.requires_grad and torch.is_grad_enabled())
    job, tape = job._replace(volumes=volumes.detach()), None
    if eager:
        found, tape = _find(job, taped=taped)
        if not (taped and found[0].is_cuda):
            look = job.check_value if (later := _later.get()) is None else partial(later.add, job)
            look(found[0])
    else:
        found = torch.ops.whytube.subpath(*job)
    if not taped:
        return found
    value, start, stop, cells = found
    flat = volumes.reshape(-1)
    if eager and value.is_cuda:
        _check_in_backward(job, value, flat)
    index, weight = tape or job.tape(cells, value.dtype)
    # One gather for both classes of a difference: two would make two gradients of the volumes' size.
    take = _Take.apply if eager and value.device.type == "cpu" and len(value) else _gather
    along = take(flat, index.flatten()).to(value.dtype).view_as(index) * weight
    # The kernel's value, to the bit, with the gradient of the gathered sum, whose last bits may differ. Few nodes on
    # the tape: on a GPU each costs its host more than the search costs the device.
    if eager:
        total = along.sum((0, 2))
        total.detach().copy_(value)
        return total, start, stop, cells
    total = torch.where(weight == 0, 0, along).sum((0, 2))  # a forbidden cell off the path is -inf, and -inf * 0 NaN
    return value + (total - total.detach()), start, stop, cells


def _gather(flat: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return flat.gather(0, index)


class _Take(torch.autograd.Function):
    """`_gather` for eager CPU tensors, with a gradient that costs less.

    Autograd's own fills a new tensor with zeros. numpy's zeros come untouched from the system, in large pages: forward
    and backward for 920 x 8 x 16 x 14 x 14 scores take 25 ms instead of 57, the gradient read once afterwards included.
    """

    @staticmethod
    def forward(flat: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return _gather(flat, index)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:  # noqa: ARG004
        flat, index = inputs
        ctx.save_for_backward(index)
        ctx.size = flat.numel()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        (index,) = ctx.saved_tensors
        dense = torch.from_numpy(np.zeros(ctx.size * grad.element_size(), dtype=np.uint8)).view(grad.dtype)
        return dense.scatter_add_(0, index, grad), None


def _check_in_backward(job: Job, value: torch.Tensor, flat: torch.Tensor) -> None:
    """Check `value` once backward has queued all its work: a search for training never waits for the GPU.

    The values travel to the host meanwhile, and are looked at before any weight can change.
    """
    if torch.cuda.is_current_stream_capturing():
        return
    copy = value.to("cpu", non_blocking=True)
    event = torch.cuda.current_stream(value.device).record_event()

    def check(_: torch.Tensor) -> None:
        event.synchronize()
        job.check_value(copy)

    flat.register_hook(check)  # type: ignore[no-untyped-call]


def _find(job: Job, *, taped: bool) -> tuple[Found, Tape | None]:
    """Search with the kernel of the device; the CUDA kernel also gives the `Job.tape`, where it is needed."""
    if job.counts()[0] == 0:
        return _empty(*job), None
    backend = backend_for(job.volumes.device)
    if backend == "cuda":  # imported on first use, like numba's: both bring a compiler along
        from whytube.subpath import cuda

        return cuda.search(job, taped=taped)
    if backend == "cpu":
        from whytube.subpath import cpu

        return cpu.search(job, *job.rows()), None
    job.check_indices()  # standard operations would fail on such indices in their own words, or not at all
    return reference.search(job, *job.rows()), None


def _subpath(*arguments: Any) -> Found:
    job = Job(*arguments)
    found, _ = _find(job, taped=False)
    job.check_value(found[0])
    return found


def _empty(*arguments: Any) -> Found:
    job = Job(*arguments)
    volumes, n = job.volumes, job.counts()[0]
    value = volumes.new_empty(n, dtype=torch.promote_types(volumes.dtype, torch.float32))
    start = volumes.new_empty(n, dtype=torch.long)
    return value, start, torch.empty_like(start), volumes.new_empty((n, volumes.shape[2], 3), dtype=torch.long)


def _vmapped(info: Any, dims: tuple[int | None, ...], *arguments: Any) -> tuple[Found, tuple[int, ...]]:
    """Search a batch of jobs as one: B, and with it R and N, begins with the new dimension."""
    size = info.batch_size

    def whole(tensor: Any, dim: int | None) -> Any:
        if not isinstance(tensor, torch.Tensor):
            return tensor
        given = tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
        return given.flatten(0, 1)

    found = torch.ops.whytube.subpath(*map(whole, arguments, dims))
    value, start, stop, cells = (x.unflatten(0, (size, -1)) for x in found)
    return (value, start, stop, cells), (0, 0, 0, 0)


torch.library.define(
    "whytube::subpath",
    "(Tensor volumes, Tensor? positive, Tensor? negative, Tensor? lengths, SymInt classes, int radius, bool fixed,"
    " bool maximum) -> (Tensor value, Tensor start, Tensor stop, Tensor cells)",
    tags=(torch.Tag.pt2_compliant_tag,),
)
torch.library.impl("whytube::subpath", "CompositeExplicitAutograd", _subpath)
torch.library.register_fake("whytube::subpath", _empty)
torch.library.register_vmap("whytube::subpath", _vmapped)
