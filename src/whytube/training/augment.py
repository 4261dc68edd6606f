"""Clips as a network should also know them: with a tube erased, or mirrored."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import torch

from whytube.tubes import FILLS, Tube, erase, random_tube, tube_mask

if TYPE_CHECKING:
    from collections.abc import Iterable

WHOLE = 0.5
"""Share of random tubes that span the whole clip; the others last at least a quarter of it."""
SIDED = re.compile(r"\b(left|right|(counter|anti)?-?clockwise)(ward|wards)?\b", re.IGNORECASE)


def erase_randomly(
    clips: torch.Tensor, *, probability: float, area: tuple[float, float], rng: np.random.Generator
) -> torch.Tensor:
    """Erase a drifting box from some clips (B, 3, T, H, W), each with a random one of the fills.

    area: smallest and largest share of the frame. Clips that are not chosen come back as they were.
    """
    frames, height, width = clips.shape[2:]
    chosen = np.flatnonzero(rng.random(len(clips)) < probability)
    fills = rng.permutation(np.arange(len(chosen)) % len(FILLS))
    if not len(chosen):
        return clips
    tubes = [_tube(frames, (height, width), area, rng) for _ in chosen]
    masks = tube_mask(tubes, np.arange(frames), (height, width), resolution=(height, width), device=clips.device)
    erased = clips.clone()
    for number, fill in enumerate(FILLS):
        rows = np.flatnonzero(fills == number)
        if len(rows):
            at = torch.from_numpy(chosen[rows]).to(clips.device)
            erased[at] = erase(clips[at], masks[torch.from_numpy(rows).to(clips.device)], fill=fill)
    return erased


def flip_randomly(clips: torch.Tensor, *, probability: float, rng: np.random.Generator) -> torch.Tensor:
    """Mirror some clips (B, 3, T, H, W) left to right."""
    chosen = torch.from_numpy(rng.random(len(clips)) < probability).to(clips.device)
    return torch.where(chosen[:, None, None, None, None], clips.flip(-1), clips)


def sided_words(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that a mirrored clip would make wrong: those that speak of left, right or clockwise."""
    return tuple(name for name in names if SIDED.search(name.replace("_", " ")))


def _tube(frames: int, size: tuple[int, int], area: tuple[float, float], rng: np.random.Generator) -> Tube:
    """Draw a tube: its area, shape, span and path at random."""
    share = np.exp(rng.uniform(*np.log(area)))
    side = np.exp(rng.uniform(-1, 1) * 0.5 * np.log(2))
    box = np.minimum(np.sqrt(share) * np.array([side, 1 / side]), 1.0) * size
    length = frames if rng.random() < WHOLE else int(rng.integers(max(frames // 4, 1), frames + 1))
    start = int(rng.integers(frames - length + 1))
    return random_tube(size, box, np.arange(start, start + length), rng=rng)
