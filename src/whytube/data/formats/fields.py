"""JSON that other tools wrote: values asked for by name and kind, and errors that say where the file is wrong."""

from __future__ import annotations

import json
import math
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

from whytube.checks import fail
from whytube.documents import parse_json
from whytube.errors import DataError
from whytube.files import LARGEST

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST_NUMBER = 1e15
"""No frame, pixel, second or id of an annotation comes near it."""


class Node:
    """A value of a JSON file and its place in it, as `annotations[2].bbox`; keys that nobody asks for may be there."""

    def __init__(self, value: Any, place: str = "") -> None:
        self.value, self.place = value, place or "the file"

    def __getitem__(self, key: str) -> Node:
        """Give what an object has under a key; a Node of None where it has nothing."""
        self.require(isinstance(self.value, dict), "an object")
        return Node(self.value.get(key), key if self.place == "the file" else f"{self.place}.{key}")

    def __bool__(self) -> bool:
        return self.value is not None

    def require(self, fits: bool, expected: str) -> None:
        """Fail unless it fits."""
        if not fits:
            raise fail(self.place, expected, "nothing" if self.value is None else short(self.value))

    def each(self) -> Iterator[Node]:
        """Give the parts of a list."""
        self.require(isinstance(self.value, list), "a list")
        start = "" if self.place == "the file" else self.place
        return (Node(part, f"{start}[{at}]") for at, part in enumerate(self.value))

    def text(self) -> str:
        """Require text."""
        self.require(isinstance(self.value, str), "text")
        return str(self.value)

    def number(self) -> float:
        """Require a finite number."""
        fits = isinstance(self.value, (int, float)) and not isinstance(self.value, bool)
        self.require(fits and abs(self.value) < LARGEST_NUMBER and math.isfinite(self.value), "a finite number")
        return float(self.value)

    def integer(self, low: int = 0) -> int:
        """Require an integer of at least `low`; 12.0 is one, since some tools write all numbers so."""
        number = self.number()
        self.require(number == int(number) and number >= low, f"an integer of at least {low}")
        return int(number)

    def flag(self, *, default: bool) -> bool:
        """Require true or false; nothing is the default."""
        self.require(self.value is None or isinstance(self.value, bool), "true or false")
        return default if self.value is None else bool(self.value)

    def size(self) -> tuple[int, int]:
        """Require [height, width]."""
        sides = [side.integer(1) for side in self.each()]
        self.require(len(sides) == 2, "[height, width]")
        return sides[0], sides[1]


def parse(data: bytes) -> Node:
    """Read JSON; DataError where it is none, too large or too deep."""
    if len(data) > LARGEST:
        raise DataError(f"more than {LARGEST >> 20} MiB. Split it")
    try:
        return Node(parse_json(data))
    except ValueError as problem:
        raise DataError(f"cut off, or not JSON ({problem})") from problem


def dump(value: Any, *, indent: int | None = 1) -> str:
    """Write JSON: every float as its shortest form that reads back as the same float."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent) + "\n"
