"""What all readers of videos share: Clip, which frames to take, and decoded pictures to RGB."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
import torch

from whytube.checks import check_choice, check_finite, check_int, check_size, check_tensor, fail, shape_of
from whytube.errors import VideoError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from av import VideoFrame
    from av.buffer import Buffer
    from numpy.typing import NDArray

SAMPLINGS = ("uniform", "center")
ASSUMED_FPS = 25.0


@dataclass(frozen=True, eq=False)
class Clip:
    """T frames of one video, with their positions and times in it.

    frames: (3, T, H, W) float32, RGB in [0, 1].
    indices: (T,) int64, 0-based frame indices in the source video, never decreasing; a short video repeats some.
    times: (T,) float64, seconds since the video's first frame.
    size: (height, width) of the video's own frames as displayed, that is after its rotation flag.
    source: where the frames come from, usually a path.
    fps, duration: rate and length in seconds of the whole video, as `probe` gives them; None if unknown.
    """

    frames: torch.Tensor
    indices: NDArray[np.int64]
    times: NDArray[np.float64]
    size: tuple[int, int]
    source: str
    fps: float | None = None
    duration: float | None = None

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
        object.__setattr__(self, "size", check_size(self.size))
        for name in ("fps", "duration"):
            if getattr(self, name) is not None:
                check_finite(getattr(self, name), name)

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
    """Description of a video.

    frames: number of frames, that is of packets (counted without decoding), images or .seq entries.
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


def sample_indices(total: int, *, frames: int, sampling: str = "uniform", stride: int = 1) -> NDArray[np.int64]:
    """Choose `frames` of `total` frame indices, (T,) int64 in increasing order.

    uniform: the middles of T equal parts of the video; a video with fewer frames than T repeats some.
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


@dataclass(frozen=True)
class Shot:
    """Picture `index` of a source, `time` seconds after its first. It is not converted yet."""

    index: int
    time: float
    picture: VideoFrame


class EndedEarlyError(Exception):
    """A source had fewer pictures than announced: only `frames` of them."""

    def __init__(self, frames: int) -> None:
        super().__init__(frames)
        self.frames = frames


class Source(Protocol):
    """A video file, a folder of frames or a .seq file."""

    @property
    def count(self) -> int:
        """Number of pictures, at least 1; too high where some do not decode."""
        ...

    @property
    def fps(self) -> float:
        """Average frames per second."""
        ...

    @property
    def duration(self) -> float:
        """Length in seconds."""
        ...

    def read(self, wanted: Sequence[int]) -> Iterator[Shot]:
        """Yield the shots at strictly increasing indices; EndedEarlyError if the source ends before the last."""
        ...


def describe(source: Source, name: str) -> VideoInfo:
    """Describe an open source; decodes its first picture for size and rotation."""
    count = source.count
    first = next(source.read([0])).picture
    return VideoInfo(
        source=name,
        frames=count,
        fps=source.fps,
        size=displayed_size(first),
        duration=source.duration,
        rotation=90 * orientation(first)[0],
    )


def require_av() -> None:
    """Raise an error that says how to install PyAV where it is missing."""
    if importlib.util.find_spec("av") is None:
        raise VideoError("video files need PyAV, which is not installed: pip install av")


def reason(error: Exception) -> str:
    """Message of a library's error, without its number and the library's function names."""
    return str(getattr(error, "strerror", None) or error)


def orientation(picture: VideoFrame) -> tuple[int, bool]:
    """Read the display matrix: quarter turns counter-clockwise, and whether to mirror left-right before turning."""
    from av.sidedata.sidedata import Type

    side_data = cast("Mapping[Type, Buffer]", picture.side_data)
    if Type.DISPLAYMATRIX not in side_data:
        return 0, False
    a, b, _, c, d = np.frombuffer(bytes(side_data[Type.DISPLAYMATRIX]), dtype=np.int32)[:5].tolist()
    mirrored = a * d - b * c < 0
    if mirrored:
        a, b = -a, -b
    return round(-math.atan2(b, a) / (math.pi / 2)) % 4, mirrored


def displayed_size(picture: VideoFrame) -> tuple[int, int]:
    """Height and width after the rotation flag."""
    turns, _ = orientation(picture)
    return (picture.width, picture.height) if turns % 2 else (picture.height, picture.width)


class ToRGB:
    """Convert pictures to (3, H, W) uint8, upright and of one size: `size`, or that of the first picture.

    Resizing is bilinear with the filter widened when shrinking (antialiased), in one pass with the colour conversion.
    """

    def __init__(self, size: tuple[int, int] | None) -> None:
        from av.video.reformatter import VideoReformatter

        self.size = size
        # Kept between pictures: setting it up takes much longer than converting a small picture.
        self._reformatter = VideoReformatter()

    def __call__(self, picture: VideoFrame) -> tuple[NDArray[np.uint8], tuple[int, int]]:
        """Convert one picture; also return its own (height, width) as displayed."""
        own = displayed_size(picture)
        if self.size is None:
            self.size = own
        turns, mirrored = orientation(picture)
        height, width = self.size[::-1] if turns % 2 else self.size
        # Planar, as a clip is: separating interleaved pixels would take longer than the conversion.
        gbr = self._reformatter.reformat(
            picture, width=width, height=height, format="gbrp", interpolation="BILINEAR", threads=1
        ).planes
        rgb = np.empty((3, height, width), dtype=np.uint8)
        for channel, plane in zip(rgb, (gbr[2], gbr[0], gbr[1]), strict=True):
            channel[:] = np.frombuffer(memoryview(plane), dtype=np.uint8).reshape(-1, plane.line_size)[:height, :width]
        return np.ascontiguousarray(np.rot90(rgb[:, :, ::-1] if mirrored else rgb, turns, axes=(1, 2))), own
