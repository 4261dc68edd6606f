"""The drawings of the world: closed outlines, and the atlas of signed distances made from them.

An outline is a tuple of closed loops (M, 2), x right and y down, filled by the even-odd rule, centred on the
origin and reaching radius 1. Boxes are taken from the outlines, pixels from the atlas, so the two agree.
"""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

Loop: TypeAlias = NDArray[np.float64]
Outline: TypeAlias = tuple[Loop, ...]

PEBBLES = 12
REACH = 1.15
"""Half the side of an atlas tile, in shape radii."""
TILE = 64
"""Samples along the side of an atlas tile."""


def _polar(angle: Loop, radius: Loop | float) -> Loop:
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1)


def _turn(samples: int = 72) -> Loop:
    return np.linspace(0, 2 * np.pi, samples, endpoint=False)


def _circle(x: float = 0.0, y: float = 0.0, radius: float = 1.0) -> Loop:
    return np.add(_polar(_turn(48), radius), (x, y))


def _rounded(points: ArrayLike, rounds: int = 2) -> Loop:
    """Cut the corners of a polygon (Chaikin), so that no drawing has a sharp tip or a long straight edge."""
    loop = np.array(points)
    for _ in range(rounds):
        after = np.roll(loop, -1, axis=0)
        loop = np.stack([0.82 * loop + 0.18 * after, 0.18 * loop + 0.82 * after], 1).reshape(-1, 2)
    return loop


def _drawings() -> dict[str, Outline]:
    """Draw the objects and poses of the vocabulary."""
    spokes = _polar(np.arange(10) * np.pi / 5 - np.pi / 2, np.where(np.arange(10) % 2 == 0, 1.0, 0.42))
    fish = [(-1.0, 0.0), (-0.62, -0.55), (0.0, -0.62), (0.48, -0.16), (0.9, -0.68), (0.78, 0.0)]
    around = _turn(96)
    cap = _polar(np.linspace(np.pi, 2 * np.pi, 12), 1.0) * (1.0, 0.95)
    stem = [(0.9, 0.22), (0.32, 0.18), (0.4, 0.8), (0.2, 0.92), (-0.2, 0.92), (-0.4, 0.8), (-0.32, 0.18), (-0.9, 0.22)]
    lobes = -(13 * np.cos(around) - 5 * np.cos(2 * around) - 2 * np.cos(3 * around) - np.cos(4 * around))
    ribbon = [(0.16, -0.2), (0.9, -0.68), (1.0, -0.3), (0.84, 0.0), (1.0, 0.3), (0.9, 0.68), (0.16, 0.2)]
    outer = _polar(np.linspace(0.75, 2 * np.pi - 0.75, 48), 1.0)
    inner = np.add(_polar(np.linspace(2 * np.pi - 1.35, 1.35, 36), 0.72), (0.56, 0.0))
    flash = [(0.5, -1.0), (-0.72, 0.1), (-0.1, 0.26)]
    cheek = _polar(np.linspace(-0.35, np.pi + 0.35, 16), 0.8) * (1.1, 0.9) + (0.0, 0.12)
    ears = [(-0.86, -0.95), (-0.32, -0.5), (0.32, -0.5), (0.86, -0.95)]
    dome = _polar(np.linspace(np.pi, 2 * np.pi, 24), 1.0) * (1.0, 0.72)
    hem = [(0.66, -0.16), (0.33, 0.0), (0.0, -0.16), (-0.33, 0.0), (-0.66, -0.16)]
    return {
        "with star": (_rounded(spokes, 1),),
        "with fish": (_rounded([*fish, *((x, -y) for x, y in fish[-2:0:-1])]), _circle(-0.55, -0.12, 0.13)),
        "with clover": (_polar(around, 0.3 + 0.7 * np.abs(np.cos(2 * around)) ** 0.7),),
        "with mushroom": (_rounded([*cap, *stem], 1),),
        "with heart": (np.stack([16 * np.sin(around) ** 3, lobes], -1),),
        "with bow tie": (_rounded([*ribbon, *((-x, -y) for x, y in ribbon)]),),
        "with moon": (_rounded([*outer, *inner], 1),),
        "with bolt": (_rounded([*flash, *((-x, -y) for x, y in flash)], 1),),
        "with cat": (_rounded([*cheek, *ears], 1), _circle(-0.32, 0.05, 0.16), _circle(0.32, 0.05, 0.16)),
        "in bubble": (_circle(), _circle(radius=0.83)),
        "under umbrella": (_rounded(np.add([*dome, *hem], (0.0, 0.36)), 1),),
        "on wheels": tuple(_circle(x, 0.0, r) for x in (-0.58, 0.58) for r in (0.42, 0.14)),
    }


