"""Marks as JSON, for formats that have no place of their own for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whytube.data.formats.track import Mark

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whytube.data.formats.fields import Node


def write_marks(marks: Iterable[Mark]) -> list[dict[str, Any]]:
    """Return a list of objects."""
    return [{"attribute": mark.attribute, "present": mark.present, "annotator": mark.annotator} for mark in marks]


def read_marks(node: Node) -> list[Mark]:
    """Read what `write_marks` wrote; nothing is no marks."""
    found = node.each() if node else ()
    return [
        Mark(mark["attribute"].text(), mark["present"].flag(default=True), mark["annotator"].text()) for mark in found
    ]
