"""The maximum-subpath layer: the tube with the largest sum through a volume of scores, and which tube it is."""

from __future__ import annotations

from typing import NamedTuple, TypedDict, Unpack

import torch
from torch import nn

from whytube.checks import check_choice, check_int, check_tensor, fail, shape_of
from whytube.subpath.operator import Job, is_eager, is_transformed, search

FORMS = ("free", "fixed")
MAX_RADIUS = 3
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


class Subpath(NamedTuple):
    """The best path through each score volume; `...` is the batch.

    Attributes:
        value: (...) sum of the scores along the path; differentiable, 1 on the path's cells and 0 elsewhere.
        start: (...) int64, first time step of the path.
        stop: (...) int64, one past its last time step.
        cells: (..., T, 3) int64 (form, row, column) at every time step, -1 outside the path.

    Where no cell is admissible the value is -inf (+inf for a minimum), start = stop = 0 and all cells are -1.
    """

    value: torch.Tensor
    start: torch.Tensor
    stop: torch.Tensor
    cells: torch.Tensor


class Settings(TypedDict, total=False):
    """What may be said to every search; `max_subpath` tells what they mean and which values they have if left out."""

    radius: int
    forms: str
    lengths: torch.Tensor | None


def max_subpath(
    scores: torch.Tensor, *, radius: int = 1, forms: str = "free", lengths: torch.Tensor | None = None
) -> Subpath:
    """Find the non-empty path with the largest sum through every score volume.

    A path has one element per time step, is contiguous in time, starts and ends anywhere, and moves at most `radius`
    rows and columns per step. Ties: a path is extended into the past only where the past is > 0; then the lowest
    (time, row, column, form) wins, at the end and at every step back.

    Args:
        scores: (..., K, T, H, W) floating point; -inf forbids a cell, NaN and +inf are errors.
        radius: cells a path may move per step, 0 to 3 (the paper: 1).
        forms: "free" lets the path change form at every step, "fixed" keeps one of the K forms throughout.
        lengths: (...) integer; time steps from lengths[...] on are padding and never looked at.

    >>> scores = -torch.ones(1, 4, 3, 3)
    >>> scores[0, [1, 2], [0, 1], [2, 2]] = 5.0
    >>> path = max_subpath(scores)
    >>> path.value, path.start, path.stop
    (tensor(10.), tensor(1), tensor(3))
    >>> path.cells.tolist()
    [[-1, -1, -1], [0, 0, 2], [0, 1, 2], [-1, -1, -1]]
    """
    return _search(scores, maximum=True, radius=radius, forms=forms, lengths=lengths)


def min_subpath(scores: torch.Tensor, **settings: Unpack[Settings]) -> Subpath:
    """Find the path with the smallest sum: `max_subpath` with the sign turned, and +inf for a forbidden cell."""
    return _search(scores, maximum=False, **settings)


def max_subpath_difference(
    m: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor | None = None, **settings: Unpack[Settings]
) -> Subpath:
    """Find the best path of `m[b, positive[b]] - m[b, negative[b, n]]` for many negatives, without storing differences.

    Args:
        m: (B, C, ..., K, T, H, W), a score volume per class and whatever stands between (attributes).
        positive: (B,) class indices.
        negative: (B, N) class indices; by default all C - 1 classes but the positive one, in ascending order.
        settings: `radius` and `forms` as for `max_subpath`; `lengths` (B,) are the time steps of each item.

    Infinite scores have no difference, and are errors here; use `lengths` for padding.

    Returns a Subpath whose batch is (B, N, ...). The gradient reaches `m` with + on the positive's cells and - on the
    negative's.
    """
    return _search_difference(m, positive, negative, maximum=True, **settings)


def min_subpath_difference(
    m: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor | None = None, **settings: Unpack[Settings]
) -> Subpath:
    """Find the path with the smallest sum of `m[positive] - m[negative]` (the paper's training loss, eq. 7)."""
    return _search_difference(m, positive, negative, maximum=False, **settings)


