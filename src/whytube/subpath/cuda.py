"""The fused kernel for CUDA: how `cuda_kernels.py` is launched.

The grid is persistent: scratch is per program, not per item, so it stays small for any batch. Fixed forms are N * K
items of one form each; the best of the K is chosen afterwards.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

from whytube.subpath.cuda_kernels import search_kernel

if TYPE_CHECKING:
    from whytube.subpath.operator import Job, Tape
    from whytube.subpath.reference import Found

_PROGRAMS_PER_SM = 24
_SCRATCH_BYTES = 64 << 20  # at most, except that one wave of SMs always fits


def search(job: Job, *, taped: bool) -> tuple[Found, Tape | None]:
    """Find the best path of every item; `taped` asks for the `Job.tape` of the paths, too."""
    volumes, positive, negative, lengths, classes, radius, fixed, maximum = job
    rows, k, t, h, w = volumes.shape
    n, inner, negatives = job.counts()
    items = n * k if fixed else n
    device = volumes.device
    if volumes.stride(4) != 1 or volumes.stride(3) != w:
        volumes = volumes.contiguous()
    accumulate = torch.float64 if volumes.dtype == torch.float64 else torch.float32
    value = torch.empty(items, dtype=accumulate, device=device)
    start = torch.empty(items, dtype=torch.long, device=device)
    stop = torch.empty_like(start)
    cells = torch.empty((items, t, 3), dtype=torch.long, device=device)
    index = torch.empty((1 + (positive is not None), items if taped else 0, t), dtype=torch.long, device=device)
    weight = torch.empty(index.shape, dtype=accumulate, device=device)
    share = 2 * (h + 2 * radius) * (w + 2 * radius) * value.element_size() + t * h * w
    programs = _programs(items, share, device)
    scratch = torch.empty(programs * share, dtype=torch.int8, device=device)
    block = triton.next_power_of_2(h * w)
    search_kernel[(programs,)](
        volumes, positive, negative, lengths, value, start, stop, cells, index, weight, scratch,
        items, rows, classes, inner, negatives, t, volumes.stride(0), volumes.stride(1), volumes.stride(2),
        K=k, H=h, W=w, RADIUS=radius, BLOCK=block, STEPS=triton.next_power_of_2(t),
        FIXED=fixed, DIFFERENCE=positive is not None, LISTED=negative is not None, NEGATE=not maximum,
        PADDED=lengths is not None, TAPED=taped, ACC=tl.float64 if accumulate == torch.float64 else tl.float32,
        num_warps=_warps(block),
    )  # fmt: skip
    found, tape = (value, start, stop, cells), (index, weight)
    if fixed:
        found, tape = _best_form(found, tape, (k, h, w), maximum)
    if not taped:
        return found, None
    if positive is None:
        return found, tape
    # A class that does not exist gives NaN, and an error later; until then nothing must be read from there.
    return found, (tape[0].clamp(0, volumes.numel() - 1), tape[1])


def _warps(block: int) -> int:
    return max(1, min(16, block // 64))


def _programs(items: int, scratch: int, device: torch.device) -> int:
    sms = _multiprocessors(device)
    return min(items, max(sms, min(sms * _PROGRAMS_PER_SM, _SCRATCH_BYTES // scratch)))


@cache
def _multiprocessors(device: torch.device) -> int:
    # On the CPU this kernel only ever runs in Triton's interpreter.
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2


def _best_form(found: Found, tape: Tape, shape: tuple[int, int, int], maximum: bool) -> tuple[Found, Tape]:
    """Of K paths per item keep the best; among equals the one that ends at the lowest (time, row, column, form)."""
    k, h, w = shape
    value, start, stop, cells = (x.view(-1, k, *x.shape[1:]) for x in found)
    n, t = value.shape[0], cells.shape[2]
    best = value.amax(1) if maximum else value.amin(1)
    last = (stop - 1).clamp_min(0)  # (N, K)
    tip = cells.gather(2, last[:, :, None, None].expand(n, k, 1, 3))[:, :, 0]  # (N, K, 3)
    form, row, col = tip.unbind(2)
    order = ((last * h + row) * w + col) * k + form
    pick = torch.where(value == best[:, None], order, order.max() + 1).argmin(1)
    each = torch.arange(n, device=pick.device)
    if tape[0].numel():
        index, weight = (x.view(len(x), n, k, t)[:, each, pick] for x in tape)
        tape = index, weight
    return (best, start[each, pick], stop[each, pick], cells[each, pick]), tape
