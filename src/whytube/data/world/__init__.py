"""World: short clips of dancing shapes in which it is known why a clip is of class A and not of class B."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from operator import index as as_int
from typing import TYPE_CHECKING, ClassVar, SupportsIndex

import numpy as np
import torch

from whytube import checks
from whytube.data.source import SPLITS, PlainBatch
from whytube.data.world import sampling, vocabulary
from whytube.data.world.render import render
from whytube.data.world.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from whytube.data.world.scene import Boxes

__all__ = ["Batch", "Scene", "World"]


@dataclass(frozen=True, eq=False)
class Batch(PlainBatch):
    """Clips with their scenes."""

    scenes: tuple[Scene, ...] = field(repr=False)

    @cached_property
    def boxes(self) -> list[dict[str, Boxes]]:
        """Per clip, attribute -> box (T, 4) of the entity that carries it; worked out when first asked for."""
        return [scene.boxes(self.clips.shape[-1]) for scene in self.scenes]


@dataclass(frozen=True)
class World:
    """Clips of `frames` frames of `size` x `size` pixels; clip `index` of a split depends on `seed` alone.

    Example:
        >>> world = World(size=64)
        >>> world.separating("waltz", "bolero")
        (('with cat',), ())
        >>> world.hard_negatives("waltz")
        ('bolero', 'twist')
        >>> world.batch("train", range(4)).clips.shape
        torch.Size([4, 3, 16, 64, 64])
    """

    classes: ClassVar[tuple[str, ...]] = vocabulary.CLASSES
    """The C classes: dances, each a neighbour of the next."""
    attribute_names: ClassVar[tuple[str, ...]] = vocabulary.ATTRIBUTES
    """The S attributes: objects, motions, coats and poses."""

    size: int = 112
    frames: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        checks.check_int(self.size, "size", 32)
        checks.check_int(self.frames, "frames", 2)
        checks.check_int(self.seed, "seed", 0)

    @property
    def table(self) -> torch.Tensor:
        """Which class has which attribute: bool (C, S)."""
        return _table().clone()

    @property
    def contents(self) -> str:
        """What decides its clips: size, frames and seed."""
        return repr(self)

    def separating(self, a: str, b: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the attributes of class `a` that `b` lacks, and those of `b` that `a` lacks."""
        first, second = (vocabulary.dances()[_label(name)] for name in (a, b))
        return tuple(x for x in first if x and x not in second), tuple(y for y in second if y and y not in first)

    def hard_negatives(self, a: str) -> tuple[str, ...]:
        """Return the classes that differ from `a` in exactly one attribute of one entity, or in one entity."""
        mine, others = vocabulary.dances()[_label(a)], zip(self.classes, vocabulary.dances(), strict=True)
        return tuple(b for b, dance in others if sum(x != y for x, y in zip(mine, dance, strict=True)) == 1)

    def scene(self, split: str, index: SupportsIndex, *, danced_as: str | None = None) -> Scene:
        """Return clip `index` before rendering; classes come in shuffled rounds of all C.

        With `danced_as` it is the same clip as that class would dance it: places, sizes, colours, phases, pebbles and
        background stay, and only what separates the two classes changes.
        """
        stream = (self.seed, SPLITS.index(checks.check_choice(split, "split", SPLITS)))
        number = checks.check_int(as_int(index), "index", 0)
        turn, place = divmod(number, len(self.classes))
        label = int(_round(*stream, turn)[place]) if danced_as is None else _label(danced_as)
        chance = sampling.draw(np.random.default_rng([*stream, number, 0]), self.frames)
        return sampling.compose(chance, label)

    def count(self, split: str) -> None:
        """Return None: no split of the world has an end."""
        checks.check_choice(split, "split", SPLITS)

    def boxed(self, split: str) -> None:
        """Return None: every clip has boxes of its attributes."""
        checks.check_choice(split, "split", SPLITS)

    def batch(self, split: str, indices: Iterable[SupportsIndex], device: torch.device | str = "cpu") -> Batch:
        """Render clips; the same index gives the same clip in any batch."""
        return self.render((self.scene(split, index) for index in indices), device)

    def render(self, scenes: Iterable[Scene], device: torch.device | str = "cpu") -> Batch:
        """Render scenes that are already at hand."""
        shown, target = tuple(scenes), torch.device(device)
        labels = torch.tensor([scene.label for scene in shown], dtype=torch.long)
        clips = render(shown, frames=self.frames, size=self.size, device=target)
        return Batch(clips, labels.to(target), _table()[labels].to(target), shown)


def _label(name: str) -> int:
    if name not in vocabulary.CLASSES:
        raise checks.unknown_name("class", name, vocabulary.CLASSES)
    return vocabulary.CLASSES.index(name)


@cache
def _table() -> torch.Tensor:
    return torch.tensor([[attribute in dance for attribute in vocabulary.ATTRIBUTES] for dance in vocabulary.dances()])


@lru_cache(maxsize=1024)
def _round(seed: int, split: int, turn: int) -> NDArray[np.int64]:
    """Return the order in which one round of all classes comes."""
    return np.random.default_rng([seed, split, turn, 1]).permutation(len(vocabulary.CLASSES))
