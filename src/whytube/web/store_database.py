"""The SQLite connection behind everything that is kept, and writes to disk that outlast a power cut."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from whytube.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

Row = sqlite3.Row
VERSION = 1
"""Of the tables. A store of another version is refused."""


class Database:
    """One connection, used by one thread at a time. What a transaction wrote is on the disk when its block ends.

    Each part of the store brings its own tables (`CREATE TABLE IF NOT EXISTS`) with `add_tables`.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._connection.row_factory = sqlite3.Row
            for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=5000"):
                self._connection.execute(f"PRAGMA {setting}")
            found = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if found not in (0, VERSION):
                raise DataError(f"{path} was written by another whytube (tables {found}, expected {VERSION})")
            self._connection.execute(f"PRAGMA user_version={VERSION}")
        except sqlite3.Error as error:
            raise DataError(f"cannot use {path} as a store: {error}. Choose another folder with `store`") from error

    def add_tables(self, script: str) -> None:
        """Create tables and indices that are not there yet."""
        with self._lock:
            self._connection.executescript(script)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Change several rows at once, or none."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except sqlite3.Error as error:  # a full disk, say
                self._roll_back()
                raise DataError(f"the server cannot keep this: {error}") from error
            except BaseException:
                self._roll_back()
                raise

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):  # SQLite has done it already
            self._connection.execute("ROLLBACK")

    def all(self, query: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return all rows of a query."""
        with self._lock:
            return self._connection.execute(query, values).fetchall()

    def one(self, query: str, values: Sequence[Any] = ()) -> Row | None:
        """Return the first row of a query, None where there is none."""
        with self._lock:
            row: Row | None = self._connection.execute(query, values).fetchone()
            return row

    def close(self) -> None:
        """Write everything to the main file and close it."""
        with self._lock:
            self._connection.close()


def make_durable(path: Path) -> None:
    """Wait until a file, or a folder's list of names, is on the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
