"""Label Studio: a JSON list of tasks, one per video, with `videorectangle` regions.

Corners are per cent of the frame, frames count from 1. A key frame with `enabled: false` is still shown at its own
frame, and hides the box after it; where ours hides it later, a key frame marked `auto` (as Label Studio marks
interpolated ones) is put at the last frame that is seen. Frames of a project whose frame rate is not the video's are
converted by time. An annotation of Label Studio has one annotator: `completed_by`. Choices called `present` and
`absent` are the marks. Name, size and length of the video stand in the task's `meta.whytube`, which Label Studio keeps.
Rotated boxes are errors.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from whytube.data.formats.facts import Facts, settle
from whytube.data.formats.fields import Node, dump, parse
from whytube.data.formats.track import Annotations, Box, Mark, Track
from whytube.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whytube.data.formats.facts import Describe

OWN = "whytube"
BOX, VIDEO, PRESENT, ABSENT = "box", "video", "present", "absent"
OTHER_RATE = 0.01
"""How far, as a share, the frame rate of a project may be from the video's before frames are converted by time."""


def read(data: bytes, describe: Describe | None = None) -> list[Annotations]:
    """Read the JSON export of a project, or a single task of it."""
    root = parse(data)
    return [_read_task(task, describe) for task in ([root] if isinstance(root.value, dict) else root.each())]


def write(annotations: Sequence[Annotations]) -> str:
    """Write a list of tasks, to import into a project with a <Video name="video" value="$video">."""
    return dump([_write_task(one, number) for number, one in enumerate(annotations, 1)])


def _write_task(one: Annotations, number: int) -> dict[str, Any]:
    own = {"video": one.video, "size": list(one.size), "frames": one.frames, "fps": one.fps}
    made = [
        {OWN: {"annotator": who}, "result": [*_regions(one.of(who)), *_choices(one.of(who))]} for who in one.annotators
    ]
    return {"id": number, "data": {"video": one.video}, "meta": {OWN: own}, "annotations": made, "predictions": []}


def _regions(one: Annotations) -> Iterator[dict[str, Any]]:
    rate = one.fps or 1.0
    length = {"framesCount": one.frames, "duration": one.frames / rate}
    for number, track in enumerate(one.tracks):
        value = {**length, "sequence": list(_sequence(track, one.size, rate)), "labels": [track.attribute]}
        names = {"id": f"track{number}", "from_name": BOX, "to_name": VIDEO, "type": "videorectangle"}
        yield {"value": value, **names, "origin": "manual"}


def _sequence(track: Track, size: tuple[int, int], rate: float) -> Iterator[dict[str, Any]]:
    """Write the key frames that are seen, and where a later one hides the box, the last frame before it."""
    nexts = [*list(track.keyframes.items())[1:], (0, None)]
    for (frame, box), (after, following) in zip(track.keyframes.items(), nexts, strict=True):
        if not box.outside:
            hides = following is not None and following.outside
            yield _key(
                frame, box.corners, size, rate, enabled=not (hides and after == frame + 1), occluded=box.occluded
            )
            if hides and after > frame + 1:
                last = track.boxes([after - 1])[0].tolist()
                yield {**_key(after - 1, last, size, rate, enabled=False, occluded=box.occluded), "auto": True}


def _key(
    frame: int, corners: Sequence[float], size: tuple[int, int], rate: float, *, enabled: bool, occluded: bool
) -> dict[str, Any]:
    (height, width), (x1, y1, x2, y2) = size, corners
    place = {"x": 100 * x1 / width, "y": 100 * y1 / height}
    sides = {"width": 100 * (x2 - x1) / width, "height": 100 * (y2 - y1) / height, "rotation": 0}
    state = {"occluded": True} if occluded else {}
    return {"frame": frame + 1, "time": (frame + 1) / rate, "enabled": enabled, **place, **sides, **state}


def _choices(one: Annotations) -> Iterator[dict[str, Any]]:
    for name, present in ((PRESENT, True), (ABSENT, False)):
        chosen = [mark.attribute for mark in one.marks if mark.present == present]
        if chosen:
            names = {"id": name, "from_name": name, "to_name": VIDEO, "type": "choices"}
            yield {"value": {"choices": chosen}, **names, "origin": "manual"}


