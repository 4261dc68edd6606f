"""Reads video files through PyAV: counts frames without decoding, seeks where that is exact, decodes with threads."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from whytube.errors import VideoError
from whytube.video.clip import ASSUMED_FPS, MAX_PIXELS, EndedEarlyError, Shot, reason, too_large

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from av import VideoFrame, VideoStream
    from av.container import InputContainer
    from numpy.typing import NDArray

# Decoding this many unwanted frames is cheaper than a seek, which drains the decoder's threads.
SEEK_GAIN = 64
# Formats that FFmpeg opens and that are no videos: plain text, and lists that name other files.
NOT_VIDEOS = frozenset({"tty", "concat", "hls", "dash"})
# Codecs in which one packet is one shown frame, so that a sorted list of packet times is a list of frames.
ONE_FRAME_PER_PACKET = frozenset({"h264", "hevc", "av1", "vp9", "mjpeg", "prores", "dnxhd", "ffv1"})


class ContainerSource:
    """A file in any container and codec that PyAV reads; one whose frames have more than `max_pixels` is refused.

    threads: of the decoder, 0 for one on every core.
    """

    def __init__(self, path: Path, *, salvage: bool = False, max_pixels: int = MAX_PIXELS, threads: int = 0) -> None:
        self.path, self.salvage, self.max_pixels, self.threads = path, salvage, max_pixels, threads
        with self._opened() as (container, stream):
            self._table = table = _read_packets(container, stream)
            self._aspect = float(stream.sample_aspect_ratio or 1)
        if table.damage and not salvage:
            raise self._damaged(table.damage)
        # Packets of the video stream; fewer frames may decode (hidden frames, damage).
        self.count = len(table.pts)
        if self.count == 0:
            raise VideoError(
                f"{path} has a video stream with zero frames in it; expected at least one. Write or fetch it again"
            )
        self.fps = table.fps
        reach = float(table.pts.max() - table.pts.min()) * table.base + 1.0 / table.fps
        self.duration = reach if table.exact else self.count / table.fps

    def read(self, wanted: Sequence[int]) -> Iterator[Shot]:
        """Yield the wanted shots, seeking over long gaps where the packet table is exact."""
        last = -1
        if self._can_seek(wanted):
            for shot in self._read_by_seeking(wanted):
                yield shot
                last = shot.index
        rest = [index for index in wanted if index > last]
        if rest:
            yield from self._read_in_order(rest)

    def _can_seek(self, wanted: Sequence[int]) -> bool:
        gaps = np.diff(np.asarray(wanted), prepend=-1)
        return self._table.exact and self._table.damage is None and bool((gaps > SEEK_GAIN).any())

    def _read_in_order(self, wanted: Sequence[int]) -> Iterator[Shot]:
        """Decode from the start to the last wanted frame."""
        targets = iter(wanted)
        target = next(targets)
        index = -1
        with self._opened() as (container, stream):
            clock = _Clock(self._table)
            for index, picture in enumerate(self._pictures(container, stream)):
                time = clock(index, picture)
                if index == target:
                    yield Shot(index, time, picture, self._aspect)
                    following = next(targets, None)
                    if following is None:
                        return
                    target = following
        if index < 0:
            raise VideoError(f"no frame of {self.path} could be decoded; expected at least one. Is the file whole?")
        raise EndedEarlyError(index + 1)

    def _read_by_seeking(self, wanted: Sequence[int]) -> Iterator[Shot]:
        """Yield wanted shots; stop early when a frame is not where the table says."""
        import av

        table = self._table
        keys = np.flatnonzero(table.key)
        with self._opened() as (container, stream):
            clock = _Clock(table)
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
                yield Shot(target, clock(target, picture), picture, self._aspect)

    def _advance(self, pictures: Iterator[VideoFrame], position: int, target: int) -> tuple[VideoFrame | None, int]:
        """Decode up to frame `target`, from `position` or (-1) from where a seek landed; None if it is missing."""
        times = self._table.pts
        try:
            for picture in pictures:
                found = int(np.searchsorted(times, picture.pts or 0))
                if found >= len(times) or times[found] != picture.pts or position not in (-1, found):
                    break
                position = found + 1
                if found >= target:
                    return (picture if found == target else None), position
        except VideoError:  # after a seek, reference frames may be missing; decoding in order finds real damage
            pass
        return None, position

    def _pictures(self, container: InputContainer, stream: VideoStream) -> Iterator[VideoFrame]:
        """Decode on from the container's position; errors are raised, or with `salvage` skipped."""
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
        """Open the file and its first video stream that is not a cover picture."""
        import av

        advice = (
            "; expected .mp4, .avi, .mkv or the like. If it plays elsewhere, convert it to H.264 mp4; "
            "if its download was cut off, fetch it again"
        )
        try:
            container = self._container(max_pixels=str(self._most))
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
            self._check_pixels(streams[0])
            streams[0].thread_type = "AUTO"
            streams[0].codec_context.thread_count = self.threads
            streams[0].codec_context.options = {"max_pixels": str(self._most)}
            yield container, streams[0]

    def _container(self, **options: str) -> InputContainer:
        import av

        options["protocol_whitelist"] = "file"
        return av.open(f"file:{self.path}", options=options, metadata_errors="replace")

    @property
    def _most(self) -> int:
        """Pixels that a decoder may ask memory for; it rounds sizes up and adds edges."""
        return self.max_pixels + self.max_pixels // 4 + (1 << 18)

    def _check_pixels(self, stream: VideoStream) -> None:
        """Refuse large frames before one is decoded."""
        width, height = stream.codec_context.width, stream.codec_context.height
        if not width:  # a stream beyond the limit of FFmpeg is opened without its size
            with self._container(skip_frame="all") as again:
                context = again.streams[stream.index].codec_context
                width, height = getattr(context, "width", 0), getattr(context, "height", 0)
        if width * height > self.max_pixels:
            raise too_large(str(self.path), width, height, self.max_pixels)

    def _damaged(self, what: str) -> VideoError:
        advice = "pass `salvage=True` to use the frames that decode" if self.salvage or self._decodes() else ""
        return VideoError(f"{self.path} is damaged: {what}. Expected a whole video; fetch it again", advice=advice)

    def _decodes(self) -> bool:
        """Whether there is anything to salvage."""
        try:
            next(ContainerSource(self.path, salvage=True, max_pixels=self.max_pixels).read([0]))
        except (VideoError, EndedEarlyError):
            return False
        return True


