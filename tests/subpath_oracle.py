"""Every path of a small volume, enumerated: the truth that the kernels are tested against.

Paths are sorted by the tie rule, so the first of the best is the answer: earliest end; lowest (row, column, form) at
the end; then, step by step back, stopping before going on, and the lowest (row, column, form).
"""

from functools import cache
from itertools import product

import numpy as np


@cache
def all_paths(shape: tuple[int, int, int, int], radius: int, fixed: bool) -> np.ndarray:
    """Sorted paths (P, T, 3) of (form, row, column), -1 outside the path."""
    forms, steps, height, width = shape
    ranked = []

    def rank(cell: tuple[int, int, int]) -> int:
        form, row, col = cell
        return (row * width + col) * forms + form

    def extend(path: list[tuple[int, int, int]], first: int, key: tuple[int, ...]) -> None:
        """`path` runs backward in time from its end and reaches down to time `first`."""
        ranked.append((key, first, list(path)))
        if first == 0:
            return
        form, row, col = path[-1]
        for k, i, j in product(range(forms), range(height), range(width)):
            if abs(i - row) <= radius and abs(j - col) <= radius and (k == form or not fixed):
                extend([*path, (k, i, j)], first - 1, (*key, rank((k, i, j))))

    for end, k, i, j in product(range(steps), range(forms), range(height), range(width)):
        extend([(k, i, j)], end, (end, rank((k, i, j))))
    ranked.sort(key=lambda entry: entry[0])
    table = np.full((len(ranked), steps, 3), -1, dtype=np.int64)
    for p, (_, first, path) in enumerate(ranked):
        table[p, first : first + len(path)] = path[::-1]
    return table


def best_path(scores: np.ndarray, radius: int, fixed: bool, length: int) -> tuple[float, int, int, np.ndarray]:
    """Value, start, stop and cells (T, 3) of the best path through `scores` (K, T, H, W), by enumeration."""
    _, steps, height, width = scores.shape
    table = all_paths(scores.shape, radius, fixed)
    flat = ((table[:, :, 0] * steps + np.arange(steps)) * height + table[:, :, 1]) * width + table[:, :, 2]
    inside = table[:, :, 0] >= 0
    sums = np.where(inside, scores.reshape(-1)[np.where(inside, flat, 0)].astype(np.float64), 0.0).sum(1)
    sums[inside[:, length:].any(1)] = -np.inf
    best = int(sums.argmax())
    if sums[best] == -np.inf:
        return -np.inf, 0, 0, np.full((steps, 3), -1)
    when = np.flatnonzero(inside[best])
    return float(sums[best]), int(when[0]), int(when[-1]) + 1, table[best]
