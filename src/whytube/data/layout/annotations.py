"""What is said about the videos: attributes of classes and of single videos, and box tracks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from whytube.data.rows import Problems, read_sheet
from whytube.data.source import ACTOR
from whytube.data.tables import AttributeTable, read_class_rows, read_flag
from whytube.tubes import Tube

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from whytube.data.layout.videos import Names, Video
    from whytube.data.rows import Row

CLASS_FILE, VIDEO_FILE, BOX_FILE = "attributes.csv", "video_attributes.csv", "boxes.csv"
CORNERS = ("x1", "y1", "x2", "y2")


@dataclass(frozen=True)
class Track:
    """The boxes of an attribute or the actor in one video, and the lines of boxes.csv that hold them, (L,) int64."""

    tube: Tube
    lines: NDArray[np.int64]


def read_attributes(
    folder: Path, videos: list[Video], names: Names, problems: Problems
) -> tuple[AttributeTable, dict[str, torch.Tensor]]:
    """Return the class table, and the row (S,) bool of every video by its name.

    A video has its class's row, but for what video_attributes.csv says about it. With that file alone, a class has
    an attribute that at least half of its listed videos have.
    """
    path = folder / CLASS_FILE
    table = read_class_rows(path, problems) if path.is_file() else None
    own_path = folder / VIDEO_FILE
    own = _read_video_rows(own_path, names, problems) if own_path.is_file() else None
    words, flags = own or ((), {})
    if table is None:
        classes = tuple(sorted({video.label for video in videos}))
        table = AttributeTable(classes, words, _majority(classes, words, videos, flags))
        if not path.is_file() and own is None:
            problems.warn(folder, f"no {CLASS_FILE}: there is no word to explain with. Write class,<attribute>,...")
    else:
        _check_classes(path, table, videos, problems)
        for word in words:
            if word not in table.attribute_names:
                problems.error(own_path, problems.unknown("attribute", word, table.attribute_names), 1)
    if ACTOR in table.attribute_names:
        text = f"{ACTOR!r} is the name of the actor's boxes in {BOX_FILE}. Call the attribute something else"
        problems.error(path if path.is_file() else own_path, text, 1)
    return table, _rows(table, videos, flags)


def _check_classes(path: Path, table: AttributeTable, videos: list[Video], problems: Problems) -> None:
    used = set()
    for video in videos:
        if video.label not in table.classes and (video.label not in used or video.line):
            text = problems.unknown("class", video.label, table.classes)
            problems.error(video.file, f"{text} ({path.name} has no row for it)", video.line)
        used.add(video.label)
    unused = [name for name in table.classes if name not in used]
    if unused:
        some = ", ".join(unused[:5]) + (", ..." if len(unused) > 5 else "")
        problems.warn(path, f"{len(unused)} of {len(table.classes)} classes have no videos: {some}")
    nowhere = [
        word
        for word, any_class in zip(table.attribute_names, table.values.any(0).tolist(), strict=True)
        if not any_class
    ]
    if nowhere:
        problems.warn(path, f"no class has the attribute{'s' * (len(nowhere) > 1)} {', '.join(map(repr, nowhere))}")


def _read_video_rows(
    path: Path, names: Names, problems: Problems
) -> tuple[tuple[str, ...], dict[str, dict[str, bool]]] | None:
    """Return the attributes in the header, and by video name what its row says; empty cells say nothing."""
    sheet = read_sheet(path, problems, required=("video",), free=True)
    if sheet is None:
        return None
    words = tuple(column for column in sheet.columns if column != "video")
    flags: dict[str, dict[str, bool]] = {}
    lines: dict[str, int] = {}
    for row in sheet.rows:
        video = names.find(row.cells["video"], problems)
        if isinstance(video, str):
            problems.error(path, video, row.line)
        elif video.name in lines:
            text = f"{video.name!r} comes again, after line {lines[video.name]}. Keep one row"
            problems.error(path, text, row.line)
        else:
            lines[video.name] = row.line
            said = {word: read_flag(row, word, path, problems, blank=True) for word in words}
            flags[video.name] = {word: flag for word, flag in said.items() if flag is not None}
    return words, flags


def _majority(
    classes: tuple[str, ...], words: tuple[str, ...], videos: list[Video], flags: dict[str, dict[str, bool]]
) -> torch.Tensor:
    """Give a class the attributes of at least half of its listed videos, (C, S) bool."""
    votes = torch.zeros(len(classes), len(words), dtype=torch.long)
    listed = torch.zeros(len(classes), 1, dtype=torch.bool)
    place = {name: c for c, name in enumerate(classes)}
    for video in videos:
        if video.name in flags:
            said, label = flags[video.name], place[video.label]
            votes[label] += torch.tensor([1 if said.get(word) else -1 for word in words], dtype=torch.long)
            listed[label] = True
    return (votes >= 0) & listed


def _rows(table: AttributeTable, videos: list[Video], flags: dict[str, dict[str, bool]]) -> dict[str, torch.Tensor]:
    place = {word: s for s, word in enumerate(table.attribute_names)}
    rows = {}
    for video in videos:
        if video.label in table.classes:
            row = table.row(video.label).clone()
            for word, flag in flags.get(video.name, {}).items():
                if word in place:
                    row[place[word]] = flag
            rows[video.name] = row
    return rows


def read_boxes(
    folder: Path, names: Names, attributes: tuple[str, ...], problems: Problems
) -> dict[str, dict[str, Track]]:
    """Return video name -> attribute or ACTOR -> its track, from boxes.csv."""
    path = folder / BOX_FILE
    sheet, known = None, (*attributes, ACTOR)
    if path.is_file():
        sheet = read_sheet(path, problems, required=("video", "attribute", "frame", *CORNERS))
    found: dict[tuple[str, str], dict[int, tuple[int, list[float]]]] = {}
    for row in sheet.rows if sheet else []:
        video = names.find(row.cells["video"], problems)
        if isinstance(video, str):
            problems.error(path, video, row.line)
        elif row.cells["attribute"] not in known:
            problems.error(path, problems.unknown("attribute", row.cells["attribute"], known), row.line)
        elif (read := _read_box(row, path, problems)) is not None:
            frame, box = read
            track = found.setdefault((video.name, row.cells["attribute"]), {})
            if frame in track:
                text = f"frame {frame} of {row.cells['attribute']!r} has a box already, in line {track[frame][0]}"
                problems.error(path, f"{text}. Keep one box per frame, around all that shows it", row.line)
            else:
                track[frame] = (row.line, box)
    tracks: dict[str, dict[str, Track]] = {}
    for (name, word), rows in found.items():
        tracks.setdefault(name, {})[word] = _track(rows)
    return tracks


def _track(rows: dict[int, tuple[int, list[float]]]) -> Track:
    frames = np.array(sorted(rows), dtype=np.int64)
    boxes = np.array([rows[frame][1] for frame in frames.tolist()])
    return Track(Tube(frames, boxes), np.array([rows[frame][0] for frame in frames.tolist()], dtype=np.int64))


def _read_box(row: Row, path: Path, problems: Problems) -> tuple[int, list[float]] | None:
    """Return frame and corners, or None with the reason noted."""
    try:
        frame, box = int(row.cells["frame"]), [float(row.cells[corner]) for corner in CORNERS]
    except ValueError:
        got = ",".join(row.cells[column] for column in ("frame", *CORNERS))
        problems.error(path, f"frame must be an integer and {','.join(CORNERS)} numbers, got {got}", row.line)
        return None
    if not 0 <= frame < 1 << 31:
        problems.error(path, f"frame must be 0 or more, counted from 0, got {frame}", row.line)
    elif not all(map(math.isfinite, box)):
        problems.error(
            path, f"the box must be finite numbers, got {box}. Leave the row out where there is none", row.line
        )
    elif box[2] <= box[0] or box[3] <= box[1]:
        text = "the box must have x1 < x2 and y1 < y2 (corners, not width and height)"
        problems.error(path, f"{text}, got {','.join(format(v, 'g') for v in box)}", row.line)
    else:
        return frame, box
    return None
