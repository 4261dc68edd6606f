"""Turns a received file into what the server shows and the classifier sees. Runs in a child process only.

play.mp4      every frame, H.264 at a constant rate: frame i of the video is shown at i / fps seconds
clip-*.npz    the frames that the classifier sees, exactly as `read_clip` reads them from the original
"""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from whytube.data.world import World
from whytube.errors import VideoError
from whytube.video import Clip, VideoInfo, iter_windows, probe, read_clip, write_video

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

torch.set_num_threads(1)  # children are forks of this process: a pool of threads would not survive that

LONGEST_SIDE = 1280
"""Of play.mp4; larger frames are made smaller. Boxes stay in pixels of the video's own frames."""
SLOWEST, FASTEST = 1, 120
"""Rate of play.mp4, frames per second."""
WINDOW = 8
EXAMPLE_SIZE, EXAMPLE_FPS = 224, 8.0


def prepare_video(
    folder: str, file: str, name: str, clip: tuple[int, tuple[int, int]], limits: dict[str, Any]
) -> dict[str, Any]:
    """Write play.mp4 and the clip beside `file` in `folder`; return frames, fps, duration, width and height.

    name: what errors call the video. clip: the classifier's frames and size. limits: seconds, frames, pixels.
    """
    original = Path(folder) / file
    try:
        info = probe(original, max_pixels=limits["pixels"])
        _check(info, limits)
        _write_clip(original, *clip, pixels=limits["pixels"])
        rate = min(max(Fraction(info.fps).limit_denominator(1001), Fraction(SLOWEST)), Fraction(FASTEST))
        count = _write_play(original, info, rate, pixels=limits["pixels"])
    except VideoError as error:  # where things lie on this machine is nobody's business
        raise VideoError(str(error.bare).replace(str(original), name)) from None
    height, width = info.size
    return {"frames": count, "fps": float(rate), "duration": count / float(rate), "width": width, "height": height}


def prepare_clip(folder: str, file: str, clip: tuple[int, tuple[int, int]], pixels: int) -> None:
    """Write the clip of a video that is kept, for a classifier with other frames or another size."""
    _write_clip(Path(folder) / file, *clip, pixels=pixels)


def render_example(path: str, index: int) -> None:
    """Write test clip `index` of the embedded world as a video."""
    write_video(path, World(size=EXAMPLE_SIZE).batch("test", [index]).clips[0], EXAMPLE_FPS)


def clip_name(frames: int, size: tuple[int, int]) -> str:
    """Name of the file with the frames that a classifier sees."""
    return f"clip-{frames}-{size[0]}x{size[1]}.npz"


def load_clip(path: str | os.PathLike[str]) -> Clip:
    """Read what `prepare_clip` wrote: the same clip, bit by bit, that `read_clip` gives."""
    with np.load(path, allow_pickle=False) as kept:
        frames = torch.from_numpy(kept["frames"]).float().div_(255.0)
        height, width = kept["size"].tolist()
        fps, duration = kept["rate"].tolist()
        return Clip(frames, kept["indices"], kept["times"], (height, width), "video", fps=fps, duration=duration)


def _check(info: VideoInfo, limits: dict[str, Any]) -> None:
    if info.frames > limits["frames"]:
        raise VideoError(f"this video has {info.frames} frames; expected at most {limits['frames']}. Cut it")
    if info.duration > limits["seconds"]:
        raise VideoError(f"this video has {info.duration:.0f} seconds; expected at most {limits['seconds']:g}. Cut it")


def _write_clip(original: Path, frames: int, size: tuple[int, int], *, pixels: int) -> None:
    clip = read_clip(original, frames=frames, size=size, max_pixels=pixels)
    target = original.parent / clip_name(frames, size)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    with part.open("wb") as file:
        np.savez(
            file,
            frames=clip.frames.mul(255).round().byte().numpy(),
            indices=clip.indices,
            times=clip.times,
            size=np.array(clip.size),
            rate=np.array([clip.fps or 0.0, clip.duration or 0.0]),
        )
        file.flush()
        os.fsync(file.fileno())
    part.replace(target)


def _write_play(original: Path, info: VideoInfo, rate: Fraction, *, pixels: int) -> int:
    """Encode all frames; return how many."""
    scale = min(1.0, LONGEST_SIDE / max(info.size))
    height, width = (max(2, 2 * round(side * scale / 2)) for side in info.size)
    count = 0

    def pictures() -> Iterator[NDArray[np.uint8]]:
        nonlocal count
        for window in iter_windows(original, frames=WINDOW, size=(height, width), max_pixels=pixels):
            every = window.frames.mul(255).round().byte().permute(1, 2, 3, 0).numpy()
            for index, picture in zip(window.indices.tolist(), every, strict=True):
                if index == count:
                    yield np.ascontiguousarray(picture)
                    count += 1

    write_video(original.with_name("play.mp4"), pictures(), float(rate), crf=20, preset="veryfast")
    return count
