"""Overlay videos and pictures: an explanation drawn on the frames it speaks of."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from torch.nn import functional

from whytube.checks import check_tensor, fail, shape_of
from whytube.report.canvas import GROUND, Canvas
from whytube.report.draw import WHITE, draw_text, fill_box
from whytube.video import Clip, iter_windows, probe, write_video

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import torch
    from numpy.typing import NDArray

    from whytube.explanation import Explanation

# Pictures with a shorter side than this are enlarged by a whole factor, so that words stay legible beside the boxes;
# those with a longer side than MOST are made smaller.
LEAST, MOST = 360, 1280
# Frames per second of a clip that does not say how fast it is.
CLIP_FPS = 8.0
# Frames per second below which a clip is shown faster than it was.
SLOWEST = 4.0


@dataclass(frozen=True)
class Overlay:
    """Frames with an explanation drawn on them, made anew in every iteration, and how fast to play them."""

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
) -> Path:
    """Write an H.264 mp4 of a video with the explanation's tubes and words drawn on it.

    video: the video file, of which every frame is shown, with boxes interpolated between sampled frames; or the clip
        that was explained, or its frames (3, T, H, W) in [0, 1], which are the explanation's sampled ones.
    scale: size of the pictures over that of the video's frames; None makes small ones larger and huge ones smaller.
    slow: how many times slower than the original to play. crf: quality as in `write_video`.
    """
    shown = overlay_frames(video, explanation, scale=scale)
    if not slow > 0:
        raise fail("slow", "a factor above 0", slow)
    return write_video(path, shown, shown.fps / slow, crf=crf)


def overlay_frames(
    video: Clip | torch.Tensor | str | os.PathLike[str], explanation: Explanation, *, scale: float | None = None
) -> Overlay:
    """Draw an explanation on every frame of a video or clip, as `overlay_video` does: iterates (H, W, 3) uint8."""
    canvas = Canvas(explanation, picture_size(explanation.size, scale))
    if isinstance(video, (str, os.PathLike)):
        info = probe(video)
        indices = np.arange(info.frames)
        return Overlay(lambda: _drawn(canvas, indices, _read(video, canvas.size)), info.fps)
    frames, indices = _sampled(video, explanation)
    return Overlay(lambda: _drawn(canvas, indices, _resized(frames, canvas.size)), _clip_rate(explanation))


def contact_sheet(
    video: Clip | torch.Tensor, explanation: Explanation, *, columns: int = 5, scale: float | None = None
) -> NDArray[np.uint8]:
    """Show a clip as one picture (H, W, 3) uint8: `columns` of its frames side by side, with tubes, words and times."""
    frames, indices = _sampled(video, explanation)
    canvas = Canvas(explanation, picture_size(explanation.size, scale))
    chosen = np.unique(np.linspace(0, frames.shape[1] - 1, columns).round().astype(int))
    boxes, gap = canvas.boxes(indices[chosen]), 2 * canvas.text
    pictures = []
    for at, picture in enumerate(_resized(frames[:, chosen], canvas.size)):
        canvas.draw_tubes(picture, boxes[:, at])
        _stamp(picture, explanation, int(chosen[at]), canvas.text)
        pictures += [picture, np.full((len(picture), gap, 3), GROUND, dtype=np.uint8)]
    return canvas.framed(np.concatenate(pictures[:-1], axis=1))


def picture_size(size: tuple[int, int], scale: float | None) -> tuple[int, int]:
    """(height, width) to show frames of `size` at: even numbers; see LEAST and MOST for scale None."""
    height, width = size
    if scale is None:
        scale = -(-LEAST // min(size)) if min(size) < LEAST else 1.0
        scale = min(scale, MOST / max(size))
    if not scale > 0:
        raise fail("scale", "a factor above 0", scale)
    return max(2, round(height * scale / 2) * 2), max(2, round(width * scale / 2) * 2)


def _drawn(
    canvas: Canvas, indices: NDArray[np.int64], pictures: Iterator[NDArray[np.uint8]]
) -> Iterator[NDArray[np.uint8]]:
    """Draw on the pictures of the given source frames."""
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


def _resized(frames: torch.Tensor, size: tuple[int, int]) -> Iterator[NDArray[np.uint8]]:
    for frame in frames.detach().float().cpu().unbind(1):
        large = functional.interpolate(frame[None], size, mode="bicubic", antialias=True)[0]
        yield large.clamp(0, 1).mul(255).round().byte().permute(1, 2, 0).contiguous().numpy()


def _read(path: str | os.PathLike[str], size: tuple[int, int]) -> Iterator[NDArray[np.uint8]]:
    for window in iter_windows(path, frames=1, size=size):
        yield window.frames[:, 0].mul(255).round().byte().permute(1, 2, 0).contiguous().numpy()


def _clip_rate(explanation: Explanation) -> float:
    """Frames per second at which sampled frames keep the video's own pace, unless that would be a slide show."""
    times = explanation.times
    if times is None or len(times) < 2 or times[-1] <= times[0]:
        return CLIP_FPS
    return min(max((len(times) - 1) / (times[-1] - times[0]), SLOWEST), 60.0)


def _stamp(picture: NDArray[np.uint8], explanation: Explanation, at: int, scale: int) -> None:
    """Write the time, or the frame's number, into the lower right corner."""
    times = explanation.times
    text = f"{times[at]:.2f} s" if times is not None else f"frame {explanation.frames[at]}"
    width = 5 * scale * len(text)
    height = len(picture)
    right = picture.shape[1]
    fill_box(picture, (right - width - 4 * scale, height - 13 * scale, right, height), GROUND, radius=0, alpha=0.6)
    draw_text(picture, text, (right - width, height - 10 * scale), WHITE, scale=scale)
