"""The project's own table: boxes.csv with further columns, so that nothing is lost; any boxes.csv is one too.

    video,attribute,frame,x1,y1,x2,y2,track,annotator,state,width,height,frames,fps

A row with a frame is a key frame of the track with that number; `state` is empty, occluded or outside. A row without a
frame is a mark: its `state` is present or absent. A row without an attribute describes the video. Without a track
number, as in boxes.csv, a box is seen at its own frame alone. Columns may come in any order; the first seven are
needed.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from whytube.checks import LONGEST, check_finite, fail
from whytube.data.formats.facts import settle
from whytube.data.formats.track import Annotations, Box, Mark, Track
from whytube.data.layout.annotations import BOX_COLUMNS, CORNERS
from whytube.errors import ArgumentError, DataError
from whytube.files import LARGEST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from whytube.data.formats.facts import Describe

SIDES = ("width", "height", "frames", "fps")
COLUMNS = (*BOX_COLUMNS, "track", "annotator", "state", *SIDES)
STATES = ("", "occluded", "outside")
MARKS = {"present": True, "absent": False}


def write(annotations: Sequence[Annotations]) -> str:
    """Write all videos to one file."""
    text = io.StringIO()
    rows = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    rows.writeheader()
    for one in annotations:
        (height, width), fps = one.size, "" if one.fps is None else repr(one.fps)
        rows.writerow({"video": one.video, "width": width, "height": height, "frames": one.frames, "fps": fps})
        for mark in one.marks:
            state = "present" if mark.present else "absent"
            named = {"video": one.video, "attribute": mark.attribute, "annotator": mark.annotator}
            rows.writerow({**named, "state": state})
        for number, track in enumerate(one.tracks, 1):
            named = {"video": one.video, "attribute": track.attribute, "annotator": track.annotator}
            for frame, box in track.keyframes.items():
                corners = {name: repr(value) for name, value in zip(CORNERS, box.corners, strict=True)}
                state = "outside" if box.outside else "occluded" if box.occluded else ""
                rows.writerow({**named, "frame": frame, **corners, "track": number, "state": state})
    return text.getvalue()


def read(data: bytes, describe: Describe | None = None) -> list[Annotations]:
    """Read all videos of a file."""
    videos: dict[str, list[dict[str, str]]] = {}
    for line, row in _rows(data):
        try:
            _check(row)
        except ArgumentError as error:
            raise DataError(f"line {line}: {error}") from None
        videos.setdefault(row["video"], []).append(row)
    return [_read_video(name, rows, describe) for name, rows in videos.items()]


def _rows(data: bytes) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and cells, stripped, of every line that is not blank; missing columns are empty."""
    if len(data) > LARGEST:
        raise DataError(f"more than {LARGEST >> 20} MiB. Split it")
    try:
        lines = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        header = [cell.strip() for cell in next(lines, [])]
        if not set(BOX_COLUMNS) <= set(header) or len(set(header)) < len(header):
            got = ",".join(header)[:LONGEST]
            raise DataError(f"line 1: the header must have {','.join(BOX_COLUMNS)}, each once, got {got}")
        for cells in lines:
            if any(cell.strip() for cell in cells):
                if len(cells) != len(header):
                    raise DataError(f"line {lines.line_num}: expected {len(header)} cells, got {len(cells)}")
                stripped = (cell.strip() for cell in cells)
                yield lines.line_num, {**dict.fromkeys(COLUMNS, ""), **dict(zip(header, stripped, strict=True))}
    except UnicodeDecodeError:
        raise DataError("the file is not UTF-8 text. Save it as CSV in UTF-8") from None
    except csv.Error as error:
        raise DataError(f"the file cannot be read as CSV: {error}") from None


def _check(row: dict[str, str]) -> None:
    """Read the row once, for errors that name its line."""
    if not row["attribute"]:
        _numbers(row)
    elif not row["frame"]:
        if row["state"] not in MARKS:
            raise fail("state", "present or absent in a row without a frame", repr(row["state"][:LONGEST]))
    else:
        _box(row)


def _box(row: dict[str, str]) -> tuple[int, Box]:
    if row["state"] not in STATES:
        raise fail("state", "occluded, outside or empty in a row with a frame", repr(row["state"][:LONGEST]))
    corners = [check_finite(row[name], name) for name in CORNERS]
    return _integer(row, "frame"), Box(*corners, outside=row["state"] == "outside", occluded=row["state"] == "occluded")


def _numbers(row: dict[str, str]) -> dict[str, float]:
    """Read width, height, frames and fps where they are given."""
    found: dict[str, float] = {name: _integer(row, name) for name in SIDES[:3] if row[name]}
    return {**found, "fps": check_finite(row["fps"], "fps")} if row["fps"] else found


def _integer(row: dict[str, str], name: str) -> int:
    if not row[name].isdecimal() or len(row[name]) > 10:
        raise fail(name, "an integer of at least 0", repr(row[name][:LONGEST]))
    return int(row[name])


def _read_video(name: str, rows: Sequence[dict[str, str]], describe: Describe | None) -> Annotations:
    told: dict[str, float] = {}
    for row in rows:
        told |= {} if row["attribute"] else _numbers(row)
    size = (int(told["height"]), int(told["width"])) if {"height", "width"} <= told.keys() else None
    frames = int(told["frames"]) if "frames" in told else None
    facts = settle(name, describe, size=size, frames=frames, fps=told.get("fps"))
    marks = [
        Mark(row["attribute"], MARKS[row["state"]], row["annotator"])
        for row in rows
        if row["attribute"] and not row["frame"]
    ]
    tracks = tuple(_tracks(row for row in rows if row["attribute"] and row["frame"]))
    return Annotations(facts.video, facts.size, facts.frames, facts.fps, tracks, tuple(marks))


def _tracks(rows: Iterable[dict[str, str]]) -> Iterator[Track]:
    found: dict[tuple[str, str, str], dict[int, Box]] = {}
    for row in rows:
        track = found.setdefault((row["attribute"], row["annotator"], row["track"]), {})
        frame, box = _box(row)
        if frame in track:
            raise DataError(
                f"frame {frame} of {row['attribute']!r} in {row['video']!r} has two boxes. Number the tracks"
            )
        track[frame] = box
    for (attribute, annotator, number), boxes in found.items():
        make = Track if number else Track.from_boxes
        yield make(attribute, boxes, annotator)
