"""Random changes of training clips: a tube erased, mirrored, cropped, faster, in another light.

All changes are drawn for the whole batch of a step; who has a share of the clips makes those of its share.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.functional import affine_grid, grid_sample

from whytube.training.devices import Share, whole_share
from whytube.tubes import Tube, erase, random_tube, tube_mask

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from whytube.training.recipe import Recipe

WHOLE = 0.5
"""Share of random tubes that span the whole clip; the others last at least a quarter of it."""
SIDED = re.compile(r"\b(left|right|(counter|anti)?-?clockwise)(ward|wards)?\b", re.IGNORECASE)

ERASING = ("mean", "blur", "freeze", "zero")
"""Fills of tubes that are erased in training."""


def change_randomly(
    clips: torch.Tensor, recipe: Recipe, *, step: int, flip: float, share: Share | None = None
) -> torch.Tensor:
    """Change the clips (B, 3, T, H, W) of a step as the recipe says; `flip` is in place of the recipe's.

    share: which clips of the step's batch these are, by default all.
    """
    rng = np.random.default_rng([recipe.seed, step, 1])
    drawn: dict[str, Any] = {"rng": rng, "share": share}
    clips = flip_randomly(clips, probability=flip, **drawn) if flip else clips
    clips = hasten_randomly(clips, span=recipe.span, **drawn) if recipe.span < 1 else clips
    clips = crop_randomly(clips, area=recipe.crop, **drawn) if recipe.crop < 1 else clips
    clips = light_randomly(clips, strength=recipe.light, **drawn) if recipe.light else clips
    return erase_randomly(clips, probability=recipe.erase_at(step), area=recipe.erase_area, **drawn)


def erase_randomly(
    clips: torch.Tensor,
    *,
    probability: float,
    area: tuple[float, float],
    rng: np.random.Generator,
    share: Share | None = None,
) -> torch.Tensor:
    """Erase a drifting box from some clips (B, 3, T, H, W), each with a random one of the fills.

    area: smallest and largest share of the frame. Clips that are not chosen come back as they were.
    """
    frames, height, width = clips.shape[2:]
    share = share or whole_share(len(clips))
    chosen = np.flatnonzero(rng.random(share.total) < probability)
    fills = rng.permutation(np.arange(len(chosen)) % len(ERASING))
    tubes = [_tube(frames, (height, width), area, rng) for _ in chosen]
    mine = np.flatnonzero((share.start <= chosen) & (chosen < share.stop))
    if not len(mine):
        return clips
    chosen, fills, tubes = chosen[mine] - share.start, fills[mine], [tubes[place] for place in mine]
    masks = tube_mask(tubes, np.arange(frames), (height, width), resolution=(height, width), device=clips.device)
    erased = clips.clone()
    for number, fill in enumerate(ERASING):
        rows = np.flatnonzero(fills == number)
        if len(rows):
            at = torch.from_numpy(chosen[rows]).to(clips.device)
            erased[at] = erase(clips[at], masks[torch.from_numpy(rows).to(clips.device)], fill=fill)
    return erased


def flip_randomly(
    clips: torch.Tensor, *, probability: float, rng: np.random.Generator, share: Share | None = None
) -> torch.Tensor:
    """Mirror some clips (B, 3, T, H, W) left to right."""
    share = share or whole_share(len(clips))
    chosen = torch.from_numpy(rng.random(share.total)[share.rows] < probability).to(clips.device)
    return torch.where(chosen[:, None, None, None, None], clips.flip(-1), clips)


def crop_randomly(
    clips: torch.Tensor, *, area: float, rng: np.random.Generator, share: Share | None = None
) -> torch.Tensor:
    """Crop every clip (B, 3, T, H, W) to a random box, the same in all its frames, and resize it to the full size.

    area: smallest share of the frame that is kept. The box's shape differs from the frame's by up to a fifth.
    """
    share = share or whole_share(len(clips))
    side = np.sqrt(rng.uniform(area, 1, size=share.total)[share.rows])
    shape = np.exp(rng.uniform(-1, 1, size=share.total)[share.rows] * 0.5 * np.log(1.2))
    sides = np.minimum(np.stack([side * shape, side / shape], 1), 1)
    return framed(clips, sides, rng.uniform(-1, 1, size=(share.total, 2))[share.rows] * (1 - sides))


def framed(clips: torch.Tensor, sides: NDArray[np.float64], middles: NDArray[np.float64]) -> torch.Tensor:
    """Resize a part of every clip (B, 3, T, H, W), the same in all its frames, to the full size.

    sides, middles: (B, 2) of the part in x and y, where the frame goes from -1 to 1. A negative side mirrors.
    """
    batch, channels, frames, height, width = clips.shape
    theta = np.zeros((batch, 2, 3))
    theta[:, 0, 0], theta[:, 1, 1], theta[:, :, 2] = sides[:, 0], sides[:, 1], middles
    grid = affine_grid(torch.from_numpy(theta).to(clips), [batch, 1, height, width], align_corners=False)
    moved = grid_sample(clips.flatten(1, 2), grid, padding_mode="border", align_corners=False)
    return moved.view(batch, channels, frames, height, width)


def framed_boxes(
    boxes: torch.Tensor, side: NDArray[np.float64], middle: NDArray[np.float64], *, size: tuple[int, int]
) -> torch.Tensor:
    """Boxes (..., 4) in pixels of frames of `size` (height, width), where `framed` takes them; zeros for no box.

    side, middle: (2,) of the part that is kept. A box that is seen by less than half is none.
    """
    whole = boxes.new_tensor([size[1], size[0]])
    side_, middle_ = (torch.from_numpy(values).to(boxes) for values in (side, middle))
    corners = (2 * boxes.view(*boxes.shape[:-1], 2, 2) / whole - 1 - middle_) / side_  # (..., 2 corners, x and y)
    corners = (corners.sort(-2).values + 1) / 2 * whole  # mirrored, left is right
    seen = torch.minimum(corners.clamp_min(0), whole)
    areas = [(pair[..., 1, :] - pair[..., 0, :]).prod(-1) for pair in (seen, corners)]
    there = (areas[0] > 0) & (areas[0] >= areas[1] / 2)
    there &= (boxes[..., 2] > boxes[..., 0]) & (boxes[..., 3] > boxes[..., 1])
    return torch.where(there[..., None], seen.flatten(-2), 0)


def hasten_randomly(
    clips: torch.Tensor, *, span: float, rng: np.random.Generator, share: Share | None = None
) -> torch.Tensor:
    """Replace every clip (B, 3, T, H, W) by a random stretch of it, frames repeated; span: its smallest share."""
    frames = clips.shape[2]
    share = share or whole_share(len(clips))
    kept = rng.uniform(span, 1, size=(share.total, 1))[share.rows]
    start = rng.uniform(0, 1, size=(share.total, 1))[share.rows] * (1 - kept)
    steps = ((start + kept * (np.arange(frames) + 0.5) / frames) * frames).astype(np.int64)
    index = torch.from_numpy(steps).to(clips.device)[:, None, :, None, None]
    return clips.gather(2, index.expand(clips.shape))


def light_randomly(
    clips: torch.Tensor, *, strength: float, rng: np.random.Generator, share: Share | None = None
) -> torch.Tensor:
    """Change brightness and contrast of every clip (B, 3, T, H, W) by up to `strength`."""
    share = share or whole_share(len(clips))
    every = rng.uniform(1 - strength, 1 + strength, size=(2, share.total, 1, 1, 1, 1))
    drawn = torch.from_numpy(every[:, share.rows]).to(clips)
    middle = clips.mean((1, 2, 3, 4), keepdim=True)
    return ((clips - middle) * drawn[0] + middle * drawn[1]).clamp(0, 1)


def sided_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that are wrong for a mirrored clip: those with left, right or clockwise in them."""
    return tuple(name for name in names if SIDED.search(name.replace("_", " ")))


def _tube(frames: int, size: tuple[int, int], area: tuple[float, float], rng: np.random.Generator) -> Tube:
    """Draw a tube: its area, shape, span and path at random."""
    share = np.exp(rng.uniform(*np.log(area)))
    side = np.exp(rng.uniform(-1, 1) * 0.5 * np.log(2))
    box = np.minimum(np.sqrt(share) * np.array([side, 1 / side]), 1.0) * size
    length = frames if rng.random() < WHOLE else int(rng.integers(max(frames // 4, 1), frames + 1))
    start = int(rng.integers(frames - length + 1))
    return random_tube(size, box, np.arange(start, start + length), rng=rng)
