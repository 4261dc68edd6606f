"""One decoded picture: who hands it over, and how it becomes upright RGB pixels of the wanted size."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from whytube.errors import VideoError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from av import VideoFrame
    from av.buffer import Buffer
    from numpy.typing import NDArray

    from whytube.video.clip import VideoInfo

ASSUMED_FPS = 25.0


@dataclass(frozen=True)
class Shot:
    """Picture `index` of a source, `time` seconds after its first; not yet converted, so skipping one is free."""

    index: int
    time: float
    picture: VideoFrame


class EndedEarlyError(Exception):
    """A source had fewer pictures than it announced; `frames` were found."""

    def __init__(self, frames: int) -> None:
        super().__init__(frames)
        self.frames = frames


class Source(Protocol):
    """A video file, a folder of frames or a .seq file."""

    @property
    def count(self) -> int:
        """Number of pictures, at least 1; may be too high by some that turn out not to decode."""
        ...

    def read(self, wanted: Sequence[int]) -> Iterator[Shot]:
        """Yield the shots of strictly increasing indices; EndedEarlyError where the source ends before the last."""
        ...

    def info(self) -> VideoInfo:
        """Describe the source."""
        ...


def require_av() -> None:
    """Say how to get PyAV where it is missing."""
    if importlib.util.find_spec("av") is None:
        raise VideoError("video files need PyAV, which is not installed: pip install av")


def reason(error: Exception) -> str:
    """Say what went wrong without the error number and the library's own function names."""
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
        # Kept between pictures: setting up the scaler costs many times a small picture's conversion.
        self._reformatter = VideoReformatter()

    def __call__(self, picture: VideoFrame) -> NDArray[np.uint8]:
        """Convert one picture."""
        if self.size is None:
            self.size = displayed_size(picture)
        turns, mirrored = orientation(picture)
        height, width = self.size[::-1] if turns % 2 else self.size
        # Planes, as in a clip: taking interleaved pixels apart would cost more than converting them.
        gbr = self._reformatter.reformat(
            picture, width=width, height=height, format="gbrp", interpolation="BILINEAR", threads=1
        ).planes
        rgb = np.empty((3, height, width), dtype=np.uint8)
        for channel, plane in zip(rgb, (gbr[2], gbr[0], gbr[1]), strict=True):
            channel[:] = np.frombuffer(memoryview(plane), dtype=np.uint8).reshape(-1, plane.line_size)[:height, :width]
        return np.ascontiguousarray(np.rot90(rgb[:, :, ::-1] if mirrored else rgb, turns, axes=(1, 2)))
