"""Write single pictures as PNG and short loops as GIF."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from whytube.checks import check_int, fail
from whytube.errors import VideoError
from whytube.files import whole_file
from whytube.video.encode import rgb_arrays
from whytube.video.picture import reason, require_av

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    import torch
    from av import VideoFrame
    from av.filter import Graph
    from numpy.typing import NDArray


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
