"""Tube: boxes through time, what every answer points with; and the arithmetic of boxes x1 y1 x2 y2.

Empties, decided once: a tube without volume (no box, or boxes without area) overlaps nothing, so its IoU with any tube
is 0, and so is that of two such tubes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray  # noqa: TC002 - `build` reads the annotations of Tube

from whytube.checks import fail
from whytube.documents import build
from whytube.tubes.export import detections

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

Boxes = TypeVar("Boxes", "NDArray[np.float64]", torch.Tensor)
Scalar = TypeVar("Scalar", bound=np.generic)

# Velocity of a random tube: what is kept from frame to frame, and its spread as a fraction of the free room.
INERTIA = 0.9
SPEED = 0.02


@dataclass(frozen=True, eq=False)
class Tube:
    """Boxes of one video, at most one per frame. L may be 0: an empty tube is legal.

    frames: (L,) int64, strictly increasing 0-based frame indices of the source video.
    boxes: (L, 4) float64, x1 y1 x2 y2 in pixels of the video's own frames, x2 and y2 exclusive; a box may have no area.
    times: (L,) float64, seconds of those frames, or None where they are not known.
    The arrays are copied and made read-only.
    """

    frames: NDArray[np.int64]
    boxes: NDArray[np.float64]
    times: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        frames = np.array(self.frames)
        if frames.size == 0:
            frames = np.zeros(0, dtype=np.int64)
        if frames.ndim != 1 or not np.issubdtype(frames.dtype, np.integer):
            raise fail("frames", "a list of integers", f"{frames.dtype} of shape {frames.shape}")
        if frames.size and (frames[0] < 0 or (np.diff(frames.astype(np.int64)) <= 0).any()):
            raise fail("frames", "strictly increasing frame indices from 0", frames.tolist())
        boxes = np.array(self.boxes, dtype=np.float64)
        if boxes.size == 0:
            boxes = np.zeros((0, 4))
        if boxes.shape != (len(frames), 4):
            raise fail("boxes", f"of shape ({len(frames)}, 4), one per frame", boxes.shape)
        wrong = ~np.isfinite(boxes).all(axis=1) | (boxes[:, 2:] < boxes[:, :2]).any(axis=1)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise fail(f"boxes[{at}]", "finite x1, y1, x2, y2 with x1 <= x2 and y1 <= y2", boxes[at].tolist())
        object.__setattr__(self, "frames", _frozen(frames.astype(np.int64)))
        object.__setattr__(self, "boxes", _frozen(boxes))
        object.__setattr__(self, "times", self._checked_times(len(frames)))

    def _checked_times(self, count: int) -> NDArray[np.float64] | None:
        if self.times is None:
            return None
        times = np.array(self.times, dtype=np.float64)
        if times.shape != (count,) or not np.isfinite(times).all():
            raise fail("times", f"{count} finite seconds, or None", f"shape {times.shape}, {times.tolist()[:8]}")
        return _frozen(times)

    def __len__(self) -> int:
        return len(self.frames)

    @property
    def areas(self) -> NDArray[np.float64]:
        """Area of each box in pixels, (L,)."""
        return box_areas(self.boxes)

    @property
    def volume(self) -> float:
        """Sum of the areas, in pixels."""
        return float(self.areas.sum())

    @property
    def span(self) -> tuple[int, int]:
        """First frame and one past the last, (0, 0) for an empty tube."""
        return (int(self.frames[0]), int(self.frames[-1]) + 1) if len(self) else (0, 0)

    def at(self, indices: ArrayLike) -> NDArray[np.float64]:
        """Boxes at given frame indices, in any order and with repeats; zeros where there is none: (T,) -> (T, 4)."""
        wanted = np.asarray(indices, dtype=np.int64)
        boxes = np.zeros((len(wanted), 4))
        if len(self):
            place = np.minimum(np.searchsorted(self.frames, wanted), len(self) - 1)
            there = self.frames[place] == wanted
            boxes[there] = self.boxes[place[there]]
        return boxes

    def to_detections(self) -> Any:
        """Return all boxes as one `supervision.Detections`, their frames under `data["frame"]`; needs supervision."""
        return detections(self.boxes, [0] * len(self), data={"frame": self.frames.tolist()})

    def to_dict(self) -> dict[str, Any]:
        """Plain lists for JSON: boxes rounded to 1/100 pixel, times to the microsecond."""
        times = None if self.times is None else self.times.round(6).tolist()
        return {"frames": self.frames.tolist(), "boxes": self.boxes.round(2).tolist(), "times": times}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Tube:
        """Read what `to_dict` wrote."""
        return build(cls, data)


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


def random_tube(size: tuple[int, int], box: ArrayLike, frames: ArrayLike, *, rng: np.random.Generator) -> Tube:
    """Let a box drift smoothly inside frames of `size` (height, width), from a uniformly random place.

    box: (height, width) of the box, or (L, 2) to match another tube's boxes one by one. frames: (L,) frame indices.
    The velocity is a random walk with inertia in the source video's frames; at the edges the box bounces off.
    """
    indices, boxes = np.asarray(frames, dtype=np.int64), np.asarray(box, dtype=np.float64)
    if indices.ndim != 1 or boxes.shape not in ((2,), (len(indices), 2)):
        raise fail("box", f"(height, width) or of shape ({len(indices)}, 2)", f"shape {boxes.shape}")
    boxes = np.broadcast_to(boxes, (len(indices), 2))
    room = np.array(size) - boxes
    if not ((boxes >= 0) & (room >= 0)).all():
        raise fail("box", f"no larger than the frame, {size[0]} x {size[1]}", boxes.max(axis=0).tolist())
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
    corner = places * room
    return Tube(indices, np.concatenate([corner, corner + boxes], axis=1)[:, [1, 0, 3, 2]])


def box_areas(boxes: Boxes) -> Boxes:
    """Areas in pixels, (..., 4) -> (...); 0 where x2 < x1 or y2 < y1."""
    sides = (boxes[..., 2:] - boxes[..., :2]).clip(min=0)
    areas: Boxes = sides[..., 0] * sides[..., 1]
    return areas


def region_iou(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Spatio-temporal IoU of tubes (..., T, 4) and (..., T, 4), broadcast: sum of intersections over sum of unions."""
    wide, high = (
        (torch.minimum(a[..., i + 2], b[..., i + 2]) - torch.maximum(a[..., i], b[..., i])).clip(min=0) for i in (0, 1)
    )
    shared = (wide * high).sum(-1)
    union = box_areas(a).sum(-1) + box_areas(b).sum(-1) - shared
    return torch.where(union > 0, shared / union.clamp_min(1e-9), 0)


