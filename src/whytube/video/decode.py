"""Video files through PyAV: count by demuxing, decode with threads, seek only where an index proves it exact."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from whytube.errors import VideoError
from whytube.video.clip import VideoInfo
from whytube.video.packets import PacketTable, frame_rate, is_untimed, read_packets
from whytube.video.picture import EndedEarlyError, Shot, displayed_size, orientation, reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from av import VideoFrame, VideoStream
    from av.container import InputContainer

# Decoding this many unwanted frames is cheaper than a seek, which drains the decoder's threads.
SEEK_GAIN = 64
# What FFmpeg also takes for videos: plain text, and lists that name other files.
NOT_VIDEOS = frozenset({"tty", "concat", "hls", "dash"})


class ContainerSource:
    """A file in any container and codec that PyAV reads."""

    def __init__(self, path: Path, *, salvage: bool = False) -> None:
        self.path = path
        self.salvage = salvage

    @cached_property
    def count(self) -> int:
        """Packets of the video stream; what decodes may be less (hidden frames, damage)."""
        if self._table.damage and not self.salvage:
            raise self._damaged(self._table.damage)
        if len(self._table.pts) == 0:
            raise VideoError(
                f"{self.path} has a video stream with zero frames in it; expected at least one. Write or fetch it again"
            )
        return len(self._table.pts)

    def read(self, wanted: Sequence[int]) -> Iterator[Shot]:
        """Yield the wanted shots, jumping over long gaps where the packet table is exact."""
        last = -1
        if self._can_seek(wanted):
            for shot in self._read_by_seeking(wanted):
                yield shot
                last = shot.index
        rest = [index for index in wanted if index > last]
        if rest:
            yield from self._read_in_order(rest)

    def info(self) -> VideoInfo:
        """Describe the file; decodes one frame for its size and rotation."""
        count = self.count
        with self._opened() as (_, stream):
            fps = frame_rate(stream)
            base = float(stream.time_base or 0)
        shot = next(self._read_in_order([0]))
        turns, _ = orientation(shot.picture)
        table = self._table
        reach = float(table.pts.max() - table.pts.min()) * base + 1.0 / fps if table.exact else count / fps
        return VideoInfo(
            source=str(self.path),
            frames=count,
            fps=fps,
            size=displayed_size(shot.picture),
            duration=reach,
            rotation=90 * turns,
        )

    def _can_seek(self, wanted: Sequence[int]) -> bool:
        gaps = np.diff(np.asarray(wanted), prepend=-1)
        return self._table.exact and self._table.damage is None and bool((gaps > SEEK_GAIN).any())

    def _read_in_order(self, wanted: Sequence[int]) -> Iterator[Shot]:
        """Decode from the start to the last wanted frame."""
        targets = iter(wanted)
        target = next(targets)
        index = -1
        with self._opened() as (container, stream):
            clock = _Clock(container, stream, self._table)
            for index, picture in enumerate(self._pictures(container, stream)):
                time = clock(index, picture)
                if index == target:
                    yield Shot(index, time, picture)
                    following = next(targets, None)
                    if following is None:
                        return
                    target = following
        if index < 0:
            raise VideoError(f"no frame of {self.path} could be decoded; expected at least one. Is the file whole?")
        raise EndedEarlyError(index + 1)

    def _read_by_seeking(self, wanted: Sequence[int]) -> Iterator[Shot]:
        """Yield wanted shots; stop, leaving the rest to decoding in order, when a frame is not where the table says."""
        import av

        table = self._table
        keys = np.flatnonzero(table.key)
        with self._opened() as (container, stream):
            clock = _Clock(container, stream, table)
            pictures = self._pictures(container, stream)
            position = 0
            for target in wanted:
                start = int(keys[np.searchsorted(keys, target, side="right") - 1])
                if start - position > SEEK_GAIN:
                    try:
                        container.seek(int(min(table.dts[start], table.pts[start])), stream=stream)
                    except av.FFmpegError:
                        return
                    pictures = self._pictures(container, stream)
                    position = -1
                picture, position = self._advance(pictures, position, target)
                if picture is None:
                    return
                yield Shot(target, clock(target, picture), picture)

    def _advance(self, pictures: Iterator[VideoFrame], position: int, target: int) -> tuple[VideoFrame | None, int]:
        """Decode up to frame `target`, from `position` or (-1) from wherever a seek landed; None if it is missing."""
        times = self._table.pts
        try:
            for picture in pictures:
                found = int(np.searchsorted(times, picture.pts or 0))
                if found >= len(times) or times[found] != picture.pts or position not in (-1, found):
                    break
                position = found + 1
                if found >= target:
                    return (picture if found == target else None), position
        except VideoError:  # frames after a seek may lack those they refer to; decoding in order tells real damage
            pass
        return None, position

    def _pictures(self, container: InputContainer, stream: VideoStream) -> Iterator[VideoFrame]:
        """Decode on from where the container stands; errors end it, or with `salvage` are passed over."""
        import av

        try:
            for packet in container.demux(stream):
                try:
                    decoded = packet.decode()
                except av.FFmpegError:
                    if not self.salvage:
                        raise
                    continue
                for picture in decoded:
                    if picture.is_corrupt and not self.salvage:
                        raise self._damaged("a frame is marked as corrupt")
                    yield picture
        except av.FFmpegError as error:
            if not self.salvage:
                raise self._damaged(reason(error)) from error

    @contextmanager
    def _opened(self) -> Iterator[tuple[InputContainer, VideoStream]]:
        """Open the file at its first real video stream (a cover picture of a song is none)."""
        import av

        advice = (
            "; expected .mp4, .avi, .mkv or the like. If it plays elsewhere, convert it to H.264 mp4; "
            "if its download was cut off, fetch it again"
        )
        try:
            container = av.open(f"file:{self.path}", options={"protocol_whitelist": "file"})
        except (av.FFmpegError, OSError, ValueError) as error:
            raise VideoError(f"{self.path} is not a video that can be read ({reason(error)}){advice}") from error
        with container:
            if container.format.name in NOT_VIDEOS:
                raise VideoError(f"{self.path} is not a video but {container.format.long_name}{advice}")
            streams = [s for s in container.streams.video if not s.disposition & s.disposition.attached_pic]
            if not streams:
                kinds = ", ".join(sorted({s.type for s in container.streams})) or "no streams"
                raise VideoError(f"{self.path} holds no video stream, only: {kinds}. Give a file with moving pictures")
            if streams[0].codec_context is None:
                raise VideoError(f"no decoder for the video stream of {self.path}. Convert it to H.264 mp4")
            streams[0].thread_type = "AUTO"
            yield container, streams[0]

    def _damaged(self, what: str) -> VideoError:
        return VideoError(
            f"{self.path} is damaged: {what}. Expected a whole video; fetch it again, or pass `salvage=True` "
            "to use the frames that decode",
        )

    @cached_property
    def _table(self) -> PacketTable:
        with self._opened() as (container, stream):
            return read_packets(container, stream)


class _Clock:
    """Seconds since the first frame: from time stamps, from the rate where they are missing; never running back."""

    def __init__(self, container: InputContainer, stream: VideoStream, table: PacketTable) -> None:
        self._fps = frame_rate(stream)
        self._base = 0.0 if is_untimed(container) or stream.time_base is None else float(stream.time_base)
        self._start = int(table.pts.min()) if table.exact else stream.start_time
        self._now = 0.0

    def __call__(self, index: int, picture: VideoFrame) -> float:
        if picture.pts is None or not self._base:
            time = index / self._fps
        else:
            if self._start is None:
                self._start = picture.pts
            time = (picture.pts - self._start) * self._base
        self._now = max(self._now, time)
        return self._now
