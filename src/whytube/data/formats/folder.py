"""Boxes and marks of a data folder (docs/data.md) as Annotations, and Annotations taken into a data folder."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from whytube.checks import LONGEST, check_choice
from whytube.data.formats import FORMATS, write_annotations
from whytube.data.formats.facts import Facts
from whytube.data.formats.track import Annotations, Mark, Track
from whytube.data.layout import read_dataset
from whytube.data.layout.annotations import BOX_COLUMNS, BOX_FILE, VIDEO_FILE
from whytube.data.layout.videos import Names, find_videos
from whytube.data.rows import Problems, Row, Sheet, write_rows
from whytube.data.source import ACTOR
from whytube.errors import DataError
from whytube.files import whole_file, whole_folder
from whytube.video import probe

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from whytube.data.layout.dataset import Dataset, Item

UPLOADED = re.compile(r"^[0-9a-f]{8}-")
"""What Label Studio puts in front of the name of a file that was uploaded to it."""


class Folder:
    """The videos of a data folder by the names that other tools have for them."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.data: Dataset = read_dataset(folder)
        self.problems = Problems(self.data.folder)
        self.names = Names(find_videos(self.data.folder, self.problems))
        self.items: Mapping[str, Item] = {item.name: item for item in self.data.videos}

    def find(self, name: str) -> Item:
        """Find a video by its name in the CSV files, or by that of its file alone where that leaves no doubt."""
        found = self.names.look_up(name, self.problems)
        if not isinstance(found, str):
            return self.items[found.name]
        ends = {PurePosixPath(name).name, UPLOADED.sub("", PurePosixPath(name).name)}
        alike = [item for item in self.items.values() if ends & {item.path.name, item.path.stem}]
        if len(alike) > 1:
            raise DataError(f"{name[:LONGEST]!r} may be {alike[0].name!r} or {alike[1].name!r}. Give `video`")
        if not alike:
            raise DataError(f"{found}. Give `video` to say which one it is")
        return alike[0]

    def describe(self, name: str) -> Facts:
        """Open a video and say how large and how long it is."""
        item = self.find(name)
        info = probe(item.path)
        return Facts(item.name, info.size, info.frames, info.fps)

    def annotations(self, item: Item) -> Annotations:
        """Return a video's boxes, seen at their own frames alone, and marks where it differs from its class."""
        facts = self.describe(item.name)
        tracks = [Track.from_tube(attribute, tube) for attribute, tube in item.boxes.items() if tube.volume]
        seen = tuple(track for track in tracks if min(track.keyframes) < facts.frames)
        differs = (item.attributes != self.data.table[item.label]).nonzero().flatten().tolist()
        marks = tuple(Mark(self.data.attribute_names[s], bool(item.attributes[s])) for s in differs)
        return Annotations(facts.video, facts.size, facts.frames, facts.fps, seen, marks)


@dataclass(frozen=True)
class Taken:
    """What was taken into a data folder: numbers of videos, box tracks, boxes, and cells of video_attributes.csv."""

    folder: str
    videos: int
    tracks: int
    boxes: int
    marks: int

    def __str__(self) -> str:
        told = f"{self.boxes} boxes in {self.tracks} tracks and {self.marks} marks, of {self.videos} videos"
        return f"{self.folder}: took {told}"


def joined(annotations: Iterable[Annotations]) -> list[Annotations]:
    """Put together what several files say of one video."""
    found: dict[str, Annotations] = {}
    for one in annotations:
        before = found.get(one.video)
        if before is not None:
            marks = tuple(dict.fromkeys(before.marks + one.marks))
            one = replace(one, tracks=before.tracks + one.tracks, marks=marks)
        found[one.video] = one
    return list(found.values())


def write_out(
    out: str | os.PathLike[str], annotations: Sequence[Annotations], *, format: str, overwrite: bool = False
) -> list[Path]:
    """Write a file, or a new folder with a file for each video where the format holds one video and there are more."""
    kind = FORMATS[check_choice(format, "format", FORMATS)]
    if not kind.one_video or len(annotations) == 1:
        return [write_annotations(out, annotations, format=format, overwrite=overwrite)]
    names = [f"{one.video.replace('/', '_').lstrip('._')}{kind.ending}" for one in annotations]
    if len(set(names)) < len(names):
        names = [f"{number}_{name}" for number, name in enumerate(names, 1)]
    with whole_folder(out, error=DataError) as folder:
        for name, one in zip(names, annotations, strict=True):
            write_annotations(folder / name, one, format=format)
    return [Path(out) / name for name in names]


