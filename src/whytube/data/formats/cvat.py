"""CVAT for video 1.1: one XML file per video, tracks of boxes with key frames.

A file that CVAT wrote has a box for every frame; those with keyframe="0" are interpolated and passed over, as CVAT does
when it loads the file. Its frames are those of the video, also for a task with a start frame or a step. Boxes alone are
read: other shapes and rotated boxes are errors. The annotator is an attribute `annotator` of the track, which CVAT
keeps where the label has it. What CVAT does not know (frames per second, marks) stands in <meta><whytube>, which it
ignores.
"""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, TreeBuilder, indent, tostring
from xml.parsers import expat

from whytube.checks import check_finite, fail
from whytube.data.formats.facts import Facts, settle
from whytube.data.formats.track import Annotations, Box, Mark, Track
from whytube.errors import DataError
from whytube.files import LARGEST

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from whytube.data.formats.facts import Describe

DEEPEST = 32
CORNERS = ("xtl", "ytl", "xbr", "ybr")
SHAPES = ("polygon", "polyline", "points", "ellipse", "cuboid", "skeleton", "mask")
ANNOTATOR = "annotator"


def read(data: bytes, describe: Describe | None = None) -> list[Annotations]:
    """Read annotations.xml, or the .zip around it that CVAT gives to download."""
    root = _parse(_unpacked(data) if data[:4] == b"PK\x03\x04" else data)
    if root.tag != "annotations":
        raise DataError(f"expected <annotations> of CVAT, got <{root.tag[:40]}>")
    if root.find("image") is not None:
        raise DataError("a CVAT file for images: export it as `CVAT for video 1.1`")
    meta = root.find("meta")
    tasks = [] if meta is None else [*meta.iter("task"), *meta.iter("job")]
    if not tasks:
        raise DataError("expected <meta> with a <task>, got none. Is it `CVAT for video 1.1`?")
    several = len(tasks) > 1
    tracks: dict[str, list[Track]] = {_text(task, "id") if several else "": [] for task in tasks}
    for element in root.iter("track"):
        home = element.get("task_id", "") if several else ""
        if home not in tracks:
            raise fail(f"track {element.get('id', '')[:20]}: task_id", "the id of one of its tasks", repr(home[:20]))
        track = _read_track(element)
        if track is not None:
            tracks[home].append(track)
    return [_read_task(task, meta, tracks[_text(task, "id") if several else ""], describe) for task in tasks]


def write(annotations: Sequence[Annotations]) -> str:
    """Write the file of one video."""
    (one,) = annotations
    root = Element("annotations")
    SubElement(root, "version").text = "1.1"
    meta = SubElement(root, "meta")
    _write_task(SubElement(meta, "task"), one)
    own = SubElement(meta, "whytube", {} if one.fps is None else {"fps": repr(one.fps)})
    for mark in one.marks:
        present = str(int(mark.present))
        SubElement(own, "mark", attribute=mark.attribute, annotator=mark.annotator, present=present)
    for number, track in enumerate(one.tracks):
        element = SubElement(root, "track", id=str(number), label=track.attribute, source="manual")
        for frame, box in track.keyframes.items():
            corners = {name: repr(value) for name, value in zip(CORNERS, box.corners, strict=True)}
            flags = {"keyframe": "1", "outside": str(int(box.outside)), "occluded": str(int(box.occluded))}
            place = SubElement(element, "box", {"frame": str(frame), **flags, **corners, "z_order": "0"})
            if track.annotator:
                SubElement(place, "attribute", name=ANNOTATOR).text = track.annotator
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _write_task(task: Element, one: Annotations) -> None:
    height, width = one.size
    told = {"name": one.video, "size": one.frames, "mode": "interpolation", "overlap": 0, "flipped": "False"}
    for key, value in {**told, "start_frame": 0, "stop_frame": one.frames - 1, "frame_filter": ""}.items():
        SubElement(task, key).text = str(value)
    labels = SubElement(task, "labels")
    for attribute in dict.fromkeys(track.attribute for track in one.tracks):
        label = SubElement(labels, "label")
        SubElement(label, "name").text = attribute
        field = SubElement(SubElement(label, "attributes"), "attribute")
        for key, text in (("name", ANNOTATOR), ("mutable", "False"), ("input_type", "text"), ("default_value", "")):
            SubElement(field, key).text = text
        SubElement(field, "values")
    size = SubElement(task, "original_size")
    SubElement(size, "width").text, SubElement(size, "height").text = str(width), str(height)
    SubElement(task, "source").text = one.video


