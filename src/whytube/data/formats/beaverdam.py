"""BeaverDam: a JSON list per video of things with key frames; times are seconds, or frames of a list of images.

`continueInterpolation: false` hides the box from that time on, as `outside` does. A key frame lies on the frame nearest
to its time; a hiding one takes effect at the first frame that is not before its time. `state` "occluded" is read and
written. BeaverDam's file says nothing of the video: its name, size, length and frames per second, the annotators and
the marks stand under `whytube` and `annotator`, which BeaverDam passes over. Without frames per second the times are
frame numbers, as BeaverDam has them for a list of images.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from whytube.data.formats.facts import Facts, settle
from whytube.data.formats.fields import Node, dump, parse
from whytube.data.formats.marks import read_marks, write_marks
from whytube.data.formats.track import Annotations, Box, Track

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whytube.data.formats.facts import Describe

OWN = "whytube"
OCCLUDED = "occluded"
SAME_FRAME = 0.01
"""Seconds within which BeaverDam takes two times for one."""


def read(data: bytes, describe: Describe | None = None) -> list[Annotations]:
    """Read the list of one video; also what the server is sent, with the list under `annotation`."""
    root = parse(data)
    things = list((root["annotation"] if isinstance(root.value, dict) else root).each())
    own = next((thing[OWN] for thing in things if thing[OWN]), None)
    facts = _facts(own, describe)
    tracks = [track for thing in things if (track := _read_track(thing, facts.fps or 1.0)) is not None]
    marks = [] if own is None else read_marks(own["marks"])
    return [Annotations(facts.video, facts.size, facts.frames, facts.fps, tuple(tracks), tuple(marks))]


def write(annotations: Sequence[Annotations]) -> str:
    """Write the list of one video."""
    (one,) = annotations
    rate = one.fps or 1.0
    things = [_write_track(track, number, rate) for number, track in enumerate(one.tracks)]
    own = {"video": one.video, "size": list(one.size), "frames": one.frames, "fps": one.fps}
    if not things:  # BeaverDam shows nothing for a thing without key frames
        things.append({"keyframes": [], "type": "", "id": "0"})
    things[0][OWN] = {**own, "marks": write_marks(one.marks)}
    return dump(things)


def _facts(own: Node | None, describe: Describe | None) -> Facts:
    if own is None:
        return settle("", describe)
    fps = own["fps"].number() if own["fps"] else None
    return settle(own["video"].text(), describe, size=own["size"].size(), frames=own["frames"].integer(1), fps=fps)


def _write_track(track: Track, number: int, rate: float) -> dict[str, Any]:
    rows = []
    for frame, box in track.keyframes.items():
        row = {"frame": frame / rate, "x": box.x1, "y": box.y1, "w": box.x2 - box.x1, "h": box.y2 - box.y1}
        state = {"state": OCCLUDED} if box.occluded else {}
        rows.append({**row, "continueInterpolation": not box.outside, **state})
    annotator = {"annotator": track.annotator} if track.annotator else {}
    return {"keyframes": rows, "type": track.attribute, "id": str(number), **annotator}


def _read_track(thing: Node, rate: float) -> Track | None:
    """Read a thing; None for one that is nowhere seen."""
    keyframes: dict[int, Box] = {}
    for row in sorted(thing["keyframes"].each(), key=lambda row: row["frame"].number()):
        outside = not row["continueInterpolation"].flag(default=True)
        x, y, width, height = (row[name].number() for name in ("x", "y", "w", "h"))
        row.require(width > 0 and height > 0, "a box with w and h above 0")
        box = Box(x, y, x + width, y + height, outside=outside, occluded=row["state"].value == OCCLUDED)
        time = row["frame"].number() * rate
        frame = max(0, math.ceil(time - min(SAME_FRAME * rate, 0.25)) if outside else round(time))
        if outside and frame in keyframes:
            frame += 1
        keyframes[frame] = box
    if all(box.outside for box in keyframes.values()):
        return None
    annotator = thing["annotator"].text() if thing["annotator"] else ""
    return Track(thing["type"].text().strip(), keyframes, annotator)
