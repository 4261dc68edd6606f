"""Attribute tables: which class has which attribute.

Shipped, each as plain CSV beside this file with its notes:

- olympic_sports: 16 classes x 40 attributes, published (Liu, Kuipers, Savarese, "Recognizing Human Actions by
  Attributes", CVPR 2011).
- ucf101_24: 24 classes x 39 attributes; the attributes are the paper's list, the zeros and ones are this project's.
- jhmdb: 21 classes x 30 attributes; attributes, zeros and ones, and the parts that show them are this project's.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from whytube import checks
from whytube.data.rows import Problems, Sheet

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

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
        >>> [name for name, has in zip(table.attribute_names, table.row("snatch")) if has][-1]
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
    sidecar = {what: path.with_name(f"{path.stem}_{what}.csv") for what in ("notes", "parts")}
    notes = {row["class"]: row["note"] for row in Sheet(sidecar["notes"], problems, required=("class", "note"))}
    parts: dict[str, tuple[str, ...]] = {}
    for row in Sheet(sidecar["parts"], problems, required=("attribute", "part")):
        parts[row["attribute"]] = (*parts.get(row["attribute"], ()), row["part"])
    for attribute in parts:
        if table is not None and attribute not in table.attribute_names:
            problems.error(sidecar["parts"], problems.unknown("attribute", attribute, table.attribute_names))
    problems.raise_errors(f"the table {path}")
    assert table is not None
    return replace(table, about=notes.pop(WHOLE, ""), notes=notes, parts=parts)


def read_class_rows(path: Path, problems: Problems) -> AttributeTable | None:
    """Read the rows of a class x attribute table, noting what is wrong; None where the file is of no use."""
    sheet = Sheet(path, problems, required=("class",), free=True)
    attribute_names = tuple(column for column in sheet.columns if column != "class")
    lines: dict[str, int] = {}
    values: list[list[bool]] = []
    same: dict[tuple[bool, ...], str] = {}
    for row in sheet:
        name = row["class"]
        if not name or name in lines:
            where = f"class {name!r} has a row already, in line {lines[name]}" if name else "the class has no name"
            row.error(f"{where}. Keep one row per class")
            continue
        lines[name] = row.line
        values.append([bool(row.flag(attribute)) for attribute in attribute_names])
        twin = same.setdefault(tuple(values[-1]), name)
        if twin != name:
            text = f"{name!r} has the same attributes as {twin!r}, so that no attribute tells them apart"
            problems.warn(path, f"{text}. Add an attribute that one of them lacks", row.line)
    if sheet.columns and not (attribute_names and values):
        problems.error(path, "expected at least one class and one attribute: class,<attribute>,...")
    if not attribute_names or not values:
        return None
    return AttributeTable(tuple(lines), attribute_names, torch.tensor(values, dtype=torch.bool))