def _read_task(task: Element, meta: Element | None, tracks: list[Track], describe: Describe | None) -> Annotations:
    facts = _facts(task, meta, describe)
    own = None if meta is None else meta.find("whytube")
    marks = [] if own is None else [_read_mark(mark) for mark in own.iter("mark")]
    return Annotations(facts.video, facts.size, facts.frames, facts.fps, tuple(tracks), tuple(marks))


def _facts(task: Element, meta: Element | None, describe: Describe | None) -> Facts:
    """Read name, size and length of a task; older files have its size beside the task."""
    places = [task] if meta is None else [task, meta]
    sides = next((found for place in places if (found := place.find("original_size")) is not None), None)
    size = None if sides is None else (_integer(sides, "height"), _integer(sides, "width"))
    name = next((text for place in places if (text := _text(place, "source"))), _text(task, "name"))
    frames = _integer(task, "stop_frame") + 1 if _text(task, "stop_frame") else None
    if frames is None and _text(task, "size"):
        frames = _integer(task, "size")
    own = None if meta is None else meta.find("whytube")
    fps = None if own is None or "fps" not in own.attrib else check_finite(own.get("fps"), "fps")
    return settle(name, describe, size=size, frames=frames, fps=fps)


def _read_track(element: Element) -> Track | None:
    """Read a track; None for one that is nowhere seen."""
    place = f"track {element.get('id', '')[:20]}"
    keyframes, annotator = {}, ""
    for shape in element:
        if shape.tag in SHAPES:
            raise fail(place, "of boxes", f"a {shape.tag}. Leave it out, or draw a box around it")
        if shape.tag == "box" and shape.get("keyframe", "1") == "1":
            frame = _attribute(shape, "frame", place, int)
            if _attribute(shape, "rotation", place, float, "0"):
                raise fail(
                    f"{place}, frame {frame}", "an upright box", f"a rotation of {shape.get('rotation')} degrees"
                )
            corners = [_attribute(shape, corner, place, float) for corner in CORNERS]
            outside, occluded = (shape.get(name, "0") == "1" for name in ("outside", "occluded"))
            keyframes[frame] = Box(*corners, outside=outside, occluded=occluded)
            for own in shape.iter("attribute"):
                annotator = (own.text or "").strip() if own.get("name") == ANNOTATOR else annotator
    seen = any(not box.outside for box in keyframes.values())
    return Track(element.get("label", "").strip(), keyframes, annotator) if seen else None


def _read_mark(element: Element) -> Mark:
    return Mark(element.get("attribute", ""), element.get("present") == "1", element.get("annotator", ""))


def _attribute(element: Element, name: str, place: str, kind: type, default: str = "") -> Any:
    text = element.get(name, default)
    try:
        return kind(text)
    except ValueError:
        expected = "an integer" if kind is int else "a number"
        raise fail(f"{place}: {name}", expected, repr(text[:40])) from None


def _text(element: Element, tag: str) -> str:
    return (element.findtext(tag) or "").strip()


def _integer(element: Element, tag: str) -> int:
    text = _text(element, tag)
    if not text.isdecimal() or len(text) > 9:
        raise fail(tag, "an integer", repr(text[:40]))
    return int(text)


def _unpacked(data: bytes) -> bytes:
    """Take annotations.xml out of a .zip, and no more than may be read."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open("annotations.xml") as file:
            return file.read(LARGEST + 1)
    except KeyError:
        raise DataError("the .zip holds no annotations.xml. Is it `CVAT for video 1.1`?") from None
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError, EOFError) as problem:
        raise DataError(f"damaged .zip ({problem})") from problem


def _parse(data: bytes) -> Element:
    """Read XML without a document type: no entity is declared, expanded or fetched."""
    if len(data) > LARGEST:
        raise DataError(f"more than {LARGEST >> 20} MiB. Split it")
    builder, parser, depth = TreeBuilder(), expat.ParserCreate(), 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise DataError(f"nested deeper than {DEEPEST} elements: no file of CVAT")
        builder.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    def refuse(*_: object) -> None:
        raise DataError("it declares a document type, which no file of CVAT does. Remove the <!DOCTYPE ...>")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    try:
        parser.Parse(data, True)
        return builder.close()
    except (expat.ExpatError, ValueError, LookupError) as problem:
        raise DataError(f"cut off, or not XML ({problem})") from problem
