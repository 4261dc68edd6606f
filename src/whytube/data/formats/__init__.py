"""Boxes and marks of other tools, read and written without loss: one type, `Annotations`, and a file per format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from whytube.checks import check_choice
from whytube.data.formats import beaverdam, coco, cvat, label_studio, tables
from whytube.data.formats.explained import explained
from whytube.data.formats.facts import Describe, Facts
from whytube.data.formats.track import Annotations, Box, Mark, Track
from whytube.errors import ArgumentError, DataError
from whytube.files import LARGEST, write_whole

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

__all__ = [
    "FORMATS",
    "Annotations",
    "Box",
    "Describe",
    "Facts",
    "Format",
    "Mark",
    "Track",
    "explained",
    "read_annotations",
    "write_annotations",
]


@dataclass(frozen=True)
class Format:
    """A kind of file. title: for people. ending: of its files. one_video: whether a file holds a single video.

    read: bytes of a file -> what it says of each video; DataError or ArgumentError where it is damaged.
    write: annotations, of one video where a file holds no more -> the text of a file.
    """

    title: str
    ending: str
    one_video: bool
    read: Callable[[bytes, Describe | None], list[Annotations]]
    write: Callable[[Sequence[Annotations]], str]


FORMATS: dict[str, Format] = {
    "cvat": Format("CVAT for video 1.1", ".xml", True, cvat.read, cvat.write),
    "beaverdam": Format("BeaverDam JSON", ".json", True, beaverdam.read, beaverdam.write),
    "label-studio": Format("Label Studio JSON", ".json", False, label_studio.read, label_studio.write),
    "coco": Format("COCO-style JSON", ".json", False, coco.read, coco.write),
    "tables": Format("whytube's own table", ".csv", False, tables.read, tables.write),
}
"""All formats by name."""


def read_annotations(
    path: str | os.PathLike[str], *, format: str, describe: Describe | None = None
) -> list[Annotations]:
    """Read what a file says of each of its videos; DataError says what is wrong with it.

    describe: gives the facts of a video by the name that the file has for it, see `Facts`. Files of other tools often
    lack some of them; those that whytube wrote have them all.
    """
    source = Path(path)
    check_choice(format, "format", FORMATS)
    try:
        if source.exists() and not source.is_file():  # a pipe or a device may never end
            raise DataError("it is not a file")
        if source.stat().st_size > LARGEST:
            raise DataError(f"more than {LARGEST >> 20} MiB. Split it")
        return FORMATS[format].read(source.read_bytes(), describe)
    except OSError as problem:
        raise DataError(f"cannot read {source}: {problem.strerror or problem}") from problem
    except ArgumentError as problem:  # backticks are for parameters; this is a place in the file
        told = str(problem).replace("`", "'")
        raise DataError(f"cannot read {source} as {FORMATS[format].title}: {told}") from problem
    except DataError as problem:
        raise DataError(f"cannot read {source} as {FORMATS[format].title}: {problem}") from problem


def write_annotations(
    path: str | os.PathLike[str],
    annotations: Annotations | Sequence[Annotations],
    *,
    format: str,
    overwrite: bool = False,
) -> Path:
    """Write a file, which appears only once it is whole. Some formats hold one video: see `Format.one_video`."""
    target, kind = Path(path), FORMATS[check_choice(format, "format", FORMATS)]
    several = [annotations] if isinstance(annotations, Annotations) else list(annotations)
    if kind.one_video and len(several) != 1:
        raise DataError(f"a file of {kind.title} holds one video, got {len(several)}. Write one file for each")
    if target.exists() and not overwrite:
        raise DataError(f"{target} exists already. Choose another name, or pass `overwrite=True`")
    return write_whole(target, kind.write(several), error=DataError)
