"""Annotations kept in SQLite: for every video an append-only log of actions, each a version.

What was acknowledged is on the disk: the write-ahead log is synced at every commit (synchronous=FULL). Nothing in the
log is ever changed. States are folded from it, and kept while their version is the last.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from whytube.web.annotation_actions import Action
from whytube.web.annotation_state import Entry, State, changes_anything, fold

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

TABLES = """
CREATE TABLE IF NOT EXISTS annotation_log (
    video TEXT NOT NULL, version INTEGER NOT NULL, annotator TEXT NOT NULL, at REAL NOT NULL,
    request TEXT, action TEXT NOT NULL, PRIMARY KEY (video, version)
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS annotation_requests ON annotation_log (video, request) WHERE request IS NOT NULL;
CREATE TABLE IF NOT EXISTS annotation_words (
    word TEXT PRIMARY KEY, annotator TEXT NOT NULL, at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS annotation_drafts (
    video TEXT NOT NULL, model TEXT NOT NULL, predicted TEXT NOT NULL, drafts TEXT NOT NULL,
    PRIMARY KEY (video, model)
) WITHOUT ROWID;
"""
PATIENCE = 30.0
"""Seconds that a writer waits for another."""
KEPT_STATES = 4096

_ACTIONS: TypeAdapter[Action] = TypeAdapter(Action)


class OutOfDateError(Exception):
    """An action was meant for another version than the last; `state` is the current one."""

    def __init__(self, state: State) -> None:
        super().__init__(f"the annotation is at version {state.version} by now")
        self.state = state


class Annotations:
    """The logs of all videos in one SQLite file, which may hold other tables; safe to use from several threads."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._states: dict[str, State] = {}
        self.listeners: list[Callable[[str, int], None]] = []
        """Told of every new version: (video, version), from the thread that wrote it."""
        with self._writing() as database:
            for statement in TABLES.split(";"):
                database.execute(statement)

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            while self._opened:
                self._opened.pop().close()

    def state(self, video: str) -> State:
        """Return what is known of a video; of one without actions, nothing at version 0."""
        return self._state(self._database(), video)

    def states(self) -> dict[str, State]:
        """Return the states of all videos with actions."""
        rows = self._database().execute("SELECT DISTINCT video FROM annotation_log").fetchall()
        return {video: self.state(video) for (video,) in rows}

    def append(
        self, video: str, annotator: str, action: Action, *, version: int | None, request: str | None = None
    ) -> State:
        """Add an action to a video's log and return the new state, once it is on the disk.

        version: the one that the action is meant for; another raises OutOfDateError and adds nothing. None for any.
        request: names the action, so that sending it again adds nothing: a client that got no answer may repeat it.
        """
        text = _ACTIONS.dump_json(action).decode()
        with self._writing() as database:
            state = self._state(database, video)
            if request is not None and self._known(database, video, request):
                return state
            if version is not None and version != state.version:
                raise OutOfDateError(state)
            if not changes_anything(state, annotator, action):
                return state
            row = (video, state.version + 1, annotator, time.time(), request, text)
            database.execute("INSERT INTO annotation_log VALUES (?, ?, ?, ?, ?, ?)", row)
        for listener in self.listeners:
            listener(video, state.version + 1)
        return self.state(video)

    def log(self, video: str, *, after: int = 0) -> list[Entry]:
        """Return the log of a video from a version on."""
        return self._log(self._database(), video, after)

    def forget(self, video: str) -> None:
        """Remove all of a video: it was deleted."""
        with self._writing() as database:
            for table in ("annotation_log", "annotation_drafts"):
                database.execute(f"DELETE FROM {table} WHERE video = ?", (video,))
            self._states.pop(video, None)

    def words(self) -> list[str]:
        """Return words that were added by a person, the oldest first."""
        rows = self._database().execute("SELECT word FROM annotation_words ORDER BY at, word").fetchall()
        return [word for (word,) in rows]

    def add_word(self, word: str, annotator: str) -> None:
        """Add a word to those that can be marked and drawn."""
        with self._writing() as database:
            row = (word, annotator, time.time())
            database.execute("INSERT OR IGNORE INTO annotation_words VALUES (?, ?, ?)", row)

    def remove_word(self, word: str) -> None:
        """Remove an added word from the list; what was drawn of it stays."""
        with self._writing() as database:
            database.execute("DELETE FROM annotation_words WHERE word = ?", (word,))

    def keep_draft(self, video: str, model: str, predicted: str, drafts: list[dict[str, Any]]) -> None:
        """Keep what a model proposes for a video: its class, and a tube for every attribute."""
        with self._writing() as database:
            row = (video, model, predicted, json.dumps(drafts))
            database.execute("INSERT OR REPLACE INTO annotation_drafts VALUES (?, ?, ?, ?)", row)

    def drafts(self, model: str) -> dict[str, tuple[str, list[dict[str, Any]]]]:
        """Return what a model proposed, by video: the class, and its tubes."""
        query = "SELECT video, predicted, drafts FROM annotation_drafts WHERE model = ?"
        rows = self._database().execute(query, (model,)).fetchall()
        return {video: (predicted, json.loads(drafts)) for video, predicted, drafts in rows}

    def _state(self, database: sqlite3.Connection, video: str) -> State:
        """Fold the log, unless the state that is kept is of the last version."""
        query = "SELECT MAX(version) FROM annotation_log WHERE video = ?"
        last = database.execute(query, (video,)).fetchone()[0] or 0
        kept = self._states.get(video)
        if kept is not None and kept.version == last:
            return kept
        state = fold(self._log(database, video, 0))
        if len(self._states) >= KEPT_STATES:
            self._states.clear()
        self._states[video] = state
        return state

    def _log(self, database: sqlite3.Connection, video: str, after: int) -> list[Entry]:
        query = (
            "SELECT version, annotator, at, action FROM annotation_log WHERE video = ? AND version > ? ORDER BY version"
        )
        rows = database.execute(query, (video, after)).fetchall()
        return [Entry(version, by, at, _ACTIONS.validate_json(action)) for version, by, at, action in rows]

    def _known(self, database: sqlite3.Connection, video: str, request: str) -> bool:
        query = "SELECT 1 FROM annotation_log WHERE video = ? AND request = ?"
        return database.execute(query, (video, request)).fetchone() is not None

    def _database(self) -> sqlite3.Connection:
        """Return this thread's connection."""
        found: sqlite3.Connection | None = getattr(self._local, "database", None)
        if found is None:
            found = sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
            found.execute("PRAGMA journal_mode=WAL")
            found.execute("PRAGMA synchronous=FULL")
            self._local.database = found
            with self._lock:
                self._opened.append(found)
        return found

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Hold the file's write lock; commit at the end, or leave nothing."""
        database = self._database()
        database.execute("BEGIN IMMEDIATE")
        try:
            yield database
        except BaseException:
            database.execute("ROLLBACK")
            raise
        database.execute("COMMIT")
