"""Reads video files through OpenCV, on machines that have it and not PyAV (GPU images often do).

OpenCV does not report damage and its time stamps are not reliable. Where PyAV is installed, PyAV is used.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from whytube.errors import VideoError
from whytube.video.clip import ASSUMED_FPS, Clip, VideoInfo, sample_indices

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from numpy.typing import NDArray


def is_installed() -> bool:
    """Whether OpenCV can be imported."""
    try:
        import cv2  # noqa: F401 (asking for its spec fails while another thread imports it)
    except ImportError:
        return False
    return True


def read_clip(
    path: str | os.PathLike[str], *, frames: int, size: tuple[int, int] | None, sampling: str, stride: int
) -> Clip:
    """Read a clip as `read_clip` does; the whole file is decoded, times are frame number over frame rate."""
    import cv2

    with _opened(path) as (capture, picture, fps):
        pictures: list[NDArray[np.uint8]] = []
        there = True
        while there:
            pictures.append(np.asarray(picture, dtype=np.uint8))
            there, picture = capture.read()
    indices = sample_indices(len(pictures), frames=frames, sampling=sampling, stride=stride)
    own = pictures[0].shape[:2]
    height, width = own if size is None else size
    shrinking = height * width < own[0] * own[1]
    sized = {
        index: cv2.resize(
            pictures[index], (width, height), interpolation=cv2.INTER_AREA if shrinking else cv2.INTER_LINEAR
        )
        for index in set(indices.tolist())
    }
    stacked = np.stack([sized[index][:, :, ::-1] for index in indices.tolist()])  # OpenCV's pixels are BGR
    return Clip(
        frames=torch.from_numpy(stacked).permute(3, 0, 1, 2).float().div_(255.0),
        indices=indices,
        times=indices / fps,
        size=(int(own[0]), int(own[1])),
        source=str(path),
        fps=fps,
        duration=len(pictures) / fps,
    )


def probe(path: str | os.PathLike[str]) -> VideoInfo:
    """Describe a video as `probe` does. Frames are counted by decoding them, as the count in a file may be wrong."""
    import cv2

    with _opened(path) as (capture, picture, fps):
        turned = int(capture.get(cv2.CAP_PROP_ORIENTATION_META))  # clockwise; OpenCV turns the pictures itself
        frames = 1
        while capture.grab():
            frames += 1
    return VideoInfo(
        source=str(path),
        frames=frames,
        fps=fps,
        size=(int(picture.shape[0]), int(picture.shape[1])),
        duration=frames / fps,
        rotation=-turned % 360,
    )


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[tuple[Any, NDArray[np.uint8], float]]:
    """Open a file: OpenCV's reader, the first picture (H, W, 3) in BGR, already read, and frames per second."""
    import cv2

    place = Path(path)
    if not place.is_file():
        raise VideoError(f"no video file {place}; without PyAV only video files are read: pip install av")
    capture = cv2.VideoCapture(str(place))
    try:
        there, picture = capture.read()
        if not there:
            raise VideoError(f"{place} is not a video that OpenCV can read. Convert it to H.264 mp4, or pip install av")
        fps = capture.get(cv2.CAP_PROP_FPS)
        yield capture, np.asarray(picture, dtype=np.uint8), fps if 0 < fps < 1e4 else ASSUMED_FPS
    finally:
        capture.release()
