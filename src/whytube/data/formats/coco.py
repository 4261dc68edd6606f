"""COCO-style JSON for videos: `videos`, `images` with frames, `tracks`, and an annotation for every box that is seen.

The shape is that of the TAO data set, which widens COCO's. Frames between key frames are written too: each annotation
says under `attributes` whether it is a key frame, as Datumaro, which writes CVAT's COCO export, does; its `outside`
and `annotator` are read there too. Boxes are [x, y, width, height].
Where a track is hidden there is no annotation; corners of hidden key frames, annotators, marks and frames per second
stand in fields that readers of COCO pass over. A file without `videos` is of one video; one without `track_id`s has a
track for every box. A box that another tool moved off its track becomes a key frame, with all others up to the next.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from whytube.checks import LONGEST
from whytube.data.formats.facts import Facts, settle
from whytube.data.formats.fields import Node, dump, parse
from whytube.data.formats.marks import read_marks, write_marks
from whytube.data.formats.track import Annotations, Box, Track
from whytube.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from whytube.data.formats.facts import Describe

MOST_BOXES = 1_000_000
SAME_PLACE = 1e-3
"""Pixels that an interpolated box may be off the line between its key frames."""
FRAME_NAME = re.compile(r"frame_(\d+)\.[A-Za-z]+$")


@dataclass
class Drawn:
    """The boxes of one track: those that are seen, which of them are key frames, and the hidden ones."""

    label: str
    annotator: str = ""
    seen: dict[int, Box] = field(default_factory=dict)
    keys: set[int] = field(default_factory=set)
    hidden: dict[int, Box] = field(default_factory=dict)


def write(annotations: Sequence[Annotations]) -> str:
    """Write all videos to one file."""
    labels = sorted({track.attribute for one in annotations for track in one.tracks})
    ids = {label: number for number, label in enumerate(labels, 1)}
    count = sum(stop - start for one in annotations for t in one.tracks for start, stop, _ in t.spans(one.frames))
    if count > MOST_BOXES:
        raise DataError(f"{count} boxes are too many for one file of COCO's JSON. Export fewer videos at a time")
    videos: list[dict[str, Any]] = []
    images: list[dict[str, Any]] = []
    tracks: list[dict[str, Any]] = []
    boxes: list[dict[str, Any]] = []
    for number, one in enumerate(annotations, 1):
        height, width = one.size
        sides = {"width": width, "height": height}
        own = {"length": one.frames, "fps": one.fps, "marks": write_marks(one.marks)}
        videos.append({"id": number, "name": one.video, **sides, **own})
        image_ids: dict[int, int] = {}
        for track in one.tracks:
            tracks.append(_write_track(track, len(tracks) + 1, number, ids[track.attribute]))
            names = {"video_id": number, "track_id": len(tracks), "category_id": ids[track.attribute]}
            for frame, row in _write_boxes(track, one.frames):
                image = image_ids.setdefault(frame, len(images) + len(image_ids) + 1)
                boxes.append({"id": len(boxes) + 1, "image_id": image, **names, **row})
        stem = PurePosixPath(one.video).stem
        for frame, image in image_ids.items():
            place = {"id": image, "video_id": number, "frame_index": frame}
            images.append({**place, "file_name": f"{stem}/{frame:06d}.jpg", **sides})
    categories = [{"id": ids[label], "name": label, "supercategory": "attribute"} for label in labels]
    info = {"info": {"description": "boxes of attributes", "contributor": "whytube"}, "licenses": []}
    parts = {"videos": videos, "images": images, "tracks": tracks, "annotations": boxes, "categories": categories}
    return dump({**info, **parts}, indent=None)


def _write_track(track: Track, number: int, video: int, category: int) -> dict[str, Any]:
    hidden = [[frame, *box.corners] for frame, box in track.keyframes.items() if box.outside]
    own = {"annotator": track.annotator, "hidden": hidden}
    return {"id": number, "category_id": category, "video_id": video, **own}


def _write_boxes(track: Track, count: int) -> list[tuple[int, dict[str, Any]]]:
    rows = []
    for start, stop, key in track.spans(count):
        corners = track.boxes(range(start, stop)).tolist()
        for frame, (x1, y1, x2, y2) in zip(range(start, stop), corners, strict=True):
            box = {"bbox": [x1, y1, x2 - x1, y2 - y1], "area": (x2 - x1) * (y2 - y1), "iscrowd": 0, "segmentation": []}
            rows.append((frame, {**box, "attributes": {"occluded": key.occluded, "keyframe": frame == start}}))
    return rows


def read(data: bytes, describe: Describe | None = None) -> list[Annotations]:
    """Read all videos of a file."""
    root = parse(data)
    labels = {row["id"].integer(): row["name"].text().strip() for row in root["categories"].each()}
    videos = list(root["videos"].each()) if root["videos"] else [Node({"id": 0}, "the file")]
    images = {row["id"].integer(): row for row in root["images"].each()}
    drawn: dict[int, dict[Hashable, Drawn]] = defaultdict(dict)
    for row in root["tracks"].each() if root["tracks"] else ():
        one = Drawn(_label(row, labels), row["annotator"].text() if row["annotator"] else "")
        for hidden in row["hidden"].each() if row["hidden"] else ():
            numbers = [part.number() for part in hidden.each()]
            hidden.require(len(numbers) == 5, "[frame, x1, y1, x2, y2]")
            one.hidden[int(numbers[0])] = Box(*numbers[1:], outside=True)
        drawn[row["video_id"].integer() if row["video_id"] else 0][row["id"].integer()] = one
    for row in root["annotations"].each():
        _read_box(row, images, labels, drawn)
    known = {video["id"].integer() for video in videos}
    for number in drawn.keys() - known:
        raise DataError(f"`video_id` must be the id of one of its `videos`, got {number}")
    return [_read_video(video, drawn.get(video["id"].integer(), {}), images, describe) for video in videos]


def _read_video(
    video: Node, drawn: dict[Hashable, Drawn], images: dict[int, Node], describe: Describe | None
) -> Annotations:
    facts = _facts(video, images, describe)
    tracks = [_track(one, facts.frames) for one in drawn.values() if one.seen]
    return Annotations(
        facts.video, facts.size, facts.frames, facts.fps, tuple(tracks), tuple(read_marks(video["marks"]))
    )


def _facts(video: Node, images: dict[int, Node], describe: Describe | None) -> Facts:
    own = (image for image in images.values() if image["video_id"].value in (video["id"].value, None))
    sized = video if video["width"] else next(own, video)
    size = (sized["height"].integer(1), sized["width"].integer(1)) if sized["width"] else None
    name = next((video[key].text() for key in ("name", "file_name") if video[key]), "")
    frames = video["length"].integer(1) if video["length"] else None
    fps = video["fps"].number() if video["fps"] else None
    return settle(name, describe, size=size, frames=frames, fps=fps)


def _read_box(
    row: Node, images: dict[int, Node], labels: dict[int, str], drawn: dict[int, dict[Hashable, Drawn]]
) -> None:
    image = images.get(row["image_id"].integer())
    if image is None:
        raise DataError(
            f"`{row.place}.image_id` must be the id of one of its `images`, got {row['image_id'].integer()}"
        )
    details = row["attributes"] if row["attributes"] else Node({}, row.place)
    places = (row["track_id"], row["instance_id"], details["track_id"])
    track_id: Hashable = next((place.integer() for place in places if place), row.place)
    video = image["video_id"].integer() if image["video_id"] else 0
    label = _label(row, labels)
    annotator = details["annotator"].text() if details["annotator"] else ""
    one = drawn[video].setdefault(track_id, Drawn(label, annotator))
    if one.label != label:  # another numbering for each category
        one = drawn[video].setdefault((track_id, label), Drawn(label, annotator))
    x, y, width, height = _numbers(row["bbox"])
    row.require(width > 0 and height > 0, "a box with width and height above 0")
    frame = _frame(image)
    if frame in one.seen:
        raise DataError(f"`{row.place}`: its track has a box at frame {frame} already. Give tracks of their own")
    corners = x, y, x + width, y + height
    if details["outside"].flag(default=False):
        one.hidden[frame] = Box(*corners, outside=True)
        return
    one.seen[frame] = Box(*corners, occluded=details["occluded"].flag(default=False))
    if details["keyframe"].flag(default=True):
        one.keys.add(frame)


def _numbers(node: Node) -> tuple[float, float, float, float]:
    numbers = [part.number() for part in node.each()]
    node.require(len(numbers) == 4, "[x, y, width, height]")
    return numbers[0], numbers[1], numbers[2], numbers[3]


def _frame(image: Node) -> int:
    """Find the frame of an image, from 0: by its number, or by a name as CVAT gives it, frame_000012.PNG."""
    for key in ("frame_index", "frame_id"):
        if image[key]:
            return image[key].integer()
    named = FRAME_NAME.search(image["file_name"].text()[-LONGEST:])
    image.require(named is not None, "an image with a frame_index, or called frame_000012.jpg")
    return int(named.group(1)) if named else 0


def _label(row: Node, labels: dict[int, str]) -> str:
    number = row["category_id"].integer()
    row["category_id"].require(number in labels, "the id of one of its `categories`")
    return labels[number]


def _track(one: Drawn, count: int) -> Track:
    """Find the key frames of a track: marked ones, starts, hidden ones, and stretches that follow no straight line."""
    frames = sorted(one.seen)
    keys: dict[int, Box] = {}
    for frame in frames:
        if frame in one.keys or frame - 1 not in one.seen:
            keys[frame] = one.seen[frame]
        if frame + 1 not in one.seen and frame + 1 < count:
            if frame + 1 not in one.hidden:
                keys[frame] = one.seen[frame]
            keys[frame + 1] = one.hidden.get(frame + 1, one.seen[frame].hidden())
    track = Track(one.label, keys, one.annotator)
    drawn = np.array([one.seen[frame].corners for frame in frames])
    off = np.abs(track.boxes(frames) - drawn).max(1) > SAME_PLACE
    stretch = np.searchsorted(sorted(keys), frames, side="right")
    crooked = np.flatnonzero(np.isin(stretch, stretch[off])).tolist()
    return Track(one.label, keys | {frames[at]: one.seen[frames[at]] for at in crooked}, one.annotator)
