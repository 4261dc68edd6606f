"""The fused kernel for CPUs, compiled by numba on first use (no compiler needed on the machine).

One item is searched at a time, so that its states stay in the cache: the input is read once, and nothing but the result
is written. Planes carry a border of -inf, which lets the neighbourhood maximum run over flat arrays (SIMD).
Items are shared out to Python threads that release the GIL: numba's own thread pools must not be entered from several
threads at once, and servers do that.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numba import njit

if TYPE_CHECKING:
    from whytube.subpath.operator import Job
    from whytube.subpath.reference import Found

_CELLS_PER_THREAD = 1 << 18  # less work than this does not repay a thread

Array = np.ndarray[Any, Any]


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _collapse(
    volumes: Array, plus: int, minus: int, first: int, last: int, t: int, negate: bool, plane: Array
) -> int:  # pragma: no cover - compiled
    """Write the maximum over forms first..last at time t to `plane` (H * W,); return the number of NaN cells."""
    nans = 0
    plane[:] = -np.inf
    for k in range(first, last):
        a = volumes[plus, k, t]
        if minus >= 0:
            b = volumes[minus, k, t]
            if negate:
                a, b = b, a
            for u in range(plane.size):
                x = a[u] - b[u]
                nans += x != x
                plane[u] = x if x > plane[u] else plane[u]
        else:
            for u in range(plane.size):
                x = -a[u] if negate else a[u]
                nans += x != x
                plane[u] = x if x > plane[u] else plane[u]
    return nans


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _widen(source: Array, jump: int, radius: int, target: Array) -> None:  # pragma: no cover - compiled
    """target[q] = max(0, source[q + d * jump] for |d| <= radius), away from the ends. Slices let LLVM vectorise."""
    n, edge = source.size, jump * radius
    out, middle = target[edge : n - edge], source[edge : n - edge]
    for q in range(out.size):
        out[q] = middle[q] if middle[q] > 0 else 0
    for d in range(1, radius + 1):
        before, after = source[edge - d * jump : n - edge - d * jump], source[edge + d * jump : n - edge + d * jump]
        for q in range(out.size):
            x = before[q] if before[q] > after[q] else after[q]
            out[q] = x if x > out[q] else out[q]


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _search_range(
    volumes: Array,  # (R, K, T, H * W)
    plus: Array,  # (N,)
    minus: Array,  # (N,) or (0,)
    lengths: Array,  # (N,)
    items: tuple[int, int],
    grid: tuple[int, int],
    radius: int,
    fixed: bool,
    negate: bool,
    value: Array,
    start: Array,
    stop: Array,
    cells: Array,
) -> None:  # pragma: no cover - compiled
    rows, forms, steps = volumes.shape[:3]
    h, w = grid
    width = w + 2 * radius
    origin = radius * width + radius
    lowest = -np.inf
    states = np.full((steps, (h + 2 * radius) * width), lowest, dtype=value.dtype)
    plane = np.empty(h * w, dtype=value.dtype)
    row = np.full(states.shape[1], lowest, dtype=value.dtype)
    past = np.zeros(states.shape[1], dtype=value.dtype)
    top = np.empty(states.shape[1], dtype=value.dtype)
    path = np.empty(steps, dtype=np.int64)
    for n in range(items[0], items[1]):
        p, m, length = plus[n], minus[n] if minus.size else -1, lengths[n]
        value[n], start[n], stop[n] = lowest, 0, 0
        cells[n] = -1
        if p < 0 or p >= rows or (minus.size and (m < 0 or m >= rows)) or length < 0 or length > steps:
            value[n] = np.nan
            continue
        nans, last_end = 0, 0
        for k in range(forms if fixed else 1):
            first, last = (k, k + 1) if fixed else (0, forms)
            top[:] = lowest
            for t in range(length):
                nans += _collapse(volumes, p, m, first, last, t, negate, plane)
                if t > 0:
                    _widen(states[t - 1], 1, radius, row)
                    _widen(row, width, radius, past)
                else:
                    past[:] = 0
                state = states[t]
                for i in range(h):
                    q = origin + i * width
                    inner, come, score = state[q : q + w], past[q : q + w], plane[i * w : i * w + w]
                    for j in range(w):
                        inner[j] = score[j] + come[j]
                for q in range(state.size):
                    top[q] = state[q] if state[q] > top[q] else top[q]
            best = top.max() if length > 0 else lowest
            if nans or best == lowest or best < value[n]:
                continue
            # The end: earliest time, then lowest row, then lowest column.
            end, q = 0, 0
            searching = True
            while searching:
                for q in range(states.shape[1]):
                    if states[end, q] == best:
                        searching = False
                        break
                else:
                    end += 1
            if best == value[n] and end * states.shape[1] + q >= last_end:
                continue
            value[n], last_end = best, end * states.shape[1] + q
            # Back along the path: extend only when the past is > 0, to the lowest row, then column.
            t = end
            while True:
                path[t] = q
                reach = 0.0
                back = -1
                if t > 0:
                    for d in range(-radius, radius + 1):
                        for e in range(-radius, radius + 1):
                            x = states[t - 1, q + d * width + e]
                            if x > reach:
                                reach, back = x, q + d * width + e
                if back < 0:
                    break
                t, q = t - 1, back
            start[n], stop[n] = t, end + 1
            cells[n] = -1
            for s in range(t, end + 1):
                i, j = path[s] // width - radius, path[s] % width - radius
                cells[n, s, 1], cells[n, s, 2] = i, j
                reach = lowest
                for f in range(first, last):
                    x = volumes[p, f, s, i * w + j]
                    if m >= 0:
                        x -= volumes[m, f, s, i * w + j]
                    if negate:
                        x = -x
                    if x > reach:
                        reach = x
                        cells[n, s, 0] = f
        if nans:
            value[n], start[n], stop[n] = np.nan, 0, 0
            cells[n] = -1


def search(job: Job, plus: torch.Tensor | None, minus: torch.Tensor | None, lengths: torch.Tensor | None) -> Found:
    """Find the best path of every item; plus, minus, lengths: as `Job.rows` gives them."""
    volumes, maximum = job.volumes, job.maximum
    rows, k, t, h, w = volumes.shape
    n = rows if plus is None else plus.shape[0]
    volumes = volumes.detach().to(torch.promote_types(volumes.dtype, torch.float32)).contiguous()
    value = torch.empty(n, dtype=volumes.dtype)
    start, stop = torch.empty(n, dtype=torch.long), torch.empty(n, dtype=torch.long)
    cells = torch.empty(n, t, 3, dtype=torch.long)
    arrays = (
        volumes.view(rows, k, t, h * w).numpy(),
        np.arange(n) if plus is None else plus.contiguous().numpy(),
        np.empty(0, np.int64) if minus is None else minus.contiguous().numpy(),
        np.full(n, t) if lengths is None else lengths.contiguous().numpy(),
    )
    results = (value.numpy(), start.numpy(), stop.numpy(), cells.numpy())

    def run(first: int, last: int) -> None:
        _search_range(*arrays, (first, last), (h, w), job.radius, job.fixed, not maximum, *results)

    threads = max(1, min(torch.get_num_threads(), n, n * k * t * h * w // _CELLS_PER_THREAD))
    if threads == 1:
        run(0, n)
    else:
        cuts = [n * i // threads for i in range(threads + 1)]
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(run, cuts[:-1], cuts[1:]))
    return (value if maximum else -value), start, stop, cells
