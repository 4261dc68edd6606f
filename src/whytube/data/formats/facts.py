"""Facts: what is known about a video besides what a file of annotations says about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from whytube.checks import LONGEST
from whytube.errors import DataError


@dataclass(frozen=True)
class Facts:
    """A video as its data know it: name, (height, width) of its own frames, number of frames, fps where known."""

    video: str
    size: tuple[int, int]
    frames: int
    fps: float | None = None


Describe = Callable[[str], Facts]
"""Gives the facts of the video that a file calls so, "" where it names none; DataError where there is no such video."""


def settle(
    video: str,
    describe: Describe | None,
    *,
    size: tuple[int, int] | None = None,
    frames: int | None = None,
    fps: float | None = None,
) -> Facts:
    """Put together what a file says about a video and what is known about it, which is believed.

    Another frame size than the known one is an error: the boxes would be in other pixels.
    """
    name = video[:LONGEST]
    if describe is not None:
        known = describe(video)
        if size is not None and size != known.size:
            told, real = (f"{width} x {height}" for height, width in (size, known.size))
            raise DataError(f"{name!r} has frames of {real} pixels, and its boxes are of {told}. Is it another video?")
        return known
    needed = {"name": video, "size": size, "number of frames": frames}
    missing = [what for what, value in needed.items() if not value]
    if size is None or frames is None or missing:
        text = f"the file does not say the {' and the '.join(missing)} of the video"
        raise DataError(f"{text}{f' {name!r}' if name else ''}. Import it to a folder that has the video")
    return Facts(video, size, frames, fps)
