"""The vocabulary of the world: attributes, classes, and which class has which attributes.

The classes stand on a wheel. A class fills seven slots (who leads and how it moves, who partners, ...), and walking
round the wheel one slot changes at a time. So the two neighbours of every class are hard negatives that differ from
it in one attribute or one entity, every attribute belongs to several classes, and every attribute decides some pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

Entity: TypeAlias = Literal["lead", "partner", "guest"]
Dance: TypeAlias = tuple[str | None, ...]


@dataclass(frozen=True)
class Slot:
    """One place in a class description; `values` follow each other round the wheel, None is "no attribute"."""

    entity: Entity
    values: tuple[str | None, ...]


SLOTS: dict[str, Slot] = {
    "lead": Slot("lead", ("with star", "with fish", "with clover", "with mushroom")),
    "step": Slot("lead", ("spinning", "pulsing", "bouncing", "swaying")),
    "coat": Slot("lead", ("striped", None, "dotted")),
    "partner": Slot("partner", ("with heart", "with moon", "with bow tie", "with bolt")),
    "gait": Slot("partner", ("circling", "rocking", "flashing", "trembling")),
    "pose": Slot("partner", ("in bubble", "under umbrella", "on wheels")),
    "guest": Slot("guest", (None, "with cat")),
}

# Each name is a class; beside it stands the slot that changes on the way to the next one.
WHEEL: tuple[tuple[str, str], ...] = (
    ("bolero", "lead"),
    ("can-can", "gait"),
    ("cha-cha", "pose"),
    ("charleston", "partner"),
    ("fandango", "step"),
    ("flamenco", "coat"),
    ("foxtrot", "lead"),
    ("gavotte", "gait"),
    ("hornpipe", "guest"),
    ("jig", "partner"),
    ("jive", "step"),
    ("lindy hop", "coat"),
    ("mambo", "lead"),
    ("mazurka", "gait"),
    ("minuet", "pose"),
    ("paso doble", "partner"),
    ("polka", "step"),
    ("quickstep", "coat"),
    ("reel", "lead"),
    ("rumba", "gait"),
    ("samba", "pose"),
    ("tango", "partner"),
    ("twist", "step"),
    ("waltz", "guest"),
)

CLASSES: tuple[str, ...] = tuple(name for name, _ in WHEEL)
ATTRIBUTES: tuple[str, ...] = tuple(value for slot in SLOTS.values() for value in slot.values if value is not None)


@cache
def dances() -> tuple[Dance, ...]:
    """Return, for every class, the value of each slot in the order of SLOTS."""
    turns = dict.fromkeys(SLOTS, 0)
    rows = []
    for _, changing in WHEEL:
        rows.append(tuple(slot.values[turns[name] % len(slot.values)] for name, slot in SLOTS.items()))
        turns[changing] += 1
    return tuple(rows)