def top_subpaths(scores: torch.Tensor, k: int, *, gap: int | torch.Tensor = 0, **settings: Unpack[Settings]) -> Subpath:
    """Find k disjoint paths, best first: each is the best path that keeps clear of those before it.

    Two paths are disjoint when they are never within `gap` rows and columns of each other at the same time step, in any
    form. Returns a Subpath whose batch is (..., k); where fewer than k exist, the rest have value -inf and no cells.
    gap: one for all, or integers that broadcast to the batch; less than 0 is as 0.
    """
    check_int(k, "k", 1)
    _check_volumes(scores)
    if not isinstance(gap, torch.Tensor):
        check_int(gap, "gap", 0)
    elif gap.dtype not in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
        raise fail("gap", "an integer tensor", str(gap.dtype))
    else:
        gap = _broadcast(gap, scores.shape[:-4])[..., None, None, None].clamp_min(0)
    work = scores.detach().clone()
    height, width = scores.shape[-2:]
    rows = torch.arange(height, device=scores.device)[:, None]
    cols = torch.arange(width, device=scores.device)
    found = []
    for _ in range(k):
        path = max_subpath(work, **settings)
        row, col = path.cells[..., 1, None, None], path.cells[..., 2, None, None]  # (..., T, 1, 1)
        taken = (row >= 0) & ((rows - row).abs() <= gap) & ((cols - col).abs() <= gap)
        work.masked_fill_(taken.unsqueeze(-4), -torch.inf)
        found.append(path)
    batch = scores.ndim - 4
    start, stop = (torch.stack([p[i] for p in found], batch) for i in (1, 2))
    cells = torch.stack([p.cells for p in found], batch)
    value = torch.stack([p.value for p in found], batch)
    if scores.requires_grad or is_transformed():
        value = torch.where(value > -torch.inf, _sum_along(scores.unsqueeze(batch), cells), value)
    return Subpath(value, start, stop, cells)


def _broadcast(gap: torch.Tensor, batch: torch.Size) -> torch.Tensor:
    try:
        return gap.broadcast_to(batch)
    except RuntimeError:
        raise fail("gap", f"a tensor that broadcasts to the batch {tuple(batch)}", tuple(gap.shape)) from None


def path_sum(scores: torch.Tensor, cells: torch.Tensor) -> torch.Tensor:
    """Sum `scores` (..., K, T, H, W) along `cells` (..., T, 3), 0 without a path; differentiable, broadcasts.

    A cell outside the grid is an error, on a GPU after waiting for it. Where values cannot be looked at (traced,
    under torch.func, while a CUDA graph is recorded) the sum is NaN.
    """
    _check_volumes(scores)
    check_tensor(cells, "cells", "(..., T, 3)", min_ndim=2, floating=False)
    if cells.is_floating_point() or cells.dtype == torch.bool or cells.is_complex():
        raise fail("cells", "an integer tensor", str(cells.dtype))
    k, t, h, w = scores.shape[-4:]
    if cells.shape[-2:] != (t, 3):
        raise fail("cells", f"of shape (..., T, 3) with T = {t}", shape_of(cells))
    if cells.device != scores.device:
        raise fail("cells", f"on the device of `scores`, {scores.device}", str(cells.device))
    form, row, col = cells.unbind(-1)
    inside = (form >= 0) & (form < k) & (row >= 0) & (row < h) & (col >= 0) & (col < w)
    legal = inside | (cells == -1).all(-1)
    recorded = cells.is_cuda and torch.cuda.is_current_stream_capturing()
    if is_eager(cells) and is_eager(scores) and not recorded and not bool(legal.all()):
        wrong = cells[~legal][0].tolist()
        raise fail("cells", f"(form, row, column) below ({k}, {h}, {w}), or -1 for no path", f"{wrong}")
    total = _sum_along(scores, cells.where(legal[..., None], -1).long())
    return torch.where(legal.all(-1), total, torch.nan)


def _sum_along(scores: torch.Tensor, cells: torch.Tensor) -> torch.Tensor:
    """`path_sum` of cells that exist."""
    _, t, h, w = scores.shape[-4:]
    form, row, col = cells.clamp_min(0).unbind(-1)
    steps = torch.arange(t, device=cells.device)
    flat = ((form * t + steps) * h + row) * w + col  # (..., T)
    batch = torch.broadcast_shapes(scores.shape[:-4], flat.shape[:-1])  # type: ignore[no-untyped-call]
    volume = scores.flatten(-4).expand(*batch, -1)
    along = volume.gather(-1, flat.expand(*batch, t))
    return torch.where(cells[..., 0] >= 0, along, 0).sum(-1, dtype=torch.promote_types(scores.dtype, torch.float32))


