"""Draws an explanation on the frames of its video: overlay videos, GIFs, still pictures and contact sheets."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from PIL import Image

from whytube.checks import check_choice, fail, shape_of
from whytube.report.draw import GROUND, Canvas, chip_size, draw_chip
from whytube.video import Clip, iter_windows, probe, read_clip, read_frames, write_gif, write_png, write_video
from whytube.video.arrays import chosen_frames, rgb_frames
from whytube.video.encode import rgb_arrays

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import torch
    from numpy.typing import NDArray

    from whytube.explanation import Explanation

    Video: TypeAlias = Clip | torch.Tensor | NDArray[np.generic] | str | os.PathLike[str]

STYLES = ("boxes", "heat")
SUFFIXES = (".mp4", ".gif", ".png")
# A GIF holds all its frames in memory, so of a long video it shows this many, at about that rate, no larger than this.
GIF_FRAMES, GIF_FPS, GIF_SIDE = 96, 12.0, 480
HEAT_SIDE = 128
"""Longer side of the grid on which heat is made; it is then enlarged."""
# Frames whose shorter side is below LEAST are enlarged by a whole factor, so that labels stay small beside the boxes.
# Frames whose longer side is above MOST are made smaller.
LEAST, MOST = 360, 1280
# Frames per second of a clip without times, and the least for any clip, which may then play faster than it was.
CLIP_FPS, SLOWEST = 8.0, 4.0


@dataclass(frozen=True)
class Overlay:
    """Frames with an explanation drawn on them, drawn again in every iteration.

    fps: their rate. count: how many there are. still: place of the one to show alone.
    """

    frames: Callable[[], Iterator[NDArray[np.uint8]]]
    fps: float
    count: int
    still: int

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        return self.frames()


def overlay_video(
    video: Video,
    explanation: Explanation,
    path: str | os.PathLike[str],
    *,
    style: str = "boxes",
    heat: NDArray[np.float32] | None = None,
    scale: float | None = None,
    slow: float = 1.0,
    crf: int = 21,
) -> Path:
    """Write a video with the explanation's tubes and attributes drawn on it, as the name's ending says.

    .mp4 is H.264. .gif shows at most GIF_FRAMES frames. .png is one frame, of the middle of the first tube.

    video: the video file: all its frames are shown, with boxes interpolated between the sampled ones. Or the clip that
        was explained, or its frames (3, T, H, W) in [0, 1], or the array that was.
    style: "boxes", or "heat": colours by what masking did, see `Explanation.heat`.
    heat: draw this map (T, H, W) instead, T the sampled frames; MUCH, .25, is the strongest colour.
    scale: size of the pictures over that of the video's frames; None enlarges small frames and shrinks huge ones.
    slow: how many times slower than the original to play. crf: quality of an mp4 as in `write_video`.
    """
    if not slow > 0:
        raise fail("slow", "a factor above 0", slow)
    ending = check_suffix(path)
    if ending == ".gif" and scale is None:
        scale = min(1.0, GIF_SIDE / max(picture_size(explanation.size, None)))
        scale *= picture_size(explanation.size, None)[0] / explanation.size[0]
    shown = overlay_frames(video, explanation, style=style, heat=heat, scale=scale)
    if ending == ".mp4":
        return write_video(path, shown, shown.fps / slow, crf=crf)
    if ending == ".png":
        return write_png(path, next(islice(shown, shown.still, None)))
    step = max(1, round(shown.fps / GIF_FPS), -(-shown.count // GIF_FRAMES))
    return write_gif(path, islice(shown, 0, None, step), min(shown.fps / step / slow, 50.0))


def check_suffix(path: str | os.PathLike[str]) -> str:
    """Require the ending of what an overlay can be."""
    ending = Path(path).suffix.lower()
    if ending not in SUFFIXES:
        raise fail("overlay", "a file name that ends in .mp4, .gif or .png", Path(path).name)
    return ending


def overlay_frames(
    video: Video,
    explanation: Explanation,
    *,
    style: str = "boxes",
    heat: NDArray[np.float32] | None = None,
    scale: float | None = None,
) -> Overlay:
    """Draw an explanation on the frames of a video or clip, as `overlay_video` does; yields (H, W, 3) uint8."""
    canvas = Canvas(explanation, picture_size(explanation.size, scale), _note(explanation, style, heat))
    hot = _heat(explanation, check_choice(style, "style", STYLES), heat)
    if isinstance(video, (str, os.PathLike)):
        reading = read_as(explanation)
        info = probe(video, **reading)
        indices, rate = np.arange(info.frames), info.fps
        still = _still(explanation, indices)
        return Overlay(
            lambda: _drawn(canvas, indices, _read(video, canvas.size, reading), hot), rate, info.frames, still
        )
    frames, indices = _sampled(video, explanation)
    rate, still = _clip_rate(explanation), _still(explanation, indices)
    return Overlay(lambda: _drawn(canvas, indices, _resized(frames, canvas.size), hot), rate, len(indices), still)


def contact_sheet(
    video: Video,
    explanation: Explanation,
    *,
    columns: int = 5,
    style: str = "boxes",
    heat: NDArray[np.float32] | None = None,
    scale: float | None = None,
) -> NDArray[np.uint8]:
    """Show `columns` sampled frames side by side, with tubes, attributes and times: one picture (H, W, 3) uint8.

    video, style, heat: as in `overlay_video`.
    """
    if isinstance(video, (str, os.PathLike)):
        video = sampled_clip(video, explanation)
    frames, indices = _sampled(video, explanation)
    canvas = Canvas(explanation, picture_size(explanation.size, scale), _note(explanation, style, heat))
    hot = _heat(explanation, check_choice(style, "style", STYLES), heat)
    chosen = np.unique(np.linspace(0, frames.shape[1] - 1, columns).round().astype(int))
    boxes, times = canvas.boxes(indices[chosen]), explanation.times
    height, width = canvas.size
    step = width + 2 * canvas.text
    sheet = Image.new("RGB", (len(chosen) * step - 2 * canvas.text, height), GROUND)
    for column, (at, picture) in enumerate(zip(chosen.tolist(), _resized(frames[:, chosen], canvas.size), strict=True)):
        _draw(canvas, picture, boxes[:, column], None if hot is None else hot[at])
        stamp = f"{times[at]:.2f} s" if times is not None else f"frame {indices[at]}"
        room = chip_size(stamp, canvas.text)
        draw_chip(picture, stamp, (width - room[1] - 2, height - room[0] - 2), GROUND, scale=canvas.text)
        sheet.paste(picture, (column * step, 0))
    return canvas.framed(sheet)


def sampled_clip(video: str | os.PathLike[str], explanation: Explanation) -> Clip:
    """Read the frames of a file that were explained, in its own size; refuse a file that has others."""
    sampling = str(explanation.settings.get("sampling", "uniform"))
    shown, reading = picture_size(explanation.size, None), read_as(explanation)
    if sampling == "window":
        return read_frames(video, explanation.frames, size=shown, **reading)
    clip = read_clip(video, frames=len(explanation.frames), size=shown, sampling=sampling, **reading)
    if tuple(clip.indices.tolist()) != explanation.frames:
        raise fail("video", "the file that was explained", f"{video} with other frames. Explain it again")
    return clip


def picture_size(size: tuple[int, int], scale: float | None) -> tuple[int, int]:
    """(height, width) to show frames of `size` at: even numbers; see LEAST and MOST for scale None."""
    height, width = size
    if scale is None:
        scale = -(-LEAST // min(size)) if min(size) < LEAST else 1.0
        scale = min(scale, MOST / max(size))
    if not scale > 0:
        raise fail("scale", "a factor above 0", scale)
    return max(2, round(height * scale / 2) * 2), max(2, round(width * scale / 2) * 2)


def read_as(explanation: Explanation) -> dict[str, Any]:
    """How the file was read that was explained: what `read_clip` was told beside its frames and size."""
    return {name: explanation.settings[name] for name in ("salvage", "max_pixels") if name in explanation.settings}


def _note(explanation: Explanation, style: str, heat: NDArray[np.float32] | None) -> str:
    """Say what the colours are, where there are any."""
    if heat is not None:
        return "a map, not checked by masking"
    return "heat: what masking did" if style == "heat" and explanation.explained else ""


def _heat(explanation: Explanation, style: str, heat: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
    """Find the map (T, h, w) to draw, None for boxes; nothing is drawn where nothing explains the answer."""
    if heat is not None:
        if heat.ndim != 3 or len(heat) != len(explanation.frames):
            raise fail("heat", f"of shape ({len(explanation.frames)}, H, W)", heat.shape)
        return heat
    if style == "boxes":
        return None
    shrink = min(1.0, HEAT_SIDE / max(explanation.size))
    small = (max(1, round(explanation.size[0] * shrink)), max(1, round(explanation.size[1] * shrink)))
    if not explanation.explained:
        return np.zeros((len(explanation.frames), *small), np.float32)
    return explanation.heat(size=small)


def _still(explanation: Explanation, indices: NDArray[np.int64]) -> int:
    """Place of the frame to show alone: the middle of the first tube, or of the video."""
    tubes = [reason.tube for reason in explanation.telling if len(reason.tube)]
    wanted = int(tubes[0].frames[len(tubes[0]) // 2]) if tubes else int(indices[len(indices) // 2])
    return int(np.abs(indices - wanted).argmin())


def _draw(canvas: Canvas, picture: Image.Image, boxes: NDArray[np.float64], heat: NDArray[np.float32] | None) -> None:
    if heat is None:
        canvas.draw_tubes(picture, boxes)
    else:
        canvas.draw_heat(picture, heat)


def _drawn(
    canvas: Canvas,
    indices: NDArray[np.int64],
    pictures: Iterator[Image.Image],
    heat: NDArray[np.float32] | None,
) -> Iterator[NDArray[np.uint8]]:
    """Draw on the pictures of the video's frames at `indices`; heat is that of the nearest sampled frame."""
    boxes = canvas.boxes(indices)
    there = (boxes[..., 2] > boxes[..., 0]) & (boxes[..., 3] > boxes[..., 1])
    total = len(indices)
    spans = [(row.argmax() / total, (total - row[::-1].argmax()) / total) if row.any() else (0, 0) for row in there]
    sampled = np.array(canvas.explanation.frames, dtype=np.int64)
    for at, picture in enumerate(pictures):
        nearest = int(np.abs(sampled - indices[at]).argmin())
        _draw(canvas, picture, boxes[:, at], None if heat is None else heat[nearest])
        yield canvas.framed(picture, spans=spans, now=(at + 0.5) / total)


