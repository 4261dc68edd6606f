"""What all readers of videos share: Clip, which frames to take, and decoded pictures to RGB."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from whytube.checks import check_choice, check_finite, check_int, check_size, check_tensor, fail, shape_of
from whytube.errors import VideoError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import torch
    from av import VideoFrame
    from numpy.typing import NDArray

SAMPLINGS = ("uniform", "center")
ASSUMED_FPS = 25.0
# Pixels of a frame that are read without being told to: 8192 x 8192, twice an 8K picture. A clip may have CLIP_SHARE
# times as many; they take 12 bytes each.
MAX_PIXELS = 1 << 26
CLIP_SHARE = 4
# Pixels that are longer or narrower than this come from damaged headers, and are taken to be square.
LONGEST_PIXEL = 8


@dataclass(frozen=True, eq=False)
class Clip:
    """T frames of one video, with their positions and times in it.

    frames: (3, T, H, W) float32, RGB in [0, 1].
    indices: (T,) int64, 0-based frame indices in the source video, never decreasing; a short video repeats some.
    times: (T,) float64, seconds since the video's first frame.
    size: (height, width) of the video's own frames as displayed: after its rotation flag, and with square pixels. A
        stored frame whose pixels are not square is made wider or narrower; its height stays.
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
        import torch  # here, as in all of this package: processes that only read videos do without it

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
    size: (height, width) as displayed, see Clip. duration: seconds.
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
    check_int(frames, "frames", 1)
    check_int(stride, "stride", 1)
    if check_choice(sampling, "sampling", SAMPLINGS) == "uniform" and stride != 1:
        raise fail("stride", "1 with sampling='uniform', which spans the whole video", stride)
    steps = np.arange(frames, dtype=np.int64)
    if sampling == "uniform":
        return (2 * steps + 1) * total // (2 * frames)
    first = max(0, (total - (frames - 1) * stride - 1) // 2)
    return np.minimum(first + steps * stride, total - 1)


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
    """Picture `index` of a source, `time` seconds after its first. It is not converted yet.

    aspect: width over height of its pixels.
    """

    index: int
    time: float
    picture: VideoFrame
    aspect: float = 1.0

    @property
    def size(self) -> tuple[int, int]:
        """Height and width as displayed."""
        height, width = self.picture.height, widened(self.picture.width, self.aspect)
        return (width, height) if orientation(self.picture)[0] % 2 else (height, width)


def widened(width: int, aspect: float) -> int:
    """Width in square pixels of a picture whose own pixels are `aspect` times as wide as high."""
    return max(1, round(width * aspect)) if 1 / LONGEST_PIXEL <= aspect <= LONGEST_PIXEL else width


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
    first = next(source.read([0]))
    return VideoInfo(
        source=name,
        frames=count,
        fps=source.fps,
        size=first.size,
        duration=source.duration,
        rotation=90 * orientation(first.picture)[0],
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
    from av.sidedata.sidedata import SideDataContainer, Type

    # Not `picture.side_data`: that makes a reference cycle, and the picture would wait for the garbage collector.
    side_data = SideDataContainer(picture)  # type: ignore[call-arg]
    if Type.DISPLAYMATRIX not in side_data:
        return 0, False
    a, b, _, c, d = np.frombuffer(bytes(side_data[Type.DISPLAYMATRIX]), dtype=np.int32)[:5].tolist()
    mirrored = a * d - b * c < 0
    if mirrored:
        a, b = -a, -b
    return round(-math.atan2(b, a) / (math.pi / 2)) % 4, mirrored


def too_large(name: str, width: int, height: int, max_pixels: int) -> VideoError:
    """Build the error for frames beyond the limit; `name` is where they are."""
    return VideoError(
        f"{name} has frames of {width} x {height} pixels; expected at most {max_pixels} pixels. Make it smaller",
        advice=f"pass `max_pixels={width * height}`",
    )


def check_clip(frames: int, size: tuple[int, int], max_pixels: int) -> tuple[int, int]:
    """Return the size; refuse a clip of so many frames of it that takes too much memory."""
    pixels = frames * size[0] * size[1]
    if pixels > CLIP_SHARE * max_pixels:
        raise VideoError(
            f"a clip of {frames} frames of {size[1]} x {size[0]} pixels takes {12 * pixels / 1e9:.1f} GB of memory; "
            f"expected at most {CLIP_SHARE * max_pixels} pixels. Ask for a smaller size or fewer frames",
            advice=f"pass `max_pixels={-(-pixels // CLIP_SHARE)}`; a clip may have {CLIP_SHARE} times as many",
        )
    return size


class ToRGB:
    """Convert pictures to (3, H, W) uint8, upright and of one size: `size`, or that of the first picture.

    Resizing is bilinear with the filter widened when shrinking (antialiased), in one pass with the colour conversion.
    frames, max_pixels: a clip of so many such pictures must not have more than CLIP_SHARE * max_pixels pixels.
    """

    def __init__(self, size: tuple[int, int] | None, *, frames: int = 1, max_pixels: int = MAX_PIXELS) -> None:
        from av.video.reformatter import VideoReformatter

        self.frames, self.max_pixels = frames, max_pixels
        self.size = None if size is None else check_clip(frames, size, max_pixels)
        # Kept between pictures: setting it up takes much longer than converting a small picture.
        self._reformatter = VideoReformatter()

    def __call__(self, shot: Shot) -> NDArray[np.uint8]:
        """Convert one picture."""
        picture = shot.picture
        size = self.size = self.size or check_clip(self.frames, shot.size, self.max_pixels)
        turns, mirrored = orientation(picture)
        height, width = size[::-1] if turns % 2 else size
        # Planar, as a clip is: separating interleaved pixels takes longer than the conversion. But where nothing is
        # resized, FFmpeg leaves the last columns of planar pictures unwritten when the width is 1 to 8 above 16 n.
        planar = (height, width) != (picture.height, picture.width)
        planes = self._reformatter.reformat(
            picture,
            width=width,
            height=height,
            format="gbrp" if planar else "rgb24",
            interpolation="BILINEAR",
            threads=1,
        ).planes
        rgb = np.empty((3, height, width), dtype=np.uint8)
        stored = [np.frombuffer(memoryview(p), dtype=np.uint8).reshape(-1, p.line_size)[:height] for p in planes]
        if planar:
            channels = [stored[n][:, :width] for n in (2, 0, 1)]
        else:
            channels = [stored[0][:, n : 3 * width : 3] for n in range(3)]
        for channel, pixels in zip(rgb, channels, strict=True):
            channel[:] = pixels
        return np.ascontiguousarray(np.rot90(rgb[:, :, ::-1] if mirrored else rgb, turns, axes=(1, 2)))
