"""Write H.264 mp4 files that browsers play."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from whytube.checks import check_int, fail, shape_of
from whytube.errors import VideoError
from whytube.files import whole_file
from whytube.video.picture import reason, require_av

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from av import VideoStream
    from av.container import OutputContainer
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
