"""Clips through OpenCV, for machines that have it and not PyAV (GPU images often do): video files only.

OpenCV passes over damage in silence and knows no time stamps to rely on; where PyAV is installed it is not used.
"""

from __future__ import annotations

import importlib.util
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from whytube.errors import VideoError
from whytube.video.clip import Clip, VideoInfo, sample_indices
from whytube.video.picture import ASSUMED_FPS

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from numpy.typing import NDArray


@cache
def stands_in() -> bool:
    """Whether OpenCV is here and PyAV is not."""
    if importlib.util.find_spec("av") is not None:
        return False
    try:
        import cv2  # noqa: F401 (while a thread imports it, others cannot ask for its spec)
    except ImportError:
        return False
    return True


def read_clip_opencv(
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
    )


def probe_opencv(path: str | os.PathLike[str]) -> VideoInfo:
    """Describe a video as `probe` does; its frames are counted by decoding them, as the count in files may be wrong."""
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
    """Give OpenCV's reader of a file, its first picture (H, W, 3) in BGR, which was read, and its frames per second."""
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
