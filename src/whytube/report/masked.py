"""Plays a video with a reason hidden: what its tube covers is filled as it was when the classifier was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from whytube.checks import check_choice, check_int
from whytube.report.draw import boxes_between
from whytube.report.overlay import picture_size, read_as
from whytube.tubes import FILLS, box_masks
from whytube.video import iter_windows, probe, read_clip, write_video
from whytube.video.encode import rgb_arrays

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from whytube.explanation import Explanation

SIDE = 640
"""Longer side of the pictures at most: the frames that were classified are all held at once."""


def write_masked_video(
    video: str | os.PathLike[str],
    explanation: Explanation,
    path: str | os.PathLike[str],
    *,
    reason: int = 0,
    fill: str = "mean",
) -> Path:
    """Write an mp4 of all frames of a video file with the tube of one reason filled.

    reason: its place in `explanation.reasons`. fill: one of FILLS, as `erase` makes it of the frames that were
    classified; "blur" blurs each frame itself. Between those frames boxes are interpolated, as in `overlay_video`.
    """
    check_choice(fill, "fill", FILLS)
    check_int(reason, "reason", 0, len(explanation.reasons) - 1)
    size, reading = picture_size(explanation.size, min(1.0, SIDE / max(explanation.size))), read_as(explanation)
    info = probe(video, **reading)
    scale = np.array([size[1], size[0]] * 2) / np.array([explanation.size[1], explanation.size[0]] * 2)
    tube = explanation.reasons[reason].tube
    boxes = boxes_between(tube, np.arange(info.frames), sampled=explanation.frames) * scale
    masks = box_masks(torch.from_numpy(tube.at(explanation.frames) * scale)[None], size)
    sampling = str(explanation.settings.get("sampling", "uniform"))
    seen = read_clip(video, frames=len(explanation.frames), size=size, sampling=sampling, **reading).frames[None]
    filled = None if fill == "blur" else FILLS[fill](seen, masks).expand_as(seen)[0]

    def frames() -> Iterator[NDArray[np.uint8]]:
        sampled = np.array(explanation.frames)
        for at, window in enumerate(iter_windows(video, frames=1, size=size, **reading)):
            if filled is None:
                cover = FILLS[fill](window.frames[None], masks)[0, :, 0]
            else:
                cover = filled[:, int(np.abs(sampled - at).argmin())]
            hidden = box_masks(torch.from_numpy(boxes[at : at + 1]), size).any(0)  # (H, W)
            yield from rgb_arrays(torch.where(hidden, cover, window.frames[:, 0])[:, None])

    return write_video(path, frames(), info.fps)
