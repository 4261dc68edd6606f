"""Reads clips: opens what the path names, picks frames, and converts them while decoding."""

from __future__ import annotations

import importlib.util
import stat
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whytube.checks import check_int, check_size
from whytube.errors import VideoError
from whytube.video import opencv
from whytube.video.clip import (
    MAX_PIXELS,
    Clip,
    EndedEarlyError,
    Shot,
    Source,
    ToRGB,
    VideoInfo,
    describe,
    reason,
    require_av,
    sample_indices,
    window_indices,
)
from whytube.video.decode import ContainerSource
from whytube.video.frames import SEQ_MAGIC, open_folder, open_seq

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    import torch
    from numpy.typing import NDArray

SPECIAL = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


class Sampled(NamedTuple):
    """Where the frames of a clip come from: `indices`, `times` and `size` of Clip."""

    indices: NDArray[np.int64]
    times: NDArray[np.float64]
    size: tuple[int, int]


def read_clip(
    path: str | os.PathLike[str],
    *,
    frames: int = 16,
    size: tuple[int, int] | None = None,
    sampling: str = "uniform",
    stride: int = 1,
    salvage: bool = False,
    max_pixels: int = MAX_PIXELS,
) -> Clip:
    """Read `frames` frames of a video file, a folder of .jpg/.png frames, or a .seq file.

    size: (height, width) to resize to, bilinear and antialiased, ignoring the aspect; None keeps the video's own.
    sampling: "uniform" spreads the frames over the whole video, "center" takes every `stride`-th around its middle;
        a video with fewer frames repeats some, as the clip's indices say.
    salvage: use what decodes of a damaged file, instead of a VideoError; indices then count the frames that decode.
    max_pixels: refuse a video whose frames have more pixels, before one is decoded, and a clip of four times as many.
    """
    sample_indices(1, frames=frames, sampling=sampling, stride=stride)  # checks the settings before a file is opened
    wanted = None if size is None else check_size(size)
    check_int(max_pixels, "max_pixels", 1)
    if stands_in():
        place = check_path(path)
        return opencv.read_clip(place, frames, size=wanted, sampling=sampling, stride=stride, max_pixels=max_pixels)
    convert = ToRGB(wanted, frames=frames, max_pixels=max_pixels)
    source = _open(path, salvage=salvage, max_pixels=max_pixels)
    held, indices = _sample(source, convert, frames=frames, sampling=sampling, stride=stride)
    return _clip(source, held, indices, str(path))


def read_bytes(path: str | os.PathLike[str], out: torch.Tensor, *, threads: int = 0) -> Sampled:
    """Read a video as `read_clip` does, without its floats: fill `out` (3, T, H, W) with RGB from 0 to 255.

    threads: of the decoder, 0 for one on every core. Who reads several videos at a time wants fewer: sixteen threads
    for one small video cost half as much again as one.
    """
    return read_pixels(path, out.numpy(), threads=threads)


def read_pixels(path: str | os.PathLike[str], out: NDArray[np.uint8], *, threads: int = 0) -> Sampled:
    """Fill an array (3, T, H, W) as `read_bytes` fills a tensor."""
    frames, height, width = out.shape[1:]
    if stands_in():
        clip = read_clip(path, frames=frames, size=(height, width))
        out[:] = clip.frames.mul_(255.0).round_().byte().numpy()
        return Sampled(clip.indices, clip.times, clip.size)
    convert = ToRGB(check_size((height, width)), frames=frames)
    source = _open(path, salvage=False, max_pixels=MAX_PIXELS, threads=threads)
    held, indices = _sample(source, convert, frames=frames)
    for t, index in enumerate(indices.tolist()):
        out[:, t] = held[index].pixels
    times = np.array([held[index].time for index in indices.tolist()])
    return Sampled(indices, times, held[int(indices[0])].size)


def _sample(
    source: Source, convert: ToRGB, *, frames: int, sampling: str = "uniform", stride: int = 1
) -> tuple[dict[int, _Held], NDArray[np.int64]]:
    """Read the frames that sampling takes: converted shots by their index, and the T indices of the clip."""
    total = source.count
    while True:
        indices = sample_indices(total, frames=frames, sampling=sampling, stride=stride)
        try:
            return {shot.index: _Held(shot, convert) for shot in source.read(np.unique(indices).tolist())}, indices
        except EndedEarlyError as error:
            total = error.frames


def read_frames(
    path: str | os.PathLike[str],
    indices: Sequence[int],
    *,
    size: tuple[int, int] | None = None,
    salvage: bool = False,
    max_pixels: int = MAX_PIXELS,
) -> Clip:
    """Read the frames `indices` of a video, as of a window of it; see `read_clip`."""
    convert = ToRGB(None if size is None else check_size(size), frames=len(indices), max_pixels=max_pixels)
    source = _open(path, salvage=salvage, max_pixels=max_pixels)
    if not 0 <= min(indices) <= max(indices) < source.count:
        raise VideoError(f"{path} has {source.count} frames, not frames {min(indices)} to {max(indices)}")
    try:
        held = {shot.index: _Held(shot, convert) for shot in source.read(sorted(set(indices)))}
    except EndedEarlyError as error:
        raise VideoError(f"{path} ends after {error.frames} frames, before frame {max(indices)}") from error
    return _clip(source, held, np.asarray(indices, dtype=np.int64), str(path))


