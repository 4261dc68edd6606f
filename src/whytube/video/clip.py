"""Clip: sampled frames of a video, and which frames to sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from whytube.checks import check_choice, check_int, check_tensor, fail, shape_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAMPLINGS = ("uniform", "center")


@dataclass(frozen=True, eq=False)
class Clip:
    """T frames of one video, with where and when they stand in it.

    frames: (3, T, H, W) float32, RGB in [0, 1].
    indices: (T,) int64, 0-based frame indices in the source video, never decreasing; a short video repeats some.
    times: (T,) float64, seconds since the video's first frame.
    size: (height, width) of the video's own frames as displayed, that is after its rotation flag.
    source: where the frames come from, usually a path.
    """

    frames: torch.Tensor
    indices: NDArray[np.int64]
    times: NDArray[np.float64]
    size: tuple[int, int]
    source: str

    def __post_init__(self) -> None:
        frames = check_tensor(self.frames, "frames", "(3, T, H, W)", ndim=4)
        if frames.shape[0] != 3 or min(frames.shape[1:]) < 1:
            raise fail("frames", "of shape (3, T, H, W) with T, H, W of at least 1", shape_of(frames))
        if frames.dtype != torch.float32:
            raise fail("frames", "float32", str(frames.dtype))
        low, high = (float(v) for v in frames.aminmax())
        if not (low >= 0.0 and high <= 1.0):
            raise fail("frames", "RGB in [0, 1]", f"values from {low:g} to {high:g}")
        object.__setattr__(self, "indices", self._checked_indices(frames.shape[1]))
        object.__setattr__(self, "times", self._checked_times(frames.shape[1]))
        object.__setattr__(self, "size", check_size(self.size, "size"))

    def _checked_indices(self, count: int) -> NDArray[np.int64]:
        indices = np.asarray(self.indices)
        if indices.shape != (count,) or not np.issubdtype(indices.dtype, np.integer):
            raise fail("indices", f"{count} integers", f"{indices.dtype} of shape {indices.shape}")
        if indices[0] < 0 or (np.diff(indices) < 0).any():
            raise fail("indices", "frame indices from 0 that never decrease", indices.tolist())
        return indices.astype(np.int64)

    def _checked_times(self, count: int) -> NDArray[np.float64]:
        times = np.asarray(self.times, dtype=np.float64)
        if times.shape != (count,) or not np.isfinite(times).all():
            raise fail("times", f"{count} finite seconds", f"shape {times.shape}, {times.tolist()[:8]}")
        return times


@dataclass(frozen=True)
class VideoInfo:
    """What a video says about itself.

    frames: number of frames: packets counted without decoding them, or images, or .seq entries.
    fps: average rate; 25 where the source does not say.
    size: (height, width) as displayed. duration: seconds.
    rotation: degrees counter-clockwise (0, 90, 180 or 270) by which stored frames are turned to be displayed.
    """

    source: str
    frames: int
    fps: float
    size: tuple[int, int]
    duration: float
    rotation: int


def check_size(size: object, name: str) -> tuple[int, int]:
    """Require (height, width), two integers of at least 1."""
    if not isinstance(size, (tuple, list)) or len(size) != 2:
        raise fail(name, "(height, width)", repr(size))
    return check_int(size[0], f"{name}[0]", 1), check_int(size[1], f"{name}[1]", 1)


def sample_indices(total: int, *, frames: int, sampling: str = "uniform", stride: int = 1) -> NDArray[np.int64]:
    """Choose `frames` of `total` frame indices, (T,) int64 in increasing order.

    uniform: the middles of T equal parts of the video; with fewer frames than T, each stands for several parts.
    center: every `stride`-th frame around the middle; where the video is too short, its last frame is repeated.
    """
    check_int(total, "total", 1)
    check_sampling(frames=frames, sampling=sampling, stride=stride)
    steps = np.arange(frames, dtype=np.int64)
    if sampling == "uniform":
        return (2 * steps + 1) * total // (2 * frames)
    first = max(0, (total - (frames - 1) * stride - 1) // 2)
    return np.minimum(first + steps * stride, total - 1)


def check_sampling(*, frames: int, sampling: str, stride: int) -> None:
    """Check the three settings of `sample_indices` before any file is opened."""
    check_int(frames, "frames", 1)
    check_int(stride, "stride", 1)
    if check_choice(sampling, "sampling", SAMPLINGS) == "uniform" and stride != 1:
        raise fail("stride", "1 with sampling='uniform', which spans the whole video", stride)


def window_indices(total: int, *, frames: int, stride: int, hop: int) -> list[NDArray[np.int64]]:
    """Sliding windows of T indices: they start at 0, hop, 2 hop, ... until one reaches the end of the video.

    Past the end the last frame is repeated.
    """
    span = (frames - 1) * stride + 1
    steps = np.arange(frames, dtype=np.int64) * stride
    starts = [s for s in range(0, total, hop) if s == 0 or s - hop + span < total]
    return [np.minimum(start + steps, total - 1) for start in starts]
