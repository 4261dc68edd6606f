"""Writes videos and pictures: H.264 mp4 that browsers play, GIF and PNG."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from whytube.checks import check_int, fail, shape_of
from whytube.errors import VideoError
from whytube.files import whole_file
from whytube.video.clip import reason, require_av

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    import torch
    from av import VideoFrame, VideoStream
    from av.container import OutputContainer
    from av.filter import Graph
    from numpy.typing import NDArray

SAME = {"x264-params": "rc-lookahead=0:mbtree=0"}
"""So that the same frames give the same file: with its lookahead, x264 encodes small pictures differently each time."""


def write_video(
    path: str | os.PathLike[str],
    frames: torch.Tensor | Iterable[NDArray[np.uint8]],
    fps: float,
    *,
    crf: int = 18,
    preset: str = "medium",
) -> Path:
    """Write an mp4 (H.264, yuv420p, BT.709), sized up to even numbers by repeating the last row or column.

    frames: a tensor (3, T, H, W), uint8 or float in [0, 1]; or any iterable of (H, W, 3) uint8 RGB arrays, which is
        consumed one frame at a time.
    crf: quality from 0 (lossless) to 51. preset: an x264 speed preset.
    The file appears under its name only once it is whole; an existing one is replaced.
    """
    require_av()
    import av

    target = Path(path)
    rate = _rate(fps)
    check_int(crf, "crf", 0, 51)
    try:
        with whole_file(target, error=VideoError) as part:
            with av.open(str(part), "w", format="mp4", options={"movflags": "+faststart"}) as container:
                count = _encode(
                    container, rgb_arrays(frames), rate=rate, options={"crf": str(crf), "preset": preset, **SAME}
                )
            if count == 0:
                raise VideoError(f"cannot write {target}: `frames` holds zero frames; expected at least one")
    except av.FFmpegError as error:
        raise VideoError(f"cannot write {target}: {reason(error)}") from error
    return target


def _encode(
    container: OutputContainer, arrays: Iterator[NDArray[np.uint8]], *, rate: Fraction, options: dict[str, str]
) -> int:
    """Encode all frames into an open container; returns how many."""
    import av
    from av.video.reformatter import VideoReformatter

    stream: VideoStream | None = None
    reformatter = VideoReformatter()
    shape: tuple[int, ...] = ()
    count = 0
    for count, array in enumerate(arrays, start=1):
        if stream is None:
            shape = array.shape
            stream = _add_stream(container, shape, rate=rate, options=options)
        elif array.shape != shape:
            raise fail(f"frames[{count - 1}]", f"of shape {shape} like the first", array.shape)
        even = np.pad(array, ((0, shape[0] % 2), (0, shape[1] % 2), (0, 0)), mode="edge")
        picture = reformatter.reformat(
            av.VideoFrame.from_ndarray(np.ascontiguousarray(even), format="rgb24"),
            format="yuv420p",
            dst_colorspace=1,  # ITU709
            dst_color_range="MPEG",
            threads=1,
        )
        picture.pts, picture.time_base = count - 1, 1 / rate
        container.mux(stream.encode(picture))
    if stream is not None:
        container.mux(stream.encode(None))
    return count


def _add_stream(
    container: OutputContainer, shape: tuple[int, ...], *, rate: Fraction, options: dict[str, str]
) -> VideoStream:
    stream = container.add_stream("libx264", rate=rate, options=options)
    stream.height, stream.width = shape[0] + shape[0] % 2, shape[1] + shape[1] % 2
    stream.pix_fmt = "yuv420p"
    context = stream.codec_context
    context.color_range = 1  # limited ("MPEG")
    context.colorspace = context.color_primaries = context.color_trc = 1  # BT.709
    return stream


def rgb_arrays(frames: torch.Tensor | Iterable[NDArray[np.uint8]]) -> Iterator[NDArray[np.uint8]]:
    """Yield checked (H, W, 3) uint8 arrays."""
    import torch

    if isinstance(frames, torch.Tensor):
        if frames.ndim != 4 or frames.shape[0] != 3:
            raise fail("frames", "a tensor of shape (3, T, H, W) or an iterable of (H, W, 3) arrays", shape_of(frames))
        if frames.dtype != torch.uint8 and not frames.is_floating_point():
            raise fail("frames", "uint8, or floating-point in [0, 1]", str(frames.dtype))
        for frame in frames.detach().unbind(1):
            pixels = frame if frame.dtype == torch.uint8 else frame.float().clamp(0, 1).mul(255).round().byte()
            yield pixels.permute(1, 2, 0).cpu().numpy()
        return
    for index, array in enumerate(frames):
        if not isinstance(array, np.ndarray) or array.ndim != 3 or array.shape[2] != 3 or array.dtype != np.uint8:
            got = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
            raise fail(f"frames[{index}]", "a uint8 array of shape (H, W, 3)", got)
        if min(array.shape) < 1:
            raise fail(f"frames[{index}]", "at least one pixel", f"shape {array.shape}")
        yield array


def _rate(fps: float) -> Fraction:
    if isinstance(fps, bool) or not isinstance(fps, (int, float, Fraction)) or not 0 < fps <= 1000:
        raise fail("fps", "a rate above 0 and up to 1000", repr(fps))
    return max(Fraction(fps).limit_denominator(1001), Fraction(1, 1001))


def png_bytes(picture: NDArray[np.uint8]) -> bytes:
    """Encode an RGB picture (H, W, 3) uint8 as a PNG file."""
    require_av()
    import av

    array = next(rgb_arrays([picture]))
    context = av.VideoCodecContext.create("png", "w")
    context.height, context.width = array.shape[:2]
    context.pix_fmt = "rgb24"
    context.time_base = Fraction(1)
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(array), format="rgb24")
    return b"".join(bytes(packet) for packet in [*context.encode(frame), *context.encode(None)])


def write_png(path: str | os.PathLike[str], picture: NDArray[np.uint8]) -> Path:
    """Write an RGB picture (H, W, 3) uint8; an existing file is replaced once the new one is whole."""
    data = png_bytes(picture)
    with whole_file(path, error=VideoError) as part:
        part.write_bytes(data)
    return Path(path)


def write_gif(
    path: str | os.PathLike[str],
    frames: torch.Tensor | Iterable[NDArray[np.uint8]],
    fps: float,
    *,
    colours: int = 128,
) -> Path:
    """Write a GIF that plays for ever, with one palette of `colours` made from all its frames, which are held at once.

    frames: a tensor (3, T, H, W), uint8 or float in [0, 1], or an iterable of (H, W, 3) uint8 RGB arrays.
    fps: up to 50.
    """
    require_av()
    import av

    target = Path(path)
    check_int(colours, "colours", 4, 256)
    if not 0 < fps <= 50:
        raise fail("fps", "a rate above 0 and up to 50, the most that browsers play", fps)
    arrays = [np.ascontiguousarray(array) for array in rgb_arrays(frames)]
    if not arrays or any(array.shape != arrays[0].shape for array in arrays):
        raise fail("frames", "at least one frame, all of one size", f"shapes {sorted({a.shape for a in arrays})}")
    try:
        with (
            whole_file(target, error=VideoError) as part,
            av.open(str(part), "w", format="gif", options={"loop": "0"}) as container,
        ):
            stream = container.add_stream("gif", rate=Fraction(fps).limit_denominator(1000))
            stream.height, stream.width = arrays[0].shape[:2]
            stream.pix_fmt = "pal8"
            for picture in _with_palette(arrays, rate=Fraction(fps).limit_denominator(1000), colours=colours):
                container.mux(stream.encode(picture))
            container.mux(stream.encode(None))
    except av.FFmpegError as error:
        raise VideoError(f"cannot write {target}: {reason(error)}") from error
    return target


def _with_palette(arrays: list[NDArray[np.uint8]], *, rate: Fraction, colours: int) -> Iterator[VideoFrame]:
    """Reduce all frames to one palette, dithered in a fixed pattern that does not flicker from frame to frame."""
    import av

    graph = _palette_graph(arrays[0].shape, rate=rate, colours=colours)
    for index, array in enumerate(arrays):
        picture = av.VideoFrame.from_ndarray(array, format="rgb24")
        picture.pts, picture.time_base = index, 1 / rate
        graph.vpush(picture)
    graph.vpush(None)
    for _ in arrays:
        yield graph.vpull()


def _palette_graph(shape: tuple[int, ...], *, rate: Fraction, colours: int) -> Graph:
    from av import VideoFormat
    from av.filter import Graph

    graph = Graph()
    source = graph.add_buffer(width=shape[1], height=shape[0], format=VideoFormat("rgb24"), time_base=1 / rate)
    both = graph.add("split")
    palette = graph.add("palettegen", f"max_colors={colours}:reserve_transparent=0:stats_mode=full")
    used = graph.add("paletteuse", "dither=bayer:bayer_scale=5:diff_mode=rectangle")
    sink = graph.add("buffersink")
    source.link_to(both)
    both.link_to(palette, 0, 0)
    both.link_to(used, 1, 0)
    palette.link_to(used, 0, 1)
    used.link_to(sink)
    graph.configure()
    return graph