class _Clock:
    """Seconds since the first frame, never decreasing: from time stamps, or from the rate where they are missing."""

    def __init__(self, table: PacketTable) -> None:
        self._fps, self._base, self._start = table.fps, table.base, table.start
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


@dataclass(frozen=True)
class PacketTable:
    """One entry per packet that is to be shown, sorted by display time where `exact`.

    pts, dts: (N,) int64 in units of the stream's time base. key: (N,) bool.
    exact: packets are frames and each has its own time, so entry n is frame n, and a frame's time gives its number.
    damage: why the file is not whole, or None.
    fps: average frames per second. base: seconds per time unit, 0 where the file stores no display times.
    start: time of the first frame in time units, None where unknown.
    """

    pts: NDArray[np.int64]
    dts: NDArray[np.int64]
    key: NDArray[np.bool_]
    exact: bool
    damage: str | None
    fps: float
    base: float
    start: int | None


def _read_packets(container: InputContainer, stream: VideoStream) -> PacketTable:
    """Demux a newly opened file to its end; takes about 1 % of the time of decoding it."""
    import av

    fps, start = float(stream.average_rate or stream.guessed_rate or ASSUMED_FPS), stream.start_time
    # The index of an mp4 is asked, not its frame count, which includes frames trimmed away by an edit list.
    promised = len(stream.index_entries) if "mp4" in container.format.name else stream.frames
    packets: list[tuple[int | None, int | None, bool]] = []
    hidden, reach = 0, 0.0
    damage: str | None = None
    bases = [float(s.time_base or 0) for s in container.streams]
    try:
        for packet in container.demux(stream) if promised else container.demux():
            reach = max(reach, ((packet.pts or 0) + (packet.duration or 0)) * bases[packet.stream_index])
            if packet.stream_index != stream.index or packet.size == 0:
                continue
            if packet.is_discard:
                hidden += 1
            else:
                packets.append((packet.pts, packet.dts, packet.is_keyframe))
    except av.FFmpegError as error:
        damage = reason(error)
    pts = np.array([pts or 0 for pts, _, _ in packets], dtype=np.int64)
    dts = np.array([dts or 0 for _, dts, _ in packets], dtype=np.int64)
    key = np.array([key for _, _, key in packets], dtype=np.bool_)
    longest = float(np.diff(np.sort(pts)).max(initial=0)) * bases[stream.index]
    found = len(packets) + hidden
    damage = damage or _cut_off(container, fps, promised=promised, found=found, reach=reach, longest=longest)
    base = 0.0 if _is_untimed(container) else float(stream.time_base or 0)
    one_each = stream.codec_context.name in ONE_FRAME_PER_PACKET and not _is_untimed(container) and not hidden
    if one_each and packets and all(pts is not None and dts is not None for pts, dts, _ in packets):
        order = np.argsort(pts, kind="stable")
        pts, dts, key = pts[order], dts[order], key[order]
        if (np.diff(pts) > 0).all() and key[0]:
            return PacketTable(pts, dts, key, True, damage, fps, base, start=int(pts[0]))
    return PacketTable(pts, dts, key, False, damage, fps, base, start)


def _cut_off(
    container: InputContainer, fps: float, *, promised: int, found: int, reach: float, longest: float
) -> str | None:
    """Compare what the header announces with the packets found; None if all is there.

    reach: seconds to the end of the last packet. longest: seconds that the longest frame but the last is shown.

    An AVI may leave out frames that only repeat the last, without being shorter. With nothing but a duration in the
    header, which is often rounded or a guess, much has to be missing; those of Matroska and WebM are exact.
    """
    if promised:
        whole = found >= promised or (_is_untimed(container) and reach >= (promised - 1) / fps)
        return None if whole else f"it announces {promised} frames and holds {found}"
    length = (container.duration or 0) / 1e6
    exact = "matroska" in container.format.name
    whole = reach >= (0.98 * length - max(0.5, 2 * longest) if exact else 0.9 * length - 1)
    return None if whole else f"it announces {length:.2f} s and ends after {reach:.2f} s"


def _is_untimed(container: InputContainer) -> bool:
    """AVI stores no display times: those reported are guesses, and wrong with B-frames."""
    return container.format.name == "avi"
