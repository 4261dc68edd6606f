"""Tubes from a path of grid cells, around several boxes, and control tubes: random and centred."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from whytube.checks import check_int, fail
from whytube.tubes.tube import Tube

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

# A control tube's velocity: what is kept from frame to frame, and its spread as a fraction of the free room.
INERTIA = 0.9
SPEED = 0.02


def tube_from_cells(
    cells: ArrayLike | torch.Tensor,
    forms: Sequence[tuple[float, float]],
    grid: tuple[int, int, int],
    frame_indices: ArrayLike,
    size: tuple[int, int],
    *,
    times: ArrayLike | None = None,
) -> Tube:
    """Project a path through a score volume to boxes in the video.

    cells: (T, 3) integers (form, row, column); -1 in the rows of steps outside the path.
    forms: (height, width) of each form, in cells of the grid. grid: (T, H, W) of the score volume, over whole frames.
    frame_indices: (N,) source frames of the clip, N >= T. size: (height, width) of the video's own frames.
    times: (N,) seconds of those frames.

    A form is centred on its cell's centre and clipped to the frame. Clip frame n belongs to step n * T // N, so an
    element covers all the frames of its step; a source frame that the clip repeats gets the box of its first showing.
    """
    path = _checked_cells(cells, forms, grid)
    indices = np.asarray(frame_indices, dtype=np.int64)
    if indices.ndim != 1 or len(indices) < grid[0]:
        raise fail("frame_indices", f"at least {grid[0]} indices, one per step of the grid", f"shape {indices.shape}")
    path = path[np.arange(len(indices)) * grid[0] // len(indices)]
    inside = np.flatnonzero(path[:, 0] >= 0)
    cell = np.array(size) / np.array(grid[1:])
    centres = (path[inside, 1:] + 0.5) * cell
    halves = np.asarray(forms, dtype=np.float64).reshape(-1, 2)[path[inside, 0]] * cell / 2
    boxes = np.concatenate([centres - halves, centres + halves], axis=1)[:, [1, 0, 3, 2]]
    kept, first = np.unique(indices[inside], return_index=True)
    seconds = None if times is None else np.asarray(times, dtype=np.float64)[inside][first]
    return Tube(kept, boxes[first], seconds).clipped(size)


def _checked_cells(
    cells: ArrayLike | torch.Tensor, forms: Sequence[tuple[float, float]], grid: tuple[int, int, int]
) -> NDArray[np.int64]:
    path = cells.detach().cpu().numpy() if isinstance(cells, torch.Tensor) else np.asarray(cells)
    steps, rows, columns = (check_int(n, f"grid[{i}]", 1) for i, n in enumerate(grid))
    if path.shape != (steps, 3) or not np.issubdtype(path.dtype, np.integer):
        raise fail("cells", f"integers of shape ({steps}, 3) for the grid {tuple(grid)}", f"{path.dtype} {path.shape}")
    path = path.astype(np.int64)
    inside = path[path[:, 0] >= 0]
    limits = np.array([len(forms), rows, columns])
    if ((inside < 0) | (inside >= limits)).any():
        bad = inside[((inside < 0) | (inside >= limits)).any(axis=1)][0]
        raise fail("cells", f"(form, row, column) below {tuple(limits.tolist())}, or -1", tuple(bad.tolist()))
    return path


def enclosing_tube(frames: ArrayLike, boxes: ArrayLike) -> Tube:
    """Put one box around all boxes of each frame: frames (N,) in any order and with repeats, boxes (N, 4)."""
    indices, given = np.asarray(frames, dtype=np.int64), np.asarray(boxes, dtype=np.float64)
    if given.shape != (len(indices), 4) and given.size + len(indices):
        raise fail("boxes", f"of shape ({len(indices)}, 4), one per frame", given.shape)
    given = given.reshape(-1, 4)
    kept, place = np.unique(indices, return_inverse=True)
    corners = np.repeat([[np.inf, np.inf, -np.inf, -np.inf]], len(kept), axis=0)
    np.minimum.at(corners[:, :2], place, given[:, :2])
    np.maximum.at(corners[:, 2:], place, given[:, 2:])
    return Tube(kept, corners)


def center_tube(size: tuple[int, int], box: ArrayLike, frames: ArrayLike, *, times: ArrayLike | None = None) -> Tube:
    """Keep a box in the middle of frames of `size` (height, width).

    box: (height, width) of the box, or (L, 2) to follow another tube's box by box. frames: (L,) frame indices.
    """
    indices, boxes, room = _checked_box(size, box, frames)
    return _placed(indices, room / 2, boxes, times)


def random_tube(
    size: tuple[int, int],
    box: ArrayLike,
    frames: ArrayLike,
    *,
    rng: np.random.Generator,
    times: ArrayLike | None = None,
) -> Tube:
    """Let a box drift smoothly inside frames of `size` (height, width), from a uniformly random place.

    box: (height, width) of the box, or (L, 2) to match another tube's area box by box. frames: (L,) frame indices.
    The velocity is a random walk with inertia in the source video's frames; at the edges the box bounces off.
    """
    indices, boxes, room = _checked_box(size, box, frames)
    place = rng.uniform(size=2)
    velocity = rng.normal(scale=SPEED, size=2)
    places = np.empty((len(indices), 2))
    for step, gap in enumerate(np.diff(indices, prepend=indices[:1])):
        inertia = INERTIA ** float(gap)
        velocity = inertia * velocity + np.sqrt(1 - inertia**2) * rng.normal(scale=SPEED, size=2)
        turned = (place + velocity * gap) % 2
        velocity = np.where(turned > 1, -velocity, velocity)
        place = np.where(turned > 1, 2 - turned, turned)
        places[step] = place
    return _placed(indices, places * room, boxes, times)


def _checked_box(
    size: tuple[int, int], box: ArrayLike, frames: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Frame indices (L,), box sizes (L, 2) and the room left to move in (L, 2), both (height, width)."""
    indices = np.asarray(frames, dtype=np.int64)
    boxes = np.asarray(box, dtype=np.float64)
    if indices.ndim != 1 or boxes.shape not in ((2,), (len(indices), 2)):
        raise fail("box", f"(height, width) or of shape ({len(indices)}, 2)", f"shape {boxes.shape}")
    boxes = np.broadcast_to(boxes, (len(indices), 2))
    room = np.array(size) - boxes
    if not ((boxes >= 0) & (room >= 0)).all():
        raise fail("box", f"no larger than the frame, {size[0]} x {size[1]}", boxes.max(axis=0).tolist())
    return indices, boxes, room


def _placed(
    indices: NDArray[np.int64], corner: NDArray[np.float64], boxes: NDArray[np.float64], times: ArrayLike | None
) -> Tube:
    """Build a tube from upper left corners (L, 2), (y, x), and box sizes (L, 2)."""
    corners = np.concatenate([corner, corner + boxes], axis=1)[:, [1, 0, 3, 2]]
    return Tube(indices, corners, None if times is None else np.asarray(times, dtype=np.float64))