def iter_windows(
    path: str | os.PathLike[str],
    *,
    frames: int = 16,
    stride: int = 1,
    hop: int | None = None,
    size: tuple[int, int] | None = None,
    salvage: bool = False,
    max_pixels: int = MAX_PIXELS,
) -> Iterator[Clip]:
    """Yield windows of `frames` frames, `stride` apart, over the whole video.

    They start at frames 0, hop, 2 hop, ... until one reaches the end; past the end the last frame is repeated.
    hop: by default frames * stride, so that windows do not overlap.
    size, salvage, max_pixels: as in `read_clip`. Only one window is held in memory; damage is found while reading, not
        at the call.
    """
    check_int(frames, "frames", 1)
    check_int(stride, "stride", 1)
    hop = frames * stride if hop is None else check_int(hop, "hop", 1)
    check_int(max_pixels, "max_pixels", 1)
    convert = ToRGB(None if size is None else check_size(size), frames=frames, max_pixels=max_pixels)
    source = _open(path, salvage=salvage, max_pixels=max_pixels)
    windows = window_indices(source.count, frames=frames, stride=stride, hop=hop)
    return _slide(source, windows, convert, str(path))


def _slide(source: Source, windows: Sequence[NDArray[np.int64]], convert: ToRGB, name: str) -> Iterator[Clip]:
    shots = source.read(np.unique(np.concatenate(windows)).tolist())
    held: dict[int, _Held] = {}
    ended = False
    for indices in windows:
        held = {index: shot for index, shot in held.items() if index >= indices[0]}
        try:
            while not ended and max(held, default=-1) < indices[-1]:
                shot = next(shots)
                if shot.index >= indices[0]:
                    held[shot.index] = _Held(shot, convert)
        except EndedEarlyError:
            ended = True
        if not held:
            return
        yield _clip(source, held, np.minimum(indices, max(held)), name)
        if ended:
            return


def probe(path: str | os.PathLike[str], *, salvage: bool = False, max_pixels: int = MAX_PIXELS) -> VideoInfo:
    """Describe a video: frames, rate, displayed size, duration, rotation. PyAV decodes no more than one frame."""
    check_int(max_pixels, "max_pixels", 1)
    if stands_in():
        return opencv.probe(check_path(path), max_pixels=max_pixels)
    return describe(_open(path, salvage=salvage, max_pixels=max_pixels), str(Path(path)))


@cache
def stands_in() -> bool:
    """Whether OpenCV is here and PyAV is not."""
    return importlib.util.find_spec("av") is None and opencv.is_installed()


def reader() -> str:
    """Name the library that reads video files here: their pixels differ a little."""
    return "OpenCV" if stands_in() else "PyAV"


def check_path(path: str | os.PathLike[str]) -> Path:
    """Require a file or a folder, which is there; anything else, as a pipe, might be waited for without end."""
    place, expected = Path(path), "expected a video file, a folder of frames or a .seq file"
    try:
        mode = place.stat().st_mode
    except FileNotFoundError:
        raise VideoError(f"no file or folder {place}; {expected}") from None
    except (OSError, ValueError) as error:
        raise VideoError(f"{place} cannot be read: {reason(error)}; {expected}") from error
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise VideoError(f"{place} is {SPECIAL.get(stat.S_IFMT(mode), 'no file')}; {expected}")
    return place


def _open(path: str | os.PathLike[str], *, salvage: bool, max_pixels: int, threads: int = 0) -> Source:
    if importlib.util.find_spec("av") is None:
        require_av()
    place = check_path(path)
    try:
        if place.is_dir():
            return open_folder(place, salvage=salvage, max_pixels=max_pixels)
        with place.open("rb") as file:
            magic = file.read(len(SEQ_MAGIC))
    except OSError as error:
        raise VideoError(f"{place} cannot be read: {reason(error)}") from error
    if not magic:
        raise VideoError(f"{place} is an empty file; expected a video. Fetch or write it again")
    if magic == SEQ_MAGIC or place.suffix.lower() == ".seq":
        return open_seq(place, salvage=salvage, max_pixels=max_pixels)
    return ContainerSource(place, salvage=salvage, max_pixels=max_pixels, threads=threads)


class _Held:
    """A converted shot: its pixels (3, H, W) uint8, its time, and the size of the picture it came from."""

    def __init__(self, shot: Shot, convert: ToRGB) -> None:
        self.time, self.size = shot.time, shot.size
        self.pixels = convert(shot)


def _clip(source: Source, held: dict[int, _Held], indices: NDArray[np.int64], name: str) -> Clip:
    """Stack held shots at `indices` into a Clip."""
    import torch

    first = held[int(indices[0])]
    frames = torch.empty(3, len(indices), *first.pixels.shape[1:])
    for t, index in enumerate(indices.tolist()):
        frames[:, t] = torch.from_numpy(held[index].pixels)
    times = np.array([held[index].time for index in indices.tolist()])
    return Clip(frames.div_(255.0), indices, times, first.size, name, fps=source.fps, duration=source.duration)
