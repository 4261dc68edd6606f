"""Attribute tables: which class has which attribute.

Shipped, each as plain CSV beside this file with its notes:

- olympic_sports: 16 classes x 40 attributes, published (Liu, Kuipers, Savarese, "Recognizing Human Actions by
  Attributes", CVPR 2011).
- ucf101_24: 24 classes x 39 attributes; the words are the paper's list, the zeros and ones are this project's.
- jhmdb: 21 classes x 30 attributes, words, zeros and ones and the parts they name all this project's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from whytube import checks
from whytube.data.rows import Problems, read_sheet

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from whytube.data.rows import Row

__all__ = ["TABLES", "AttributeTable", "read_table"]

HOME = Path(__file__).parent
TABLES = ("jhmdb", "olympic_sports", "ucf101_24")
WHOLE = "*"
"""The class under which a table's notes speak of the table as a whole."""


@dataclass(frozen=True, eq=False)
class AttributeTable:
    """Which class has which attribute: values (C, S) bool.

    notes: class -> why its row is as it is. about: where the table comes from.
    parts: attribute -> labels of the boxes, in the data set's own annotation, that show it.
    """

    classes: tuple[str, ...]
    attribute_names: tuple[str, ...]
    values: torch.Tensor = field(repr=False)
    notes: Mapping[str, str] = field(default_factory=dict, repr=False)
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    about: str = ""

    def __post_init__(self) -> None:
        checks.check_tensor(self.values, "values", "(C, S)", ndim=2, floating=False)
        expected = (len(self.classes), len(self.attribute_names))
        if self.values.shape != expected or self.values.dtype != torch.bool:
            got = f"{self.values.dtype} of shape {checks.shape_of(self.values)}"
            raise checks.fail("values", f"bool of shape {expected}, classes x attributes", got)

    def row(self, name: str) -> torch.Tensor:
        """Return which attributes a class has, (S,) bool."""
        if name not in self.classes:
            raise checks.unknown_name("class", name, self.classes)
        return self.values[self.classes.index(name)]


def read_table(name_or_path: str | os.PathLike[str]) -> AttributeTable:
    """Read a shipped table by its name, or a CSV file with the header `class,<attribute>,...` and 0 or 1 in its cells.

    Beside `X.csv` there may be `X_notes.csv` (class,note; the class * speaks of the whole table) and `X_parts.csv`
    (attribute,part; an attribute may have several rows).

    Example:
        >>> table = read_table("olympic_sports")
        >>> tuple(table.values.shape)
        (16, 40)
        >>> [word for word, yes in zip(table.attribute_names, table.row("snatch")) if yes][-1]
        'Open Arm Lift'
    """
    shipped = isinstance(name_or_path, str) and name_or_path in TABLES
    path = HOME / f"{name_or_path}.csv" if shipped else Path(name_or_path)
    if not path.is_file():
        if path.suffix == "":
            raise checks.unknown_name("table", str(name_or_path), TABLES)
        raise checks.fail("name_or_path", f"one of {', '.join(TABLES)} or a CSV file", f"{path}, which is no file")
    problems = Problems(path.parent)
    table = read_class_rows(path, problems)
    notes, parts = _read_notes(path, problems), _read_parts(path, problems)
    if table is not None:
        for word in parts:
            if word not in table.attribute_names:
                problems.error(_beside(path, "parts"), problems.unknown("attribute", word, table.attribute_names))
    problems.raise_errors(f"the table {path}")
    assert table is not None
    return AttributeTable(
        table.classes, table.attribute_names, table.values, notes=notes, parts=parts, about=notes.pop(WHOLE, "")
    )


def read_class_rows(path: Path, problems: Problems) -> AttributeTable | None:
    """Read the rows of a class x attribute table, noting what is wrong; None where the file is of no use."""
    sheet = read_sheet(path, problems, required=("class",), free=True)
    if sheet is None:
        return None
    words = tuple(column for column in sheet.columns if column != "class")
    lines: dict[str, int] = {}
    values: list[list[bool]] = []
    same: dict[tuple[bool, ...], str] = {}
    for row in sheet.rows:
        name = row.cells["class"]
        if not name or name in lines:
            where = f"class {name!r} has a row already, in line {lines[name]}" if name else "the class has no name"
            problems.error(path, f"{where}. Keep one row per class", row.line)
            continue
        lines[name] = row.line
        values.append([read_flag(row, word, path, problems) is True for word in words])
        twin = same.setdefault(tuple(values[-1]), name)
        if twin != name:
            text = f"{name!r} has the same attributes as {twin!r}, so that no attribute tells them apart"
            problems.warn(path, f"{text}. Add an attribute that one of them lacks", row.line)
    if not words or not values:
        problems.error(path, "expected at least one class and one attribute: class,<attribute>,...")
        return None
    return AttributeTable(tuple(lines), words, torch.tensor(values, dtype=torch.bool))


def read_flag(row: Row, column: str, path: Path, problems: Problems, *, blank: bool = False) -> bool | None:
    """Read a 0 or a 1; with `blank` an empty cell is None."""
    text = row.cells[column]
    if text not in ("0", "1") and not (blank and not text):
        problems.error(path, f"{column!r} must be 0 or 1, got {text!r}", row.line)
    return None if text not in ("0", "1") else text == "1"


def _beside(path: Path, what: str) -> Path:
    return path.with_name(f"{path.stem}_{what}.csv")


def _read_notes(path: Path, problems: Problems) -> dict[str, str]:
    place = _beside(path, "notes")
    sheet = read_sheet(place, problems, required=("class", "note")) if place.is_file() else None
    return {row.cells["class"]: row.cells["note"] for row in sheet.rows} if sheet else {}


def _read_parts(path: Path, problems: Problems) -> dict[str, tuple[str, ...]]:
    place = _beside(path, "parts")
    sheet = read_sheet(place, problems, required=("attribute", "part")) if place.is_file() else None
    parts: dict[str, tuple[str, ...]] = {}
    for row in sheet.rows if sheet else []:
        parts[row.cells["attribute"]] = (*parts.get(row.cells["attribute"], ()), row.cells["part"])
    return parts
