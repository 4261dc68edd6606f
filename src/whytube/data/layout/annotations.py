"""What is said about the videos, read and written: attributes of classes and of single videos, and box tracks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from whytube.data.rows import Problems, Row, Sheet, listed, write_rows
from whytube.data.source import ACTOR
from whytube.data.tables import AttributeTable, read_class_rows
from whytube.tubes import Tube

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from whytube.data.layout.videos import Names, Video

CLASS_FILE, VIDEO_FILE, BOX_FILE = "attributes.csv", "video_attributes.csv", "boxes.csv"
CORNERS = ("x1", "y1", "x2", "y2")
BOX_COLUMNS = ("video", "attribute", "frame", *CORNERS)


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
    table = read_class_rows(path, problems)
    sheet = Sheet(folder / VIDEO_FILE, problems, required=("video",), free=True)
    own_names = tuple(column for column in sheet.columns if column != "video")
    flags: dict[str, dict[str, bool]] = {}  # video name -> what its row says; empty cells say nothing
    for video, row in names.rows(sheet, once=True):
        said = {attribute: row.flag(attribute, blank=True) for attribute in own_names}
        flags[video.name] = {attribute: flag for attribute, flag in said.items() if flag is not None}
    if table is None:
        table = _majority(own_names, videos, flags)
        if not path.is_file() and not sheet.columns:
            problems.warn(folder, f"no {CLASS_FILE}: there is no word to explain with. Write class,<attribute>,...")
    else:
        _check_classes(path, table, videos, problems)
        for attribute in own_names:
            if attribute not in table.attribute_names:
                problems.error(sheet.path, problems.unknown("attribute", attribute, table.attribute_names), 1)
    if ACTOR in table.attribute_names:
        text = f"{ACTOR!r} is the name of the actor's boxes in {BOX_FILE}. Call the attribute something else"
        problems.error(path if path.is_file() else sheet.path, text, 1)
    return table, {
        video.name: _with_own(table, video.label, flags.get(video.name, {}))
        for video in videos
        if video.label in table.classes
    }


def _check_classes(path: Path, table: AttributeTable, videos: list[Video], problems: Problems) -> None:
    used = set()
    for video in videos:
        if video.label not in table.classes and (video.label not in used or video.line):
            text = problems.unknown("class", video.label, table.classes)
            problems.error(video.file, f"{text} ({path.name} has no row for it)", video.line)
        used.add(video.label)
    unused = [name for name in table.classes if name not in used]
    if unused:
        problems.warn(path, f"{len(unused)} of {len(table.classes)} classes have no videos: {listed(unused, 5)}")
    nowhere = [repr(table.attribute_names[s]) for s in (~table.values.any(0)).nonzero().flatten().tolist()]
    if nowhere:
        problems.warn(path, f"no class has the attribute{'s' * (len(nowhere) > 1)} {', '.join(nowhere)}")


def _majority(
    attribute_names: tuple[str, ...], videos: list[Video], flags: dict[str, dict[str, bool]]
) -> AttributeTable:
    """Give a class the attributes of at least half of its listed videos."""
    classes = tuple(sorted({video.label for video in videos}))
    values = torch.zeros(len(classes), len(attribute_names), dtype=torch.bool)
    for c, label in enumerate(classes):
        said = [flags[video.name] for video in videos if video.label == label and video.name in flags]
        for s, attribute in enumerate(attribute_names):
            yes = sum(flag.get(attribute, False) for flag in said)
            values[c, s] = bool(said) and 2 * yes >= len(said)
    return AttributeTable(classes, attribute_names, values)


def _with_own(table: AttributeTable, label: str, own: dict[str, bool]) -> torch.Tensor:
    """Return the row of a class (S,) with what a video says of its own."""
    row = table.row(label).clone()
    for attribute, flag in own.items():
        if attribute in table.attribute_names:
            row[table.attribute_names.index(attribute)] = flag
    return row


def read_boxes(
    folder: Path, names: Names, attribute_names: tuple[str, ...], problems: Problems
) -> dict[str, dict[str, Track]]:
    """Return video name -> attribute or ACTOR -> its track, from boxes.csv."""
    known = (*attribute_names, ACTOR)
    found: dict[tuple[str, str], dict[int, tuple[int, list[float]]]] = {}
    for video, row in names.rows(Sheet(folder / BOX_FILE, problems, required=BOX_COLUMNS)):
        attribute = row["attribute"]
        if attribute not in known:
            row.error(problems.unknown("attribute", attribute, known))
        elif (read := _read_box(row)) is not None:
            frame, box = read
            track = found.setdefault((video.name, attribute), {})
            if frame in track:
                text = f"frame {frame} of {attribute!r} has a box already, in line {track[frame][0]}"
                row.error(f"{text}. Keep one box per frame, around all that shows it")
            else:
                track[frame] = (row.line, box)
    tracks: dict[str, dict[str, Track]] = {}
    for (name, attribute), of_frame in found.items():
        frames = sorted(of_frame)
        lines, boxes = zip(*(of_frame[frame] for frame in frames), strict=True)
        tracks.setdefault(name, {})[attribute] = Track(Tube(np.array(frames), np.array(boxes)), np.array(lines))
    return tracks


def _read_box(row: Row) -> tuple[int, list[float]] | None:
    """Return frame and corners, or None with the reason noted."""
    try:
        frame, box = int(row["frame"]), [float(row[corner]) for corner in CORNERS]
    except ValueError:
        got = ",".join(row[column] for column in ("frame", *CORNERS))
        row.error(f"frame must be an integer and {','.join(CORNERS)} numbers, got {got}")
        return None
    if not 0 <= frame < 1 << 31:
        row.error(f"frame must be 0 or more, counted from 0, got {frame}")
    elif not all(map(math.isfinite, box)):
        row.error(f"the box must be finite numbers, got {box}. Leave the row out where there is none")
    elif box[2] <= box[0] or box[3] <= box[1]:
        text = "the box must have x1 < x2 and y1 < y2 (corners, not width and height)"
        row.error(f"{text}, got {','.join(format(v, 'g') for v in box)}")
    else:
        return frame, box
    return None


def write_classes(path: Path, table: AttributeTable) -> None:
    """Write attributes.csv."""
    rows = zip(table.classes, table.values.int().tolist(), strict=True)
    write_rows(path, [["class", *table.attribute_names], *([name, *row] for name, row in rows)])


def box_rows(
    video: str, attribute: str, frames: Iterable[int], boxes: NDArray[np.float64]
) -> Iterator[Sequence[str | int]]:
    """Yield rows of boxes (T, 4) at frames (T,), to 1/100 pixel; a box without area (its entity left) is none."""
    for frame, box in zip(frames, boxes.round(2).tolist(), strict=True):
        if box[2] > box[0] and box[3] > box[1]:
            yield [video, attribute, frame, *(format(value, "g") for value in box)]