def take_in(folder: Folder, annotations: Sequence[Annotations]) -> Taken:
    """Write annotations to boxes.csv and video_attributes.csv of a folder; what they do not speak of stays.

    Boxes are those of `Annotations.tubes`: interpolated between key frames, one per attribute and frame. They replace
    the boxes of the same video and attribute. A video has the attributes of `Annotations.present`; where that differs
    from its class, or from what was said before, a cell of video_attributes.csv is written.
    """
    known = (*folder.data.attribute_names, ACTOR)
    for one in annotations:
        if one.video not in folder.items:
            raise DataError(folder.problems.unknown("video", one.video, folder.items))
        for attribute in one.present:
            if attribute not in known:
                text = folder.problems.unknown("attribute", attribute, known)
                raise DataError(f"{one.video}: {text}. Write it to the header of attributes.csv first")
    tubes = {(one.video, name): tube for one in annotations for name, tube in one.tubes().items()}
    rows = [
        {"video": video, "attribute": name, "frame": str(frame), **_corners(box)}
        for (video, name), tube in tubes.items()
        for frame, box in zip(tube.frames.tolist(), tube.boxes.tolist(), strict=True)
    ]
    cells = _cells(folder, annotations)
    if rows:
        _write_boxes(folder, rows, set(tubes))
    if cells:
        _write_marks(folder, cells)
    return Taken(str(folder.data.folder), len(annotations), len(tubes), len(rows), sum(map(len, cells.values())))


def _corners(box: Sequence[float]) -> dict[str, str]:
    return {name: repr(value) for name, value in zip(BOX_COLUMNS[3:], box, strict=True)}


def _cells(folder: Folder, annotations: Iterable[Annotations]) -> dict[str, dict[str, str]]:
    """Find what video_attributes.csv must say of each video that it, or the video's class, does not say yet."""
    cells: dict[str, dict[str, str]] = {}
    for one in annotations:
        item = folder.items[one.video]
        for attribute, present in one.present.items():
            if attribute == ACTOR:
                continue
            if bool(item.attributes[folder.data.attribute_names.index(attribute)]) != present:
                cells.setdefault(one.video, {})[attribute] = str(int(present))
    return cells


def _kept(folder: Folder, file: str) -> tuple[list[str], list[tuple[str, Row]]]:
    """Read the columns and the rows of a CSV file, each row with its video."""
    sheet = Sheet(folder.data.folder / file, folder.problems, required=("video",), free=True)
    rows = [(video.name, row) for video, row in folder.names.rows(sheet)]
    return list(sheet.columns), rows


def _write_boxes(folder: Folder, rows: Iterable[Mapping[str, str]], replaced: set[tuple[str, str]]) -> None:
    columns, old = _kept(folder, BOX_FILE)
    columns = columns or list(BOX_COLUMNS)
    kept = [row for video, row in old if (video, row["attribute"]) not in replaced]
    _write(folder.data.folder / BOX_FILE, columns, [*kept, *rows])


def _write_marks(folder: Folder, cells: Mapping[str, Mapping[str, str]]) -> None:
    columns, old = _kept(folder, VIDEO_FILE)
    wanted = dict.fromkeys(name for row in cells.values() for name in row)
    columns = list(dict.fromkeys([*(columns or ["video"]), *wanted]))
    changed = [{**row, **cells.get(video, {})} for video, row in old]
    there = {video for video, _ in old}
    new = [{"video": video, **row} for video, row in cells.items() if video not in there]
    _write(folder.data.folder / VIDEO_FILE, columns, [*changed, *new])


def _write(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> None:
    with whole_file(path, error=DataError) as part:
        write_rows(part, [columns, *([row.get(column, "") for column in columns] for row in rows)])
