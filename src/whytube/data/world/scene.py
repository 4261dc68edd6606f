"""One clip as numbers: what stands where in every frame, how large, how turned, in which colours.

Lengths are fractions of the frame's side, x right and y down; angles are radians, clockwise as seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from whytube.data.world import shapes, vocabulary

Floats: TypeAlias = NDArray[np.float32]
Integers: TypeAlias = NDArray[np.int64]
Boxes: TypeAlias = NDArray[np.float64]

LAYERS = ("pebble", "second pebble", "guest", "pose", "partner", "lead")
"""The sprites of a clip, from back to front. A pose is drawn behind the partner who strikes it."""
SPRITES_OF: dict[vocabulary.Entity, tuple[str, ...]] = {
    "lead": ("lead",),
    "partner": ("partner", "pose"),
    "guest": ("guest",),
}
COATS: tuple[str | None, ...] = (None, "striped", "dotted")


@dataclass(frozen=True)
class Sprites:
    """The drawn things of one clip, L layers over T frames; an absent one has alpha 0."""

    shape: Integers  # (L,) place in the atlas
    alpha: Floats  # (L,)
    centre: Floats  # (L, T, 2)
    radius: Floats  # (L, T)
    angle: Floats  # (L, T)
    mirror: Floats  # (L,) 1 or -1
    colours: Floats  # (L, 2, 3) of the body, and of the pattern of its coat
    coat: Integers  # (L,) place in COATS
    flash: Floats  # (L, T) -1 black ... 0 own colour ... 1 white
    light: Floats  # (L, 2) change of brightness per radius


@dataclass(frozen=True)
class Background:
    """A mean colour and drifting gratings: value = mean + sum over g of amplitude * cos(wave . (x, y) + phase)."""

    mean: Floats  # (3,)
    amplitude: Floats  # (G, 3)
    wave: Floats  # (G, 2) radians per frame side
    phase: Floats  # (G, T)


@dataclass(frozen=True)
class Scene:
    """One clip before rendering; `label` is the place of its class in the world's classes."""

    label: int
    sprites: Sprites = field(repr=False)
    background: Background = field(repr=False)

    def boxes(self, size: int) -> dict[str, Boxes]:
        """Return, per attribute, the box (T, 4) of the entity that carries it, in pixels of a size x size frame."""
        of_entity: dict[str, Boxes] = {}
        found = {}
        for slot, attribute in zip(vocabulary.SLOTS.values(), vocabulary.dances()[self.label], strict=True):
            if attribute is not None:
                if slot.entity not in of_entity:
                    of_entity[slot.entity] = np.clip(self._extent(slot.entity) * size, 0, size)
                found[attribute] = of_entity[slot.entity].copy()
        return found

    def _extent(self, entity: vocabulary.Entity) -> Boxes:
        """Return the tight box (T, 4) around all sprites of one entity, in fractions of the frame."""
        parts = np.stack([self._sprite_extent(LAYERS.index(layer)) for layer in SPRITES_OF[entity]])
        return np.concatenate([parts[..., :2].min(0), parts[..., 2:].max(0)], -1)

    def _sprite_extent(self, layer: int) -> Boxes:
        s = self.sprites
        points = shapes.hull(int(s.shape[layer])) * (float(s.mirror[layer]), 1.0)
        cos, sin = np.cos(s.angle[layer])[:, None], np.sin(s.angle[layer])[:, None]
        turned = np.stack([cos * points[:, 0] - sin * points[:, 1], sin * points[:, 0] + cos * points[:, 1]], -1)
        placed = s.centre[layer][:, None] + s.radius[layer][:, None, None] * turned
        return np.concatenate([placed.min(1), placed.max(1)], -1)
