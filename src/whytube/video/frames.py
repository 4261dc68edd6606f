"""Reads videos that are stored as separate pictures: a folder of frames, or a .seq file."""

from __future__ import annotations

import itertools
import mmap
import re
import statistics
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from whytube.errors import VideoError
from whytube.video.clip import ASSUMED_FPS, MAX_PIXELS, EndedEarlyError, Shot, reason, too_large

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from av import VideoFrame

FRAME_SUFFIXES = (".jpg", ".jpeg", ".png")
SEQ_MAGIC = b"\xed\xfe\x00\x00" + "Norpix seq".encode("utf-16-le")
SEQ_HEADER = 1024
# The header's image format numbers whose frames are JPEG or PNG files.
SEQ_COMPRESSED = frozenset({1, 2, 102, 201})


@dataclass(frozen=True)
class Entry:
    """Where one encoded picture lies, and its time in seconds since the first."""

    path: Path
    time: float
    offset: int = 0
    size: int = -1

    def load(self, max_pixels: int) -> VideoFrame:
        """Read and decode the picture."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                data = file.read(self.size)
        except OSError as error:
            raise VideoError(f"{self.path} cannot be read: {reason(error)}") from error
        name = f"{self.path} (byte {self.offset})" if self.offset else str(self.path)
        return decode_image(data, name, max_pixels=max_pixels)


def announced_size(data: bytes) -> tuple[int, int]:
    """Width and height in the header of a JPEG or PNG image; zeros where there are none."""
    if data[:1] == b"\x89":
        return struct.unpack_from(">II", data, 16) if len(data) >= 24 else (0, 0)
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker, length, _, height, width = struct.unpack_from(">xBHBHH", data, at)
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return width, height
        at += 1 if marker == 0xFF else 2 + length
    return 0, 0


def decode_image(data: bytes, name: str, *, max_pixels: int = MAX_PIXELS) -> VideoFrame:
    """Decode one JPEG or PNG image."""
    import av

    if data[:2] == b"\xff\xd8":
        codec = "mjpeg"
        # The decoder fills a cut-off image with grey and reports nothing, so the end marker is looked for.
        if data.rfind(b"\xff\xd9") < data.rfind(b"\xff\xda"):
            raise _damaged(name, "it is cut off")
    elif data[:8] == b"\x89PNG\r\n\x1a\n":
        codec = "png"
    else:
        raise VideoError(f"{name} is not a JPEG or PNG image; expected frames in one of the two")
    width, height = announced_size(data)
    if width * height > max_pixels:
        raise too_large(name, width, height, max_pixels)
    context = av.CodecContext.create(codec, "r")
    assert isinstance(context, av.VideoCodecContext)
    try:
        pictures = context.decode(av.Packet(data)) or context.decode(None)
    except av.FFmpegError as error:
        raise _damaged(name, reason(error)) from error
    if not pictures:
        raise _damaged(name, "it decodes to nothing")
    return pictures[0]


def _damaged(name: str, how: str) -> VideoError:
    return VideoError(f"{name} is damaged: {how}. Put a whole one there")


def natural_key(name: str) -> list[tuple[int, int | str]]:
    """Sort key under which frame2 comes before frame10."""
    parts = re.split(r"([0-9]+)", name.lower())
    return [(1, int(part)) if part.isdecimal() else (0, part) for part in parts]


class PictureSource:
    """Pictures that can be read one by one."""

    def __init__(self, path: Path, entries: Sequence[Entry], *, fps: float, salvage: bool, max_pixels: int) -> None:
        self.path, self.fps = path, fps
        self._entries, self._salvage, self._max_pixels = entries, salvage, max_pixels

    @property
    def count(self) -> int:
        """Number of pictures."""
        return len(self._good)

    @property
    def duration(self) -> float:
        """Seconds from the first picture to the end of the last."""
        return self._good[-1].time + 1.0 / self.fps

    def read(self, wanted: Sequence[int]) -> Iterator[Shot]:
        """Decode just the wanted pictures."""
        for index in wanted:
            if index >= self.count:
                raise EndedEarlyError(self.count)
            entry = self._good[index]
            try:
                picture = entry.load(self._max_pixels)
            except VideoError as error:
                error.advice = error.advice or self.advice()
                raise
            yield Shot(index, entry.time, picture)

    def advice(self) -> str:
        """Say how to go on with the other pictures, where one of them decodes."""
        helps = not self._salvage and any(map(self._decodes, self._entries))
        return "pass `salvage=True` to leave such frames out" if helps else ""

    def _decodes(self, entry: Entry) -> bool:
        try:
            entry.load(self._max_pixels)
        except VideoError:
            return False
        return True

    @cached_property
    def _good(self) -> Sequence[Entry]:
        """Entries in use: all, or with `salvage` those that decode."""
        good = [entry for entry in self._entries if self._decodes(entry)] if self._salvage else self._entries
        if not good:
            raise VideoError(f"{self.path} has zero frames that can be read; expected at least one JPEG or PNG image")
        return good


def open_folder(path: Path, *, salvage: bool = False, max_pixels: int = MAX_PIXELS) -> PictureSource:
    """Open a folder whose .jpg and .png files are the frames, in natural order, at 25 per second."""
    images = (p for p in path.iterdir() if p.suffix.lower() in FRAME_SUFFIXES and p.is_file())
    files = sorted((p for p in images if not p.name.startswith(".")), key=lambda p: natural_key(p.name))
    if not files:
        suffixes = ", ".join(FRAME_SUFFIXES)
        raise VideoError(
            f"the folder {path} holds neither videos nor frames (files ending in {suffixes}), but "
            f"{sum(1 for _ in path.iterdir())} other entries. Give the folder that holds them itself"
        )
    entries = [Entry(file, index / ASSUMED_FPS) for index, file in enumerate(files)]
    return PictureSource(path, entries, fps=ASSUMED_FPS, salvage=salvage, max_pixels=max_pixels)


def open_seq(path: Path, *, salvage: bool = False, max_pixels: int = MAX_PIXELS) -> PictureSource:
    """Open a .seq file of Piotr's toolbox (Olympic Sports) whose frames are JPEG or PNG.

    Little-endian: a header of 1024 bytes, then per frame its size (uint32, counting itself), the image, its time
    (uint32 seconds, uint16 milliseconds, 2 more bytes) and, from some writers, 8 zero bytes.
    """
    if path.stat().st_size < SEQ_HEADER:
        raise _not_seq(path)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        fps, promised = _seq_header(path, data)
        spans, stamps = _seq_spans(data, promised)
    steps = [after - before for before, after in itertools.pairwise(stamps)]
    if steps and min(steps) > 0:
        fps = 1.0 / statistics.median(steps)
        times = [stamp - stamps[0] for stamp in stamps]
    else:
        fps = fps if 0 < fps < 1e4 else ASSUMED_FPS
        times = [index / fps for index in range(len(spans))]
    entries = [Entry(path, time, *span) for time, span in zip(times, spans, strict=True)]
    source = PictureSource(path, entries, fps=fps, salvage=salvage, max_pixels=max_pixels)
    if (len(spans) < promised or not spans) and not salvage:
        text = f"{path} is damaged: it announces {promised} frames and holds {len(spans)}. Fetch it again"
        raise VideoError(text, advice=source.advice())
    return source


def _not_seq(path: Path) -> VideoError:
    return VideoError(f"{path} is not a .seq file: expected a header of {SEQ_HEADER} bytes that says 'Norpix seq'")


def _seq_header(path: Path, data: mmap.mmap) -> tuple[float, int]:
    """Rate and number of frames announced (0: unknown)."""
    if data[: len(SEQ_MAGIC)] != SEQ_MAGIC:
        raise _not_seq(path)
    image_format, promised = struct.unpack_from("<2I", data, 568)
    (fps,) = struct.unpack_from("<d", data, 584)
    if image_format not in SEQ_COMPRESSED:
        known = ", ".join(str(f) for f in sorted(SEQ_COMPRESSED))
        raise VideoError(
            f"{path} stores image format {image_format}; expected JPEG or PNG ({known}). Convert it to mp4"
        )
    return fps, promised


def _seq_spans(data: mmap.mmap, promised: int) -> tuple[list[tuple[int, int]], list[float]]:
    """Walk the frames: (offset, length) of each whole image, and its time stamp."""
    spans: list[tuple[int, int]] = []
    stamps: list[float] = []
    at = SEQ_HEADER
    while at + 4 <= len(data) and not (promised and len(spans) == promised):
        (size,) = struct.unpack_from("<I", data, at)
        if size == 0 and spans:
            at += 8
            (size,) = struct.unpack_from("<I", data, at) if at + 4 <= len(data) else (0,)
        if size <= 4 or at + size > len(data):
            break
        spans.append((at + 4, size - 4))
        stamp = data[at + size : at + size + 6].ljust(6, b"\0")
        seconds, milliseconds = struct.unpack("<IH", stamp)
        stamps.append(seconds + milliseconds / 1000)
        at += size + 8
    return spans, stamps
