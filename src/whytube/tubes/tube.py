"""Tube: boxes through time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from whytube.checks import fail

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

Scalar = TypeVar("Scalar", bound=np.generic)


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

    @classmethod
    def empty(cls) -> Tube:
        """Build the tube that covers nothing."""
        return cls(frames=np.zeros(0, dtype=np.int64), boxes=np.zeros((0, 4)))

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

    def area_fraction(self, size: tuple[int, int], total_frames: int) -> float:
        """Share of a video of `total_frames` frames of `size` (height, width) that lies inside the tube, in [0, 1].

        Count the frames that the tube could have had a box on: for a tube made on a clip, the clip's distinct ones.
        """
        height, width = size
        if total_frames < max(len(self), 1) or height < 1 or width < 1:
            raise fail("total_frames", f"at least {max(len(self), 1)} (frames of at least 1x1)", (total_frames, *size))
        return self.clipped(size).volume / (total_frames * height * width)

    def clipped(self, size: tuple[int, int]) -> Tube:
        """Cut the boxes off at the edges of frames of `size` (height, width); one wholly outside keeps no area."""
        height, width = size
        return Tube(self.frames, self.boxes.clip(0, [width, height, width, height]), self.times)

    def at(self, indices: ArrayLike) -> NDArray[np.float64]:
        """Boxes at given frame indices, in any order and with repeats; zeros where there is none: (T,) -> (T, 4)."""
        wanted = np.asarray(indices, dtype=np.int64)
        boxes = np.zeros((len(wanted), 4))
        if len(self):
            place = np.minimum(np.searchsorted(self.frames, wanted), len(self) - 1)
            there = self.frames[place] == wanted
            boxes[there] = self.boxes[place[there]]
        return boxes

    def to_dict(self) -> dict[str, Any]:
        """Plain lists for JSON: boxes rounded to 1/100 pixel, times to the microsecond."""
        times = None if self.times is None else self.times.round(6).tolist()
        return {"frames": self.frames.tolist(), "boxes": self.boxes.round(2).tolist(), "times": times}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Tube:
        """Read what `to_dict` wrote."""
        missing = {"frames", "boxes"} - set(data)
        if missing:
            raise fail("data", "a mapping with frames, boxes and times", f"one without {', '.join(sorted(missing))}")
        return cls(frames=data["frames"], boxes=data["boxes"], times=data.get("times"))


def box_areas(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Areas of boxes x1 y1 x2 y2, (..., 4) -> (...,); 0 where x2 < x1 or y2 < y1."""
    sides = (boxes[..., 2:] - boxes[..., :2]).clip(min=0)
    areas: NDArray[np.float64] = sides[..., 0] * sides[..., 1]
    return areas


def _frozen(array: NDArray[Scalar]) -> NDArray[Scalar]:
    array.flags.writeable = False
    return array
