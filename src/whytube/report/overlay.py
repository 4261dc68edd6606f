"""Draws an explanation on the frames of its video: overlay videos and contact sheets."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from whytube.checks import check_tensor, fail, shape_of
from whytube.report.draw import GROUND, Canvas, chip_size, draw_chip
from whytube.video import MAX_PIXELS, Clip, iter_windows, probe, write_video
from whytube.video.encode import rgb_arrays

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import torch
    from numpy.typing import NDArray

    from whytube.explanation import Explanation

# Frames whose shorter side is below LEAST are enlarged by a whole factor, so that labels stay small beside the boxes.
# Frames whose longer side is above MOST are made smaller.
LEAST, MOST = 360, 1280
# Frames per second of a clip without times, and the least for any clip, which may then play faster than it was.
CLIP_FPS, SLOWEST = 8.0, 4.0


@dataclass(frozen=True)
class Overlay:
    """Frames with an explanation drawn on them, drawn again in every iteration, and their rate."""

    frames: Callable[[], Iterator[NDArray[np.uint8]]]
    fps: float

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        return self.frames()


def overlay_video(
    video: Clip | torch.Tensor | str | os.PathLike[str],
    explanation: Explanation,
    path: str | os.PathLike[str],
    *,
    scale: float | None = None,
    slow: float = 1.0,
    crf: int = 21,
    salvage: bool = False,
    max_pixels: int = MAX_PIXELS,
) -> Path:
    """Write an H.264 mp4 of a video with the explanation's tubes and attributes drawn on it.

    video: the video file: all its frames are shown, with boxes interpolated between the sampled ones. Or the clip that
        was explained, or its frames (3, T, H, W) in [0, 1].
    scale: size of the pictures over that of the video's frames; None enlarges small frames and shrinks huge ones.
    slow: how many times slower than the original to play. crf: quality as in `write_video`.
    salvage, max_pixels: how a file is read, as in `read_clip`. A few of its frames are in memory at a time.
    """
    shown = overlay_frames(video, explanation, scale=scale, salvage=salvage, max_pixels=max_pixels)
    if not slow > 0:
        raise fail("slow", "a factor above 0", slow)
    return write_video(path, shown, shown.fps / slow, crf=crf)


def overlay_frames(
    video: Clip | torch.Tensor | str | os.PathLike[str],
    explanation: Explanation,
    *,
    scale: float | None = None,
    salvage: bool = False,
    max_pixels: int = MAX_PIXELS,
) -> Overlay:
    """Draw an explanation on the frames of a video or clip, as `overlay_video` does; yields (H, W, 3) uint8."""
    canvas = Canvas(explanation, picture_size(explanation.size, scale))
    if isinstance(video, (str, os.PathLike)):
        info = probe(video, salvage=salvage, max_pixels=max_pixels)
        indices = np.arange(info.frames)

        def read() -> Iterator[Image.Image]:
            for window in iter_windows(video, frames=1, size=canvas.size, salvage=salvage, max_pixels=max_pixels):
                yield from _resized(window.frames, canvas.size)

        return Overlay(lambda: _drawn(canvas, indices, read()), info.fps)
    frames, indices = _sampled(video, explanation)
    return Overlay(lambda: _drawn(canvas, indices, _resized(frames, canvas.size)), _clip_rate(explanation))


def contact_sheet(
    video: Clip | torch.Tensor, explanation: Explanation, *, columns: int = 5, scale: float | None = None
) -> NDArray[np.uint8]:
    """Show `columns` frames of a clip side by side, with tubes, attributes and times: one picture (H, W, 3) uint8."""
    frames, indices = _sampled(video, explanation)
    canvas = Canvas(explanation, picture_size(explanation.size, scale))
    chosen = np.unique(np.linspace(0, frames.shape[1] - 1, columns).round().astype(int))
    boxes, times = canvas.boxes(indices[chosen]), explanation.times
    height, width = canvas.size
    step = width + 2 * canvas.text
    sheet = Image.new("RGB", (len(chosen) * step - 2 * canvas.text, height), GROUND)
    for column, (at, picture) in enumerate(zip(chosen.tolist(), _resized(frames[:, chosen], canvas.size), strict=True)):
        canvas.draw_tubes(picture, boxes[:, column])
        stamp = f"{times[at]:.2f} s" if times is not None else f"frame {indices[at]}"
        room = chip_size(stamp, canvas.text)
        draw_chip(picture, stamp, (width - room[1] - 2, height - room[0] - 2), GROUND, scale=canvas.text)
        sheet.paste(picture, (column * step, 0))
    return canvas.framed(sheet)


def picture_size(size: tuple[int, int], scale: float | None) -> tuple[int, int]:
    """(height, width) to show frames of `size` at: even numbers; see LEAST and MOST for scale None."""
    height, width = size
    if scale is None:
        scale = -(-LEAST // min(size)) if min(size) < LEAST else 1.0
        scale = min(scale, MOST / max(size))
    if not scale > 0:
        raise fail("scale", "a factor above 0", scale)
    return max(2, round(height * scale / 2) * 2), max(2, round(width * scale / 2) * 2)


def _drawn(canvas: Canvas, indices: NDArray[np.int64], pictures: Iterator[Image.Image]) -> Iterator[NDArray[np.uint8]]:
    """Draw on the pictures of the video's frames at `indices`."""
    boxes = canvas.boxes(indices)
    there = (boxes[..., 2] > boxes[..., 0]) & (boxes[..., 3] > boxes[..., 1])
    total = len(indices)
    spans = [(row.argmax() / total, (total - row[::-1].argmax()) / total) if row.any() else (0, 0) for row in there]
    for at, picture in enumerate(pictures):
        canvas.draw_tubes(picture, boxes[:, at])
        yield canvas.framed(picture, spans=spans, now=(at + 0.5) / total)


def _sampled(video: Clip | torch.Tensor, explanation: Explanation) -> tuple[torch.Tensor, NDArray[np.int64]]:
    """Frames (3, T, H, W) and their source indices (T,)."""
    frames = check_tensor(video.frames if isinstance(video, Clip) else video, "video", "(3, T, H, W)", ndim=4)
    indices = np.array(explanation.frames, dtype=np.int64)
    if frames.shape[0] != 3 or frames.shape[1] != len(indices):
        raise fail("video", f"of shape (3, {len(indices)}, H, W) like the explanation's frames", shape_of(frames))
    return frames, indices


def _resized(frames: torch.Tensor, size: tuple[int, int]) -> Iterator[Image.Image]:
    """Pictures of frames (3, T, H, W) in [0, 1], at another size."""
    for pixels in rgb_arrays(frames):
        yield Image.fromarray(np.ascontiguousarray(pixels)).resize(size[::-1], Image.Resampling.BICUBIC)


def _clip_rate(explanation: Explanation) -> float:
    """Frames per second at which sampled frames play as fast as the video did, at least SLOWEST."""
    times = explanation.times
    if times is None or len(times) < 2 or times[-1] <= times[0]:
        return CLIP_FPS
    return min(max((len(times) - 1) / (times[-1] - times[0]), SLOWEST), 60.0)
