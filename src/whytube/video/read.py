"""Read clips: open whatever the path names, pick frames, convert them on the way."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from whytube.checks import check_int
from whytube.errors import VideoError
from whytube.video.clip import Clip, VideoInfo, check_sampling, check_size, sample_indices, window_indices
from whytube.video.decode import ContainerSource
from whytube.video.frames import SEQ_MAGIC, open_folder, open_seq
from whytube.video.opencv import probe_opencv, read_clip_opencv, stands_in
from whytube.video.picture import EndedEarlyError, Shot, Source, ToRGB, displayed_size, reason, require_av

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray


def read_clip(
    path: str | os.PathLike[str],
    *,
    frames: int = 16,
    size: tuple[int, int] | None = None,
    sampling: str = "uniform",
    stride: int = 1,
    salvage: bool = False,
) -> Clip:
    """Read `frames` frames of a video file, a folder of .jpg/.png frames, or a .seq file.

    size: (height, width) to resize to, bilinear and antialiased, ignoring the aspect; None keeps the video's own.
    sampling: "uniform" spreads the frames over the whole video, "center" takes every `stride`-th around its middle;
        a video with fewer frames repeats some, as the clip's indices say.
    salvage: use what decodes of a damaged file, instead of a VideoError; indices then count the frames that decode.
    """
    check_sampling(frames=frames, sampling=sampling, stride=stride)
    if stands_in():
        wanted = None if size is None else check_size(size, "size")
        return read_clip_opencv(path, frames=frames, size=wanted, sampling=sampling, stride=stride)
    source, convert = _open(path, salvage=salvage), ToRGB(None if size is None else check_size(size, "size"))
    total = source.count
    while True:
        indices = sample_indices(total, frames=frames, sampling=sampling, stride=stride)
        try:
            held = {shot.index: _Held(shot, convert) for shot in source.read(np.unique(indices).tolist())}
        except EndedEarlyError as error:
            total = error.frames
        else:
            return _clip(held, indices, str(path))


def iter_windows(
    path: str | os.PathLike[str],
    *,
    frames: int = 16,
    stride: int = 1,
    hop: int | None = None,
    size: tuple[int, int] | None = None,
    salvage: bool = False,
) -> Iterator[Clip]:
    """Slide a window of `frames` frames, `stride` apart, over a video in steps of `hop` frames (default: its reach).

    Holds one window's frames at a time. Windows start at 0, hop, 2 hop, ... until one reaches the end; there the last
    frame is repeated. `size` and `salvage` as in `read_clip`; damage is found on the way, after earlier windows.
    """
    check_int(frames, "frames", 1)
    check_int(stride, "stride", 1)
    hop = frames * stride if hop is None else check_int(hop, "hop", 1)
    source, convert = _open(path, salvage=salvage), ToRGB(None if size is None else check_size(size, "size"))
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
        yield _clip(held, np.minimum(indices, max(held)), name)
        if ended:
            return


def probe(path: str | os.PathLike[str], *, salvage: bool = False) -> VideoInfo:
    """Describe a video: frames, rate, displayed size, duration, rotation. PyAV decodes no more than one frame."""
    if stands_in():
        return probe_opencv(path)
    return _open(path, salvage=salvage).info()


def measure_decode(path: str | os.PathLike[str], *, repeats: int = 5) -> dict[str, float]:
    """Compare reading a video file with PyAV's bare threaded loop on it: frames decoded per second, best of `repeats`.

    raw: PyAV, every frame decoded and dropped. raw_rgb: PyAV, every frame to an RGB array by `to_ndarray`.
    decode: every frame through this package's decoder, counting included. clip: `read_clip` of 16 frames of 112 x 112.
    windows: `iter_windows`, every frame a part of a float clip of 112 x 112. decode_ratio, clip_ratio: over raw.
    """
    source = _open(path, salvage=False)
    if not isinstance(source, ContainerSource):
        raise VideoError(
            f"{path} is no video file, which PyAV's own loop could read. Give an .mp4, .avi, .mkv or the like"
        )
    total = source.count
    reached = int(sample_indices(total, frames=16)[-1]) + 1
    work: dict[str, tuple[int, Callable[[], object]]] = {
        "raw": (total, lambda: _decode_bare(path, rgb=False)),
        "raw_rgb": (total, lambda: _decode_bare(path, rgb=True)),
        "decode": (total, lambda: sum(1 for _ in _open(path, salvage=False).read(range(total)))),
        "clip": (reached, lambda: read_clip(path, size=(112, 112))),
        "windows": (total, lambda: sum(1 for _ in iter_windows(path, size=(112, 112)))),
    }
    rates: dict[str, float] = dict.fromkeys(work, 0.0)
    for _ in range(check_int(repeats, "repeats", 1)):
        for name, (count, run) in work.items():
            start = time.perf_counter()
            run()
            rates[name] = max(rates[name], count / (time.perf_counter() - start))
    ratios = {f"{name}_ratio": rates[name] / rates["raw"] for name in ("decode", "clip")}
    return {"frames": total, **rates, **ratios}


def _decode_bare(path: str | os.PathLike[str], *, rgb: bool) -> None:
    import av

    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        for picture in container.decode(stream):
            if rgb:
                picture.to_ndarray(format="rgb24")


def _open(path: str | os.PathLike[str], *, salvage: bool) -> Source:
    require_av()
    place = Path(path)
    if not place.exists():
        raise VideoError(f"no file or folder {place}; expected a video file, a folder of frames or a .seq file")
    if place.is_dir():
        return open_folder(place, salvage=salvage)
    try:
        with place.open("rb") as file:
            magic = file.read(len(SEQ_MAGIC))
    except OSError as error:
        raise VideoError(f"{place} cannot be read: {reason(error)}") from error
    if not magic:
        raise VideoError(f"{place} is an empty file; expected a video. Fetch or write it again")
    if magic == SEQ_MAGIC or place.suffix.lower() == ".seq":
        return open_seq(place, salvage=salvage)
    return ContainerSource(place, salvage=salvage)


class _Held:
    """A converted shot: its pixels (3, H, W) uint8, its time, and the size of the picture it came from."""

    def __init__(self, shot: Shot, convert: ToRGB) -> None:
        self.time = shot.time
        self.size = displayed_size(shot.picture)
        self.pixels = convert(shot.picture)


def _clip(held: dict[int, _Held], indices: NDArray[np.int64], name: str) -> Clip:
    """Stack held shots at `indices` into a Clip."""
    first = held[int(indices[0])]
    frames = torch.empty(3, len(indices), *first.pixels.shape[1:])
    for t, index in enumerate(indices.tolist()):
        frames[:, t] = torch.from_numpy(held[index].pixels)
    times = np.array([held[index].time for index in indices.tolist()])
    return Clip(frames=frames.div_(255.0), indices=indices, times=times, size=first.size, source=name)