def tube_iou(a: Tube, b: Tube, frames: ArrayLike | None = None) -> float:
    """IoU of two tubes over the frames of both, or on the given frames alone, e.g. the annotated ones."""
    shared = np.unique(np.concatenate([a.frames, b.frames]) if frames is None else np.asarray(frames, dtype=np.int64))
    return float(region_iou(*(torch.from_numpy(tube.at(shared)) for tube in (a, b))))


def cell_boxes(
    cells: torch.Tensor, shapes: torch.Tensor, grids: torch.Tensor, *, frames: int, size: tuple[int, int]
) -> torch.Tensor:
    """Boxes of paths of grid cells, in pixels of the clip: (..., t, 3) -> (..., T, 4), zeros outside the path.

    A form is centred on its cell's centre and clipped to the frame. With fewer steps t than frames T, an element covers
    the frames of its step.

    Args:
        cells: (form, row, column) at every step, rows and columns on the form's own grid; -1 outside the path.
        shapes: (K, 2) height and width of each form, in cells of its grid.
        grids: (K, 2) rows and columns of each form's grid.
        frames: T of the clip.
        size: (height, width) of the clip.
    """
    steps = cells.shape[-2]
    if steps != frames:
        cells = cells.index_select(-2, torch.arange(frames, device=cells.device) * steps // frames)
    form = cells[..., 0].clamp_min(0)
    extent = torch.tensor(size, dtype=torch.float32, device=cells.device)
    pitch = extent / grids[form]  # pixels per cell
    centre = (cells[..., 1:] + 0.5) * pitch
    half = shapes[form] * pitch / 2
    low, high = (centre - half).clamp_min(0), torch.minimum(centre + half, extent)
    return torch.where(cells[..., :1] >= 0, torch.cat([low.flip(-1), high.flip(-1)], dim=-1), 0)


def _frozen(array: NDArray[Scalar]) -> NDArray[Scalar]:
    array.flags.writeable = False
    return array
