"""From scenes to pixels: gratings, then sprites cut out of the atlas and laid over them, batched, on any device.

The background is a sum of plane waves, each the product of a row and a column, so it is one small matrix product. A
sprite is drawn only in a square patch around it, wide enough for the largest.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn.functional import grid_sample

from whytube.data.world import shapes
from whytube.data.world.scene import COATS, LAYERS, Background, Sprites

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whytube.data.world.scene import Scene

WIDEST = 0.22
"""Largest radius of any sprite, as a fraction of the frame's side."""
CHUNK = 8
"""Clips drawn at once on a CPU: what is in work then stays in its cache."""


def render(scenes: Sequence[Scene], *, frames: int, size: int, device: torch.device) -> torch.Tensor:
    """Draw the scenes: float32 (B, 3, T, size, size) in [0, 1]."""
    clips = torch.empty(len(scenes), 3, frames, size * size, device=device)
    step = CHUNK if device.type == "cpu" else max(len(scenes), 1)
    for start in range(0, len(scenes), step):
        _paint(clips[start : start + step], scenes[start : start + step])
    return clips.view(len(scenes), 3, frames, size, size)


def _paint(clips: torch.Tensor, scenes: Sequence[Scene]) -> None:
    """Draw scenes into `clips` (B, 3, T, H*W)."""
    ground = _stack([scene.background for scene in scenes], clips.device)
    sprites = _stack([scene.sprites for scene in scenes], clips.device)
    size = math.isqrt(clips.shape[3])
    _paint_background(clips, ground, size)
    where, maps, alpha = _patches(sprites, size)
    colours = torch.cat([sprites["colours"], torch.ones_like(sprites["colours"][:, :, :1])], 2)  # (B, L, 3, 3)
    for layer in range(len(LAYERS)):
        index = where[:, layer].unsqueeze(1).expand(-1, 3, -1, -1)
        paint = (colours[:, layer].mT @ maps[:, layer].flatten(2)).view(index.shape)
        clips.scatter_(3, index, torch.addcmul(paint, clips.gather(3, index), 1 - alpha[:, layer, None]))
    clips.clamp_(0, 1)


def _stack(parts: Sequence[Sprites] | Sequence[Background], device: torch.device) -> dict[str, torch.Tensor]:
    names = parts[0].__dataclass_fields__
    return {name: torch.from_numpy(np.stack([getattr(p, name) for p in parts])).to(device) for name in names}


def _paint_background(clips: torch.Tensor, ground: dict[str, torch.Tensor], size: int) -> None:
    """Fill (B, 3, T, H*W): cos(ax + b) = cos(ax) cos(b) - sin(ax) sin(b), summed over gratings by one product."""
    pixels = (torch.arange(size, device=clips.device) + 0.5) / size
    across = ground["wave"][:, :, 0, None] * pixels  # (B, G, W)
    down = ground["wave"][:, :, 1, None] * pixels  # (B, G, H)
    turn = (ground["phase"][..., None] + down[:, :, None]).permute(0, 2, 3, 1).unsqueeze(1)  # (B, 1, T, H, G)
    strength = ground["amplitude"].mT[:, :, None, None]  # (B, 3, 1, 1, G)
    level = ground["mean"][:, :, None, None, None].expand(-1, -1, *turn.shape[2:4], -1)  # (B, 3, T, H, 1)
    rows = torch.cat([strength * turn.cos(), -strength * turn.sin(), level], -1)
    columns = torch.cat([across.cos(), across.sin(), torch.ones_like(across[:, :1])], 1)
    torch.bmm(rows.flatten(1, 3), columns, out=clips.view(len(clips), -1, size))


def _patches(sprites: dict[str, torch.Tensor], size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Draw every sprite in its patch of P pixels.

    Returns the pixels each patch covers (B, L, T, P), what to add of body colour, pattern colour and white
    (B, L, 3, T, P), and how much of what lies behind is covered (B, L, T, P).
    """
    pixels, u, v = _local_coordinates(sprites, size)
    layers, (frames, side) = u.shape[0] * u.shape[1], u.shape[2:4]
    tiles = shapes.atlas(u.device)[sprites["shape"].flatten()]
    grid = torch.stack([u, v], -1).view(layers, frames * side, side, 2) / shapes.REACH
    distance = grid_sample(tiles, grid, padding_mode="border", align_corners=False).view_as(u)
    radius = (sprites["radius"] * size)[..., None, None]
    alpha = (0.5 - distance * radius).clamp_(0, 1) * sprites["alpha"][..., None, None, None]
    rim = (0.62 - 4 * distance).clamp_(0.55, 1)
    light = sprites["light"][:, :, None, None, None]
    shade = alpha * rim * (1 + light[..., 0] * u + light[..., 1] * v)
    flash = sprites["flash"][..., None, None]
    own = shade * (1 - flash.abs())
    pattern = own * _coat(u, v, sprites["coat"])
    maps = torch.stack([own - pattern, pattern, shade * flash.clamp(min=0)], 2)
    return pixels.flatten(3), maps.flatten(4), alpha.flatten(3)


def _local_coordinates(sprites: dict[str, torch.Tensor], size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the pixels of every sprite's patch and where they lie in its drawing: 3 times (B, L, T, side, side)."""
    side = min(2 * math.ceil(WIDEST * size + 1), size)
    centre = sprites["centre"] * size
    corner = (centre - side / 2).round().clamp(0, size - side)  # (B, L, T, 2)
    steps = torch.arange(side, device=corner.device)
    offset = (corner - centre + 0.5)[..., None, :] + steps[:, None]  # (B, L, T, side, 2)
    x, y = offset[..., None, :, 0], offset[..., :, None, 1]
    radius = (sprites["radius"] * size)[..., None, None]
    cos = sprites["angle"].cos()[..., None, None] / radius
    sin = sprites["angle"].sin()[..., None, None] / radius
    mirror = sprites["mirror"][..., None, None, None]
    u, v = mirror * cos * x + mirror * sin * y, cos * y - sin * x
    first = (corner[..., 1] * size + corner[..., 0]).long()
    return first[..., None, None] + steps[:, None] * size + steps, u, v


def _coat(u: torch.Tensor, v: torch.Tensor, coat: torch.Tensor) -> torch.Tensor:
    """Return how much of the second colour shows, 0 to 1, in coordinates of the drawing; only leads wear coats."""
    second = torch.zeros_like(u)
    lead = LAYERS.index("lead")
    across, down = (2.6 * math.pi * u[:, lead]).sin(), (2.6 * math.pi * v[:, lead]).sin()
    striped = (0.5 + 2 * across).clamp_(0, 1)
    dotted = (2.5 * (across + down) - 1.2).clamp_(0, 1)
    worn = coat[:, lead, None, None, None]
    second[:, lead] = torch.where(
        worn == COATS.index("striped"), striped, torch.where(worn == COATS.index("dotted"), dotted, 0.0)
    )
    return second
