"""Models that were taught, as rows of SQLite and folders beside it, and which of them answers.

    taught/ID/    explainer.safetensors and base.json, see teaching.py

A row is written once its folder is on the disk. Folders without a row, of a teaching that was killed, are removed at
the next start.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whytube.errors import DataError
from whytube.files import make_folder
from whytube.web.store import now
from whytube.web.store_database import make_durable

if TYPE_CHECKING:
    from pathlib import Path

    from whytube.web.store import Store
    from whytube.web.store_database import Row

TABLES = """
CREATE TABLE IF NOT EXISTS taught (
    id TEXT PRIMARY KEY, base TEXT NOT NULL, created TEXT NOT NULL, report TEXT NOT NULL, description TEXT NOT NULL,
    asked TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS taught_base (base TEXT PRIMARY KEY, description TEXT NOT NULL, chosen TEXT);
"""


@dataclass(frozen=True)
class TaughtRow:
    """A taught model. report: how well its words were placed. description: see `describe` of worker.py.

    asked: the ids of the results "before" and "after"; {} where nothing was asked.
    """

    id: str
    base: str
    created: str
    report: dict[str, Any]
    description: dict[str, Any]
    asked: dict[str, str]


class TaughtStore:
    """Models that were taught from `base`, the one that the server was started with."""

    def __init__(self, store: Store, base: str) -> None:
        self.base = base
        self._database = store.database
        self._database.add_tables(TABLES)
        self.folder = make_folder(store.folder / "taught", error=DataError)
        known = {row["id"] for row in self._database.all("SELECT id FROM taught")}
        for path in self.folder.iterdir():
            if path.name not in known:
                shutil.rmtree(path, ignore_errors=True)

    def path(self, ident: str) -> Path:
        """Folder of a taught model."""
        return self.folder / ident

    def clear(self, ident: str) -> Path:
        """Remove what an earlier try left, and return the folder's place."""
        path = self.path(ident)
        shutil.rmtree(path, ignore_errors=True)
        return path

    def note_base(self, description: dict[str, Any]) -> None:
        """Keep what the base model says of itself, to return to it."""
        with self._database.transaction() as rows:
            text = json.dumps(description, allow_nan=False)
            rows.execute(
                "INSERT INTO taught_base VALUES (?,?,NULL) ON CONFLICT(base) DO UPDATE SET description=?",
                (self.base, text, text),
            )

    def add(self, ident: str, report: dict[str, Any], description: dict[str, Any], asked: dict[str, str]) -> None:
        """Keep a model whose folder was written."""
        path = self.path(ident)
        for file in path.iterdir():
            make_durable(file)
        for folder in (path, self.folder):
            make_durable(folder)
        row = (ident, self.base, now(), *(json.dumps(part, allow_nan=False) for part in (report, description, asked)))
        with self._database.transaction() as rows:
            rows.execute("INSERT OR REPLACE INTO taught VALUES (?,?,?,?,?,?)", row)

    def all(self) -> list[TaughtRow]:
        """Return all that were taught from this base, the newest first."""
        query = "SELECT * FROM taught WHERE base=? ORDER BY created DESC, rowid DESC"
        return [_row(row) for row in self._database.all(query, [self.base])]

    def find(self, ident: str) -> TaughtRow | None:
        """Find one that was taught from this base."""
        row = self._database.one("SELECT * FROM taught WHERE id=? AND base=?", [ident, self.base])
        return None if row is None else _row(row)

    def chosen(self) -> TaughtRow | None:
        """Return the one that was chosen to answer; None for the base."""
        row = self._database.one("SELECT chosen FROM taught_base WHERE base=?", [self.base])
        return None if row is None or row["chosen"] is None else self.find(row["chosen"])

    def choose(self, ident: str | None) -> None:
        """Choose one to answer from now on, or the base."""
        with self._database.transaction() as rows:
            rows.execute("UPDATE taught_base SET chosen=? WHERE base=?", [ident, self.base])

    def base_description(self) -> dict[str, Any] | None:
        """Return what the base said of itself when it was last loaded."""
        row = self._database.one("SELECT description FROM taught_base WHERE base=?", [self.base])
        return None if row is None else dict(json.loads(row["description"]))

    def remove(self, ident: str) -> None:
        """Forget a taught model."""
        with self._database.transaction() as rows:
            rows.execute("DELETE FROM taught WHERE id=?", [ident])
        self.clear(ident)


def _row(row: Row) -> TaughtRow:
    parts = {name: json.loads(row[name]) for name in ("report", "description", "asked")}
    return TaughtRow(row["id"], row["base"], row["created"], **parts)
