"""Reads video files through OpenCV, on machines that have it and not PyAV (GPU images often do).

OpenCV does not report damage and its time stamps are not reliable. Where PyAV is installed, PyAV is used.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from whytube.errors import VideoError
from whytube.video.clip import ASSUMED_FPS, MAX_PIXELS, Clip, VideoInfo, check_clip, sample_indices, too_large, widened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray


def is_installed() -> bool:
    """Whether OpenCV can be imported."""
    try:
        import cv2  # noqa: F401 (asking for its spec fails while another thread imports it)
    except ImportError:
        return False
    return True


def read_clip(
    path: Path,
    frames: int,
    *,
    size: tuple[int, int] | None,
    sampling: str = "uniform",
    stride: int = 1,
    max_pixels: int = MAX_PIXELS,
) -> Clip:
    """Read a clip as `read_clip` does; the file is decoded twice, times are frame number over frame rate."""
    info = probe(path, max_pixels=max_pixels)
    indices = sample_indices(info.frames, frames=frames, sampling=sampling, stride=stride)
    height, width = info.size if size is None else size
    check_clip(frames, (height, width), max_pixels)
    wanted = set(indices.tolist())
    sized: dict[int, NDArray[np.uint8]] = {}
    with _opened(path, max_pixels) as (capture, picture, _):
        for index in range(max(wanted) + 1):
            if index and not capture.grab():
                break
            if index in wanted:
                there, found = capture.retrieve() if index else (True, picture)
                picture = found if there else picture
                sized[index] = _resized(picture, height, width)
    last = max(sized)
    stacked = np.stack([sized[min(index, last)][:, :, ::-1] for index in indices.tolist()])  # OpenCV's pixels are BGR
    import torch

    return Clip(
        frames=torch.from_numpy(stacked).permute(3, 0, 1, 2).float().div_(255.0),
        indices=indices,
        times=indices / info.fps,
        size=info.size,
        source=str(path),
        fps=info.fps,
        duration=info.duration,
    )


def _resized(picture: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    import cv2

    shrinking = height * width < picture.shape[0] * picture.shape[1]
    way = cv2.INTER_AREA if shrinking else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(picture, (width, height), interpolation=way), dtype=np.uint8)


def probe(path: Path, *, max_pixels: int = MAX_PIXELS) -> VideoInfo:
    """Describe a video as `probe` does. Frames are counted by decoding them, as the count in a file may be wrong."""
    import cv2

    with _opened(path, max_pixels) as (capture, picture, fps):
        turned = int(capture.get(cv2.CAP_PROP_ORIENTATION_META))  # clockwise; OpenCV turns the pictures itself
        aspect = capture.get(cv2.CAP_PROP_SAR_NUM) / (capture.get(cv2.CAP_PROP_SAR_DEN) or 1)
        frames = 1
        while capture.grab():
            frames += 1
    height, width = (int(n) for n in picture.shape[:2])
    return VideoInfo(
        source=str(path),
        frames=frames,
        fps=fps,
        size=(widened(height, aspect), width) if turned % 180 else (height, widened(width, aspect)),
        duration=frames / fps,
        rotation=-turned % 360,
    )


@contextmanager
def _opened(path: Path, max_pixels: int) -> Iterator[tuple[Any, NDArray[np.uint8], float]]:
    """Open a file: OpenCV's reader, the first picture (H, W, 3) in BGR, already read, and frames per second."""
    import cv2

    if not path.is_file():
        raise VideoError(f"no video file {path}; without PyAV only video files are read: pip install av")
    capture = cv2.VideoCapture(str(path))
    try:
        width, height = (int(capture.get(n)) for n in (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT))
        if width * height > max_pixels:
            raise too_large(str(path), width, height, max_pixels)
        there, picture = capture.read()
        if not there:
            raise VideoError(f"{path} is not a video that OpenCV can read. Convert it to H.264 mp4, or pip install av")
        fps = capture.get(cv2.CAP_PROP_FPS)
        yield capture, np.asarray(picture, dtype=np.uint8), fps if 0 < fps < 1e4 else ASSUMED_FPS
    finally:
        capture.release()
