"""Annotations as files of other tools, and back. Runs in a child process only: a file may come from anybody.

A video is a plain dictionary here: name, width, height, frames, fps, tracks as {"annotator", "attribute", "keys"} with
keys as {"frame", "box", "outside", "occluded"}, and marks as {"annotator", "attribute", "present"}.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from whytube.checks import LONGEST, suggestion
from whytube.data.formats import FORMATS, Annotations, Box, Facts, Mark, Track
from whytube.errors import DataError, WhytubeError

if TYPE_CHECKING:
    from whytube.data.formats import Describe

ZIP = b"PK\x03\x04"
MOST_FILES, MOST_BYTES = 10_000, 1 << 28
"""Files of an archive, and bytes that they have unpacked."""


def write_file(name: str, videos: list[dict[str, Any]]) -> tuple[str, bytes]:
    """Write videos in a format; return the file's ending and its bytes.

    A format with one video per file gives a zip of files, unless there is one video.
    """
    found, form = [_annotations(video) for video in videos], FORMATS[name]
    if not form.one_video or len(found) == 1:
        return form.ending, form.write(found).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, one in enumerate(found, 1):
            archive.writestr(f"{number:05d}{form.ending}", form.write([one]))
    return ".zip", packed.getvalue()


def read_file(name: str, data: bytes, known: list[dict[str, Any]], only: str | None) -> list[dict[str, Any]]:
    """Read a file, or a zip of files: what it says of each video, with the video's id.

    known: videos that there are, with id, name, width, height, frames and fps. only: the id of the video that the file
    is about, whatever it calls it. A video that is not there is an error, and nothing is read.
    """
    form, found = FORMATS[name], []
    describe = _describe(known, only)
    for label, part in _parts(data):
        try:
            for one in form.read(part, describe):
                found.append(_plain(one))
        except WhytubeError as problem:
            raise DataError(f"cannot read {label} as {form.title}: {problem}") from None
    return found


def _parts(data: bytes) -> list[tuple[str, bytes]]:
    """Return the files of an archive, or the file itself, with what to call them."""
    if not data.startswith(ZIP):
        return [("the file", data)]
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [info for info in archive.infolist() if not info.is_dir()]
            if len(members) > MOST_FILES or sum(info.file_size for info in members) > MOST_BYTES:
                raise DataError(f"the archive holds more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB")
            return [(f"file {number} of the archive", _member(archive, m)) for number, m in enumerate(members, 1)]
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError) as problem:
        raise DataError(f"the archive is damaged: {str(problem)[:LONGEST]}") from None


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    with archive.open(member) as file:
        return file.read(min(member.file_size, MOST_BYTES) + 1)


def _describe(known: list[dict[str, Any]], only: str | None) -> Describe:
    """Find videos by the name that a file has for them: the same name, its last part, or that without its ending.

    The answer's name is the video's id: several videos may have one name.
    """

    def facts(video: dict[str, Any]) -> Facts:
        return Facts(video["id"], (video["height"], video["width"]), video["frames"], video["fps"])

    def describe(name: str) -> Facts:
        if only is not None:
            return facts(next(video for video in known if video["id"] == only))
        last = PurePosixPath(name.replace("\\", "/")).name
        for alike in (lambda video: video["name"] == name, lambda video: video["name"] == last, _same_stem(last)):
            found = [video for video in known if alike(video)]
            if len(found) > 1:
                raise DataError(f"several videos are called {last[:LONGEST]!r}: open one, and import into that")
            if found:
                return facts(found[0])
        near = suggestion(last, [video["name"] for video in known])
        raise DataError(f"there is no video {last[:LONGEST]!r} here{near or '. Add it first'}")

    return describe


def _same_stem(last: str) -> Any:
    stem = PurePosixPath(last).stem
    return lambda video: bool(stem) and PurePosixPath(video["name"]).stem == stem


def _annotations(video: dict[str, Any]) -> Annotations:
    tracks = tuple(
        Track(
            track["attribute"],
            {key["frame"]: Box(*key["box"], outside=key["outside"], occluded=key["occluded"]) for key in track["keys"]},
            track["annotator"],
        )
        for track in video["tracks"]
    )
    marks = tuple(Mark(mark["attribute"], mark["present"], mark["annotator"]) for mark in video["marks"])
    size = (video["height"], video["width"])
    return Annotations(video["name"], size, video["frames"], video["fps"], tracks, marks)


def _plain(one: Annotations) -> dict[str, Any]:
    tracks = [
        {
            "annotator": track.annotator,
            "attribute": track.attribute,
            "keys": [
                {"frame": frame, "box": box.corners, "outside": box.outside, "occluded": box.occluded}
                for frame, box in track.keyframes.items()
            ],
        }
        for track in one.tracks
    ]
    marks = [{"annotator": m.annotator, "attribute": m.attribute, "present": m.present} for m in one.marks]
    return {"id": one.video, "tracks": tracks, "marks": marks}
