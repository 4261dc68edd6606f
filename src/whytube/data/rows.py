"""CSV files read with their line numbers, and the list of what is wrong in them."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from whytube import checks
from whytube.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

Level: TypeAlias = Literal["error", "warning"]

# Finding the nearest name takes long among thousands; after so many the messages go without.
SUGGESTIONS = 50
# What tells two messages of one kind apart: quoted names, paths, numbers.
PARTICULARS = re.compile(r"'[^']*'|\"[^\"]*\"|\S*/\S*|-?[0-9][0-9.,]*")


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: an error makes the data unusable, a warning says what was decided about it.

    file: relative to the folder of the data where it lies in there. line: of a CSV file, from 1.
    """

    level: Level
    file: str
    line: int | None
    message: str

    @property
    def place(self) -> str:
        """Where it is, as editors understand it."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    @property
    def kind(self) -> tuple[str, str]:
        """Level and first sentence without its names and numbers: alike for all problems of one kind."""
        return self.level, PARTICULARS.sub("...", self.message).split(". ")[0]

    def __str__(self) -> str:
        return f"{self.place}: {self.level}: {self.message}"


def grouped(problems: Iterable[Problem], *, places: int = 3) -> list[str]:
    """Word every kind of problem once: the first as it is, then how many more there are and where the next ones are."""
    kinds: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        kinds.setdefault(problem.kind, []).append(problem)
    lines = []
    for first, *others in kinds.values():
        some = ", ".join(other.place for other in others[:places]) + (", ..." if len(others) > places else "")
        lines.append(f"{first} (and {len(others)} more like it: {some})" if others else str(first))
    return lines


@dataclass
class Problems:
    """What was found wrong so far in the data under `folder`."""

    folder: Path
    found: list[Problem] = field(default_factory=list)
    _unknown: dict[tuple[str, str], str] = field(default_factory=dict, repr=False)

    @property
    def errors(self) -> list[Problem]:
        """Those that make the data unusable."""
        return [problem for problem in self.found if problem.level == "error"]

    def error(self, file: Path, message: str, line: int | None = None) -> None:
        """Note what makes the data unusable."""
        self.found.append(Problem("error", self._shown(file), line, message))

    def warn(self, file: Path, message: str, line: int | None = None) -> None:
        """Note what the user should know and the data can be used with."""
        self.found.append(Problem("warning", self._shown(file), line, message))

    def unknown(self, kind: str, name: str, known: Collection[str]) -> str:
        """Word an unknown name, with the nearest known one."""
        key = (kind, name)
        if key not in self._unknown:
            few = len(self._unknown) < SUGGESTIONS
            self._unknown[key] = str(checks.unknown_name(kind, name, known)) if few else f"unknown {kind} {name!r}"
        return self._unknown[key]

    def raise_errors(self, what: str, *, shown: int = 5) -> None:
        """Raise the first few errors as one DataError, if there are any."""
        errors = self.errors
        if not errors:
            return
        message = "\n".join([f"{what} cannot be used:", *(f"  {problem}" for problem in errors[:shown])])
        if len(errors) > shown:
            message += f"\n  ... and {len(errors) - shown} more; `whytube data check` lists them all"
        raise DataError(message)

    def _shown(self, file: Path) -> str:
        return (file.relative_to(self.folder) if file.is_relative_to(self.folder) else file).as_posix()


class Row(NamedTuple):
    """One line of a CSV file: column -> text, stripped of blanks around it."""

    line: int
    cells: dict[str, str]


class Sheet(NamedTuple):
    """A CSV file with a header; the rows come from the file as they are asked for, once."""

    path: Path
    columns: tuple[str, ...]
    rows: Iterator[Row]


def read_sheet(
    path: Path, problems: Problems, *, required: tuple[str, ...], optional: tuple[str, ...] = (), free: bool = False
) -> Sheet | None:
    """Read a CSV file (UTF-8, commas) whose header has the `required` columns, in any order.

    Columns that are neither required nor optional are kept with `free`, else warned about. Rows with a wrong number of
    cells are reported and left out; None where nothing of the file can be used.
    """
    lines, before = _lines(path, problems), len(problems.found)
    first = next(lines, None)
    if first is None:
        if len(problems.found) == before:
            problems.error(path, f"the file is empty; expected a header with {','.join(required)}")
        return None
    number, columns = first
    if not _check_header(path, number, columns, problems, required=required):
        return None
    if not free:
        for column in columns:
            if column not in required + optional:
                text = problems.unknown("column", column, required + optional)
                problems.warn(path, f"left out: {text}", number)
    return Sheet(path, tuple(columns), _rows(path, columns, lines, problems))


def _lines(path: Path, problems: Problems) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and stripped cells of every line that is not blank, up to where the file is no CSV."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for raw in reader:
                cells = [cell.strip() for cell in raw]
                if any(cells):
                    yield reader.line_num, cells
    except UnicodeDecodeError:
        problems.error(path, "the file is not UTF-8 text. Save it as CSV in UTF-8")
    except (OSError, csv.Error) as error:
        problems.error(path, f"the file cannot be read as CSV: {error}")


def _check_header(path: Path, line: int, columns: list[str], problems: Problems, *, required: tuple[str, ...]) -> bool:
    missing = [column for column in required if column not in columns]
    if missing:
        hint = ". Separate columns by commas, not semicolons" if len(columns) == 1 and ";" in columns[0] else ""
        got = ",".join(columns[:8]) + (",..." if len(columns) > 8 else "")
        problems.error(path, f"the header must have {','.join(required)}, got {got}{hint}", line)
    twice = sorted({column for column in columns if columns.count(column) > 1 or not column})
    for column in twice:
        what = f"the column {column!r} comes twice" if column else "a column has no name"
        problems.error(path, f"{what}. Name every column once in the header", line)
    return not missing and not twice


def _rows(path: Path, columns: list[str], lines: Iterator[tuple[int, list[str]]], problems: Problems) -> Iterator[Row]:
    for line, cells in lines:
        if len(cells) != len(columns):
            problems.error(path, f"expected {len(columns)} cells as in the header, got {len(cells)}", line)
        else:
            yield Row(line, dict(zip(columns, cells, strict=True)))
