"""CSV files: read with their line numbers, and written; with a list of all that is wrong in them."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from whytube import checks
from whytube.errors import DataError, printable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

# Finding the nearest name takes long among thousands; after so many the messages go without.
SUGGESTIONS = 50
# What tells two messages of one kind apart: quoted names, paths, numbers.
PARTICULARS = re.compile(r"'[^']*'|\"[^\"]*\"|\S*/\S*|-?[0-9][0-9.,]*")


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: an error makes the data unusable, a warning says what was decided about it.

    file: relative to the folder of the data where it lies in there. line: of a CSV file, from 1.
    """

    level: Literal["error", "warning"]
    file: str
    line: int | None
    message: str

    @property
    def place(self) -> str:
        """Where it is, as editors understand it."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    @property
    def kind(self) -> tuple[str, str]:
        """Level and first sentence without its names and numbers: alike for all problems of one kind.

        Nor does it have what stands in brackets at the end, which only some have.
        """
        return self.level, PARTICULARS.sub("...", self.message).split(". ")[0].split(" (")[0]

    def __str__(self) -> str:
        return printable(f"{self.place}: {self.level}: {self.message}")


def grouped(problems: Iterable[Problem]) -> list[str]:
    """Return one line per kind of problem: the first as it is, then how many more there are and where the next are."""
    kinds: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        kinds.setdefault(problem.kind, []).append(problem)
    lines = []
    for first, *others in kinds.values():
        some = listed([other.place for other in others], 3)
        lines.append(f"{first} (and {len(others)} more like it: {some})" if others else str(first))
    return lines


@dataclass
class Problems:
    """What was found wrong so far in the data under `folder`."""

    folder: Path
    found: list[Problem] = field(default_factory=list)
    _unknown: dict[tuple[str, str], str] = field(default_factory=dict, repr=False)

    def error(self, file: Path, message: str, line: int | None = None) -> None:
        """Note what makes the data unusable."""
        self.found.append(Problem("error", self._shown(file), line, message))

    def warn(self, file: Path, message: str, line: int | None = None) -> None:
        """Note what the user should know and the data can be used with."""
        self.found.append(Problem("warning", self._shown(file), line, message))

    def unknown(self, kind: str, name: str, known: Collection[str]) -> str:
        """Return the message for an unknown name, with the nearest known one."""
        key = (kind, name)
        if key not in self._unknown:
            few = len(self._unknown) < SUGGESTIONS
            self._unknown[key] = str(checks.unknown_name(kind, name, known)) if few else f"unknown {kind} {name!r}"
        return self._unknown[key]

    def raise_errors(self, what: str) -> None:
        """Raise the first five kinds of errors as one DataError, if there are any."""
        errors = [problem for problem in self.found if problem.level == "error"]
        if not errors:
            return
        lines = grouped(errors)
        message = [f"{what} cannot be used:", *(f"  {line}" for line in lines[:5])]
        if len(lines) > 5:
            message.append(f"  ... and {len(lines) - 5} more kinds")
        if len(errors) > len(lines[:5]):
            message.append(f"  {len(errors)} errors in all; `whytube data check --json` lists them")
        raise DataError(*message)

    def _shown(self, file: Path) -> str:
        return (file.relative_to(self.folder) if file.is_relative_to(self.folder) else file).as_posix()


class Row(dict[str, str]):
    """One line of a Sheet: column -> text, without blanks around it."""

    def __init__(self, sheet: Sheet, line: int, cells: list[str]) -> None:
        super().__init__(zip(sheet.columns, cells, strict=False))
        self.sheet, self.line = sheet, line

    def flag(self, column: str, *, blank: bool = False) -> bool | None:
        """Read a 0 or a 1; anything else is None, and an error unless it is empty and may be `blank`."""
        text = self[column]
        if text not in ("0", "1") and not (blank and not text):
            self.error(f"{column!r} must be 0 or 1, got {text!r}")
        return {"0": False, "1": True}.get(text)

    def error(self, message: str) -> None:
        """Note what is wrong in this line."""
        self.sheet.problems.error(self.sheet.path, message, self.line)


class Sheet:
    """A CSV file (UTF-8, commas) whose header has the `required` columns, in any order.

    Columns that are neither required nor optional are kept with `free`, else warned about. The rows are read from the
    file as they are asked for, once; those with a wrong number of cells are reported and left out. A file that is not
    there, or of no use, has no columns and no rows.
    """

    def __init__(
        self,
        path: Path,
        problems: Problems,
        *,
        required: tuple[str, ...],
        optional: tuple[str, ...] = (),
        free: bool = False,
    ) -> None:
        self.path, self.problems = path, problems
        self._lines = self._read_lines()
        self.columns = self._read_header(required, None if free else required + optional)

    def __iter__(self) -> Iterator[Row]:
        for line, cells in self._lines if self.columns else ():
            row = Row(self, line, cells)
            if len(cells) == len(self.columns):
                yield row
            else:
                row.error(f"expected {len(self.columns)} cells as in the header, got {len(cells)}")

    def _read_lines(self) -> Iterator[tuple[int, list[str]]]:
        """Yield line number and stripped cells of every line that is not blank, up to where the file is no CSV."""
        if not self.path.is_file():
            return
        try:
            with self.path.open(encoding="utf-8-sig", newline="") as file:
                reader = csv.reader(file, strict=True)
                for raw in reader:
                    cells = [cell.strip() for cell in raw]
                    if any(cells):
                        yield reader.line_num, cells
        except UnicodeDecodeError:
            self.problems.error(self.path, "the file is not UTF-8 text. Save it as CSV in UTF-8")
        except (OSError, csv.Error) as error:
            self.problems.error(self.path, f"the file cannot be read as CSV: {error}")

    def _read_header(self, required: tuple[str, ...], known: tuple[str, ...] | None) -> tuple[str, ...]:
        before = len(self.problems.found)
        line, columns = next(self._lines, (None, []))
        if line is None and self.path.is_file() and len(self.problems.found) == before:
            self.problems.error(self.path, f"the file is empty; expected a header with {','.join(required)}")
        if line is None:
            return ()
        if not set(required) <= set(columns):
            hint = ". Separate columns by commas, not semicolons" if len(columns) == 1 and ";" in columns[0] else ""
            got = listed(columns, 8, ",")
            self.problems.error(self.path, f"the header must have {','.join(required)}, got {got}{hint}", line)
        for column in sorted({column for column in columns if columns.count(column) > 1 or not column}):
            what = f"the column {column!r} comes twice" if column else "a column has no name"
            self.problems.error(self.path, f"{what}. Name every column once in the header", line)
        if len(self.problems.found) > before:
            return ()
        for column in columns:
            if known is not None and column not in known:
                text = self.problems.unknown("column", column, known)
                self.problems.warn(self.path, f"left out: {text}", line)
        return tuple(columns)


def write_rows(path: Path, rows: Iterable[Iterable[str | int]]) -> None:
    """Write a CSV file in UTF-8; the first row is its header."""
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    except UnicodeEncodeError as error:
        raise DataError(f"cannot write {path.name}: a name in it is not UTF-8: {error.object}. Rename it") from None


def listed(names: Sequence[str], most: int, comma: str = ", ") -> str:
    """Write the first `most` names, and dots where there are more."""
    return comma.join([*names[:most], *(["..."] if len(names) > most else [])])
