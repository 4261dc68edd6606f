"""Clips from arrays and tensors that hold the frames of a video already."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from whytube.checks import check_finite, check_size, fail, shape_of
from whytube.video.clip import ASSUMED_FPS, Clip, sample_indices

if TYPE_CHECKING:
    import torch
    from numpy.typing import ArrayLike, NDArray

LAYOUTS = {0: "(3, T, H, W)", 1: "(T, 3, H, W)", 3: "(T, H, W, 3)"}
"""Where the colours may stand among the four dimensions."""
SOURCE = "array"
"""What clips of arrays name as their source."""


def clip_of_array(
    video: torch.Tensor | NDArray[np.generic],
    *,
    frames: int,
    size: tuple[int, int],
    sampling: str = "uniform",
    fps: float | None = None,
    own_size: tuple[int, int] | None = None,
) -> Clip:
    """Take `frames` frames of an array, and resize them as `read_clip` does.

    video: RGB as LAYOUTS says, uint8, or floating-point in [0, 1]. fps: its rate; without it `Clip.fps` is None, and
    times count as if it were 25. own_size: (height, width) of the video that it was made from; by default the array's.
    """
    from torch.nn.functional import interpolate

    every = rgb_frames(video)
    total = every.shape[1]
    rate = ASSUMED_FPS if fps is None else check_finite(fps, "fps")
    if rate <= 0:
        raise fail("fps", "a rate above 0", fps)
    indices = sample_indices(total, frames=frames, sampling=sampling)
    chosen = chosen_frames(every, indices)
    if tuple(chosen.shape[2:]) != tuple(size):
        rows = interpolate(chosen.transpose(0, 1), size=size, mode="bilinear", antialias=True, align_corners=False)
        chosen = rows.transpose(0, 1).clamp(0, 1).contiguous()
    own = check_size((every.shape[2], every.shape[3]) if own_size is None else own_size)
    return Clip(chosen, indices, indices / rate, own, SOURCE, fps=fps, duration=None if fps is None else total / rate)


def chosen_frames(every: torch.Tensor, indices: ArrayLike) -> torch.Tensor:
    """Frames (3, T, H, W) of uint8 or floats at some indices, as float32 in [0, 1]."""
    import torch

    chosen = every[:, torch.as_tensor(np.asarray(indices), device=every.device)].detach().float().cpu()
    if not every.is_floating_point():
        return chosen / 255
    low, high = (float(v) for v in chosen.aminmax())
    if not (math.isfinite(low) and low >= 0 and high <= 1):
        wanted = "RGB in [0, 1], or uint8 from 0 to 255, as it was before any normalisation"
        raise fail("video", wanted, f"values from {low:g} to {high:g}")
    return chosen


def rgb_frames(video: object) -> torch.Tensor:
    """View frames in one of LAYOUTS as a tensor (3, T, H, W)."""
    import torch

    tensor = torch.from_numpy(np.ascontiguousarray(video)) if isinstance(video, np.ndarray) else video
    expected = f"one clip of shape {', '.join(LAYOUTS.values())}"
    if not isinstance(tensor, torch.Tensor):
        raise fail("video", f"a path, a Clip, or {expected}", type(video).__name__)
    if tensor.dtype != torch.uint8 and not tensor.is_floating_point():
        raise fail("video", "uint8, or floating-point in [0, 1]", str(tensor.dtype))
    found = [dim for dim in LAYOUTS if tensor.ndim == 4 and tensor.shape[dim] == 3]
    if tensor.ndim == 5:
        raise fail("video", expected, f"a batch of shape {shape_of(tensor)}: give one of its clips")
    if not found or min(tensor.shape) < 1:
        raise fail("video", expected, shape_of(tensor))
    if len(found) > 1:
        meant = " or ".join(LAYOUTS[dim] for dim in found)
        raise fail(
            "video",
            "of a shape that says where the colours are",
            f"{shape_of(tensor)}, which may be {meant}. Give a whytube.Clip instead",
        )
    return tensor.movedim(found[0], 0)