class MaxSubpathPool(nn.Module):
    """`max_subpath` as a pooling layer: (..., K, T, H, W) -> (...)."""

    def __init__(self, *, radius: int = 1, forms: str = "free") -> None:
        super().__init__()
        self.radius = check_int(radius, "radius", 0, MAX_RADIUS)
        self.forms = check_choice(forms, "forms", FORMS)

    def forward(self, scores: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """Return the value of the best path; call `max_subpath` for the path itself."""
        return max_subpath(scores, radius=self.radius, forms=self.forms, lengths=lengths).value

    def extra_repr(self) -> str:
        """Show the settings in the module's repr."""
        return f"radius={self.radius}, forms={self.forms!r}"


def _check_volumes(
    scores: torch.Tensor, name: str = "scores", shape: str = "(..., K, T, H, W)", *, min_ndim: int = 4
) -> None:
    """Require a dense tensor of a type that the kernels know; the message says what to do with another."""
    if isinstance(scores, torch.Tensor) and (scores.is_nested or scores.layout != torch.strided):
        kind = "a nested tensor" if scores.is_nested else str(scores.layout)
        raise fail(name, "dense: pad it, and give `lengths`" if scores.is_nested else "dense: call to_dense()", kind)
    check_tensor(scores, name, shape, min_ndim=min_ndim)
    if scores.dtype not in DTYPES:
        raise fail(name, "float64, float32, float16 or bfloat16: convert it first", str(scores.dtype))


def _check_scores(scores: torch.Tensor, radius: int, forms: str, *, name: str = "scores") -> None:
    shape = "(..., K, T, H, W)" if name == "scores" else "(B, C, ..., K, T, H, W)"
    _check_volumes(scores, name, shape, min_ndim=4 if name == "scores" else 6)
    if any(n == 0 for n in scores.shape[-4:]):
        raise fail(name, "non-empty in K, T, H and W", shape_of(scores))
    check_int(radius, "radius", 0, MAX_RADIUS)
    check_choice(forms, "forms", FORMS)


def _check_lengths(lengths: torch.Tensor, batch: torch.Size, device: torch.device) -> torch.Tensor:
    check_tensor(lengths, "lengths", "(...)", floating=False)
    if lengths.is_floating_point() or lengths.dtype == torch.bool:
        raise fail("lengths", "an integer tensor", str(lengths.dtype))
    if lengths.shape != batch:
        raise fail("lengths", f"of the batch's shape {tuple(batch)}", shape_of(lengths))
    return lengths.to(device=device, dtype=torch.long)


def _search(
    scores: torch.Tensor, *, maximum: bool, radius: int = 1, forms: str = "free", lengths: torch.Tensor | None = None
) -> Subpath:
    _check_scores(scores, radius, forms)
    batch = scores.shape[:-4]
    if lengths is not None:
        lengths = _check_lengths(lengths, batch, scores.device).reshape(-1)
    volumes = scores if scores.ndim == 5 else scores.reshape(-1, *scores.shape[-4:])
    found = search(Job(volumes, None, None, lengths, 1, radius, forms == "fixed", maximum))
    if scores.ndim == 5:
        return Subpath(*found)
    value, start, stop, cells = found
    return Subpath(value.view(batch), start.view(batch), stop.view(batch), cells.view(*batch, scores.shape[-3], 3))


def _search_difference(
    m: torch.Tensor,
    positive: torch.Tensor,
    negative: torch.Tensor | None,
    *,
    maximum: bool,
    radius: int = 1,
    forms: str = "free",
    lengths: torch.Tensor | None = None,
) -> Subpath:
    _check_scores(m, radius, forms, name="m")
    items, classes, *between = m.shape[:-4]
    if classes < 2:
        raise fail("m", "of shape (B, C, ..., K, T, H, W) with at least two classes C", shape_of(m))
    positive = _check_classes(positive, "positive", "(B,)", items, m.device)
    if negative is not None:
        negative = _check_classes(negative, "negative", "(B, N)", items, m.device)
    if lengths is not None:
        lengths = _check_lengths(lengths, torch.Size([items]), m.device)
    volumes = m.reshape(-1, *m.shape[-4:])
    found = search(Job(volumes, positive, negative, lengths, classes, radius, forms == "fixed", maximum))
    # Items run over (b, between, n): neighbours share their positive, which then comes from the cache.
    value, start, stop, cells = found
    batch = (items, *between, classes - 1 if negative is None else negative.shape[1])
    value, start, stop = (x.view(batch).movedim(-1, 1) for x in (value, start, stop))
    return Subpath(value, start, stop, cells.view(*batch, m.shape[-3], 3).movedim(-3, 1))


def _check_classes(index: torch.Tensor, name: str, shape: str, items: int, device: torch.device) -> torch.Tensor:
    check_tensor(index, name, shape, ndim=1 if shape == "(B,)" else 2, floating=False)
    if index.is_floating_point() or index.dtype == torch.bool:
        raise fail(name, "a tensor of class indices", str(index.dtype))
    if index.shape[0] != items:
        raise fail(name, f"of shape {shape} with B = {items}", shape_of(index))
    return index.to(device=device, dtype=torch.long)