def _sampled(
    video: Clip | torch.Tensor | NDArray[np.generic], explanation: Explanation
) -> tuple[torch.Tensor, NDArray[np.int64]]:
    """Frames (3, T, H, W) and their source indices (T,); of a whole video the frames that were explained."""
    every = rgb_frames(video.frames if isinstance(video, Clip) else video)
    indices = np.array(explanation.frames, dtype=np.int64)
    if every.shape[1] == len(indices):
        return chosen_frames(every, np.arange(len(indices))), indices
    if isinstance(video, Clip) or every.shape[1] <= indices.max(initial=0):
        expected = f"of shape (3, {len(indices)}, H, W) like the explanation's frames, or the whole video"
        raise fail("video", expected, shape_of(every))
    return chosen_frames(every, indices), indices


def _resized(frames: torch.Tensor, size: tuple[int, int]) -> Iterator[Image.Image]:
    """Pictures of frames (3, T, H, W) in [0, 1], at another size."""
    for pixels in rgb_arrays(frames):
        yield Image.fromarray(np.ascontiguousarray(pixels)).resize(size[::-1], Image.Resampling.BICUBIC)


def _read(path: str | os.PathLike[str], size: tuple[int, int], reading: dict[str, Any]) -> Iterator[Image.Image]:
    for window in iter_windows(path, frames=1, size=size, **reading):
        yield from _resized(window.frames, size)


def _clip_rate(explanation: Explanation) -> float:
    """Frames per second at which sampled frames play as fast as the video did, at least SLOWEST."""
    times = explanation.times
    if times is None or len(times) < 2 or times[-1] <= times[0]:
        return CLIP_FPS
    return min(max((len(times) - 1) / (times[-1] - times[0]), SLOWEST), 60.0)