def _read_task(task: Node, describe: Describe | None) -> Annotations:
    facts = _facts(task, describe)
    tracks: list[Track] = []
    marks: list[Mark] = []
    for annotation in task["annotations"].each():
        if annotation["was_cancelled"].flag(default=False):
            continue
        annotator = _annotator(annotation)
        for region in annotation["result"].each():
            if region["type"].value == "videorectangle":
                tracks += _read_region(region, facts, annotator)
            elif region["type"].value == "choices" and region["from_name"].value in (PRESENT, ABSENT):
                present = region["from_name"].value == PRESENT
                marks += [Mark(name.text(), present, annotator) for name in region["value"]["choices"].each()]
    return Annotations(facts.video, facts.size, facts.frames, facts.fps, tuple(tracks), tuple(marks))


def _facts(task: Node, describe: Describe | None) -> Facts:
    """Read what `meta.whytube` says about the video; without it, the name of the file behind its address."""
    meta = task["meta"]
    own = meta[OWN] if meta else meta
    if own:
        fps = own["fps"].number() if own["fps"] else None
        return settle(own["video"].text(), describe, size=own["size"].size(), frames=own["frames"].integer(1), fps=fps)
    address = task["data"]["video"].text() if task["data"]["video"] else ""
    return settle(PurePosixPath(address.split("?d=")[-1].split("?")[0]).name, describe)


def _annotator(annotation: Node) -> str:
    if annotation[OWN]:
        return annotation[OWN]["annotator"].text()
    who = annotation["completed_by"]
    if isinstance(who.value, dict):
        who = who["email"] if who["email"] else who["id"]
    who.require(who.value is None or isinstance(who.value, (str, int)), "an id or an address")
    return "" if who.value is None else str(who.value)


def _read_region(region: Node, facts: Facts, annotator: str) -> list[Track]:
    """Read one track per label."""
    value = region["value"]
    region.require(bool(value["labels"]) and bool(value["labels"].value), "a region with a label")
    rate = _frames_per_frame(value, facts)
    keyframes: dict[int, Box] = {}
    last: tuple[int, Box] | None = None  # the key frame before, where it is seen
    for key in sorted(value["sequence"].each(), key=lambda key: key["frame"].number()):
        enabled, made = key["enabled"].flag(default=True), key["auto"].flag(default=False)
        if made and (enabled or last is None):
            continue
        frame, corners = round((key["frame"].integer(1) - 1) * rate), _corners(key, facts)
        box = Box(*corners, occluded=key["occluded"].flag(default=False))
        if not made:
            keyframes[frame], last = box, (frame, box)
        if not enabled:
            keyframes[frame + 1] = _moved(last, frame, corners) if last and made else box.hidden()
            last = None
    seen = [name.text().strip() for name in value["labels"].each()] if keyframes else []
    return [Track(name, keyframes, annotator) for name in seen]


def _moved(last: tuple[int, Box], frame: int, corners: Sequence[float]) -> Box:
    """Say where a box that moves from `last` to `frame` would be one frame later; there it is hidden."""
    start, box = last
    share = (frame + 1 - start) / (frame - start) if frame > start else 1.0
    try:
        return Box(*(a + (b - a) * share for a, b in zip(box.corners, corners, strict=True)), outside=True)
    except ArgumentError:  # it shrank to nothing
        return Box(*corners, outside=True)


def _corners(key: Node, facts: Facts) -> tuple[float, float, float, float]:
    rotation = key["rotation"]
    rotation.require(not rotation or rotation.number() == 0, "0: boxes are upright here")
    (height, width), (x, y, w, h) = facts.size, (key[name].number() for name in ("x", "y", "width", "height"))
    key.require(w > 0 and h > 0, "a box with width and height above 0")
    return x * width / 100, y * height / 100, (x + w) * width / 100, (y + h) * height / 100


def _frames_per_frame(value: Node, facts: Facts) -> float:
    """Return how many frames of the video one frame of Label Studio is: 1 unless its project has another rate."""
    if facts.fps is None or not value["framesCount"] or not value["duration"]:
        return 1.0
    frames, seconds = value["framesCount"].number(), value["duration"].number()
    rate = frames / seconds if frames > 0 and seconds > 0 else facts.fps
    # A file whose length in frames is the video's counts the video's frames, whatever it says of its duration.
    other = abs(rate / facts.fps - 1) > OTHER_RATE and abs(frames - facts.frames) > 1
    return facts.fps / rate if other else 1.0
