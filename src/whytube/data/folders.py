"""Videos that lie in folders, whatever their layout."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from whytube.data.layout.videos import VIDEO_SUFFIXES
from whytube.errors import ArgumentError
from whytube.video.frames import FRAME_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Sequence


def find_videos(places: Sequence[Path]) -> list[Path]:
    """List the videos that are named: files, folders of frames, and whatever videos lie in other folders or below."""
    found: list[Path] = []
    for place in places:
        if not _is_folder(place) or holds_frames(place):
            found.append(place)
            continue
        inside: list[Path] = []
        for folder, folders, files in os.walk(place):
            here = Path(folder)
            frames = [name for name in folders if holds_frames(here / name)]
            folders[:] = sorted(name for name in folders if name not in frames and not name.startswith("."))
            inside += [here / name for name in frames]
            inside += [here / name for name in files if Path(name).suffix.lower() in VIDEO_SUFFIXES and name[0] != "."]
        if not inside:
            raise ArgumentError(f"the folder {place} holds neither frames (.jpg, .png) nor videos; name another")
        found += sorted(inside)
    return list(dict.fromkeys(found))


def _is_folder(place: Path) -> bool:
    try:
        return place.is_dir()
    except OSError:  # a name that is too long, say: the reader tells
        return False


def holds_frames(folder: Path) -> bool:
    """Whether a folder is a video, stored frame by frame."""
    try:
        return any(file.suffix.lower() in FRAME_SUFFIXES and file.name[0] != "." for file in folder.iterdir())
    except OSError:
        return False
