"""Explanations of tiny clips, for tests of what is drawn from them."""

import numpy as np
import torch

from whytube.explanation import Evidence, Explanation, Reason
from whytube.tubes import Tube

FRAMES = 6


def clip(size: int = 48) -> torch.Tensor:
    """Grey frames (3, T, size, size)."""
    return torch.full((3, FRAMES, size, size), 0.5)


def reason(attribute: str, *, start: int = 0, moved: bool = True, left: float = 8.0) -> Reason:
    """Move a box of 16 x 12 pixels to the right, one pixel per step of two frames."""
    frames = np.arange(start, FRAMES)
    boxes = np.stack([np.array([left + t, 20.0, left + 16 + t, 32.0]) for t in frames])
    evidence = tuple(
        Evidence(fill, 0.9, 0.3 if moved else 0.9, 0.05, 0.4 if moved else 0.05) for fill in ("mean", "blur")
    )
    return Reason(attribute, 1.5 - start / 4, Tube(frames * 2, boxes, frames * 0.08), evidence)


def explanation(*reasons: Reason, positive: str = "waltz", negative: str = "polka") -> Explanation:
    """Explain the clip above, whose frames are every second one of a video at 25 frames per second."""
    return Explanation(
        source="dances/a.mp4",
        size=(48, 48),
        frames=tuple(range(0, 2 * FRAMES, 2)),
        times=tuple(0.08 * t for t in range(FRAMES)),
        positive=positive,
        negative=negative,
        probabilities={positive: 0.9, negative: 0.05, "tango": 0.01},
        reasons=reasons,
    )