def _pebble(number: int) -> Outline:
    """Draw one of the distractors: a smooth, lumpy blob like no object of the vocabulary."""
    rng = np.random.default_rng([31, number])
    angle = _turn()
    lumps = sum(rng.uniform(0.03, 0.14) / k * np.cos(k * angle + rng.uniform(0, 2 * np.pi)) for k in (2, 3, 4))
    return (_polar(angle, 1 + lumps) * (1.0, rng.uniform(0.55, 0.8)),)


def _normalised(outline: Outline) -> Outline:
    """Centre the bounding box on the origin and scale the farthest point to radius 1."""
    points = np.concatenate(outline)
    middle = (points.min(0) + points.max(0)) / 2
    reach = np.linalg.norm(points - middle, axis=1).max()
    return tuple((loop - middle) / reach for loop in outline)


@cache
def outlines() -> dict[str, Outline]:
    """Return every drawing by name: the objects and poses of the vocabulary, then the pebbles."""
    drawn = _drawings() | {f"pebble {number}": _pebble(number) for number in range(PEBBLES)}
    return {name: _normalised(outline) for name, outline in drawn.items()}


@cache
def places() -> dict[str, int]:
    """Return the place of every drawing in the atlas."""
    return {name: place for place, name in enumerate(outlines())}


def _signed_distance(points: Loop, outline: Outline) -> Loop:
    """Return the distance of `points` (N, 2) to the outline, negative inside: (N,)."""
    nearest = np.full(len(points), np.inf)
    inside = np.zeros(len(points), dtype=bool)
    x, y = points[:, None, 0], points[:, None, 1]
    for loop in outline:
        start, end = loop[None], np.roll(loop, -1, axis=0)[None]
        edge = end - start
        away = points[:, None] - start
        along = np.clip((away * edge).sum(-1) / (edge**2).sum(-1).clip(1e-12), 0, 1)
        nearest = np.minimum(nearest, np.linalg.norm(away - along[..., None] * edge, axis=-1).min(1))
        crosses = (start[..., 1] > y) != (end[..., 1] > y)
        rise = np.where(edge[..., 1] == 0, 1.0, edge[..., 1])
        inside ^= (crosses & (x < start[..., 0] + (y - start[..., 1]) / rise * edge[..., 0])).sum(1) % 2 == 1
    return np.where(inside, -nearest, nearest)


@cache
def atlas(device: torch.device) -> torch.Tensor:
    """Return the signed distances of all drawings, in shape radii: float32 (drawings, 1, TILE, TILE)."""
    side = ((np.arange(TILE) + 0.5) / TILE * 2 - 1) * REACH
    points = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    tiles = np.stack([_signed_distance(points, outline).reshape(1, TILE, TILE) for outline in outlines().values()])
    return torch.from_numpy(tiles.astype(np.float32)).to(device)


@cache
def hull(place: int) -> Loop:
    """Return the points of one drawing that can be extreme when it is turned: its convex hull, (M, 2)."""
    points: Loop = np.concatenate(outlines()[list(outlines())[place]])
    around = _turn(720)
    directions = np.stack([np.cos(around), np.sin(around)])
    extreme = np.unique(np.argmax(points @ directions, axis=0))
    return np.take(points, extreme, axis=0)
