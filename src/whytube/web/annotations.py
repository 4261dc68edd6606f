"""Annotations kept in SQLite: for every video an append-only log of actions, each a version.

Nothing in the log is ever changed; it goes with its video. States are folded from it, and kept in memory while their
version is the last. What `append` returned is on the disk, as all that `Database.transaction` writes.
"""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from whytube.web.annotation_actions import Action
from whytube.web.annotation_state import Entry, State, changes_anything, fold

if TYPE_CHECKING:
    from collections.abc import Callable

    from whytube.web.store_database import Database

TABLES = """
CREATE TABLE IF NOT EXISTS annotation_log (
    video TEXT NOT NULL REFERENCES videos(id) ON DELETE CASCADE, version INTEGER NOT NULL, annotator TEXT NOT NULL,
    at REAL NOT NULL, request TEXT, action TEXT NOT NULL, PRIMARY KEY (video, version)) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS annotation_requests ON annotation_log (video, request) WHERE request IS NOT NULL;
CREATE TABLE IF NOT EXISTS annotation_words (
    word TEXT PRIMARY KEY, annotator TEXT NOT NULL, at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS annotation_drafts (
    video TEXT NOT NULL REFERENCES videos(id) ON DELETE CASCADE, model TEXT NOT NULL, predicted TEXT NOT NULL,
    drafts TEXT NOT NULL, PRIMARY KEY (video, model)) WITHOUT ROWID;
"""
KEPT_STATES = 4096

_ACTIONS: TypeAdapter[Action] = TypeAdapter(Action)


class OutOfDateError(Exception):
    """An action was meant for another version than the last; `state` is the current one."""

    def __init__(self, state: State) -> None:
        super().__init__(f"the annotation is at version {state.version} by now")
        self.state = state


class Annotations:
    """The logs of all videos; safe to use from several threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._states: dict[str, State] = {}
        self._folding = threading.Lock()
        self.listeners: list[Callable[[str, int], None]] = []
        """Told of every new version: (video, version), by the thread that wrote it."""
        database.add_tables(TABLES)

    def state(self, video: str) -> State:
        """Return what is known of a video; of one without actions, nothing at version 0."""
        row = self._database.one("SELECT MAX(version) AS last FROM annotation_log WHERE video=?", [video])
        last = 0 if row is None else row["last"] or 0
        with self._folding:
            kept = self._states.get(video)
        if kept is not None and kept.version == last:
            return kept
        state = fold(self.log(video))
        with self._folding:
            if len(self._states) >= KEPT_STATES:
                self._states.clear()
            self._states[video] = state
        return state

    def state_at(self, video: str, version: int) -> State:
        """Return what was known of a video at an earlier version."""
        now = self.state(video)
        return now if now.version == version else fold(e for e in self.log(video) if e.version <= version)

    def states(self) -> dict[str, State]:
        """Return the states of all videos with actions."""
        rows = self._database.all("SELECT DISTINCT video FROM annotation_log")
        return {row["video"]: self.state(row["video"]) for row in rows}

    def append(
        self, video: str, annotator: str, action: Action, *, version: int | None, request: str | None = None
    ) -> State:
        """Add an action to a video's log and return the new state, once it is on the disk.

        version: the one that the action is meant for; another raises OutOfDateError and adds nothing. None for any.
        request: names the action, so that sending it again adds nothing: a client that got no answer may repeat it.
        LookupError where there is no such video.
        """
        text = _ACTIONS.dump_json(action).decode()
        with self._database.transaction() as rows:
            if rows.execute("SELECT 1 FROM videos WHERE id=?", [video]).fetchone() is None:
                raise LookupError(video)
            state = self.state(video)
            known = "SELECT 1 FROM annotation_log WHERE video=? AND request=?"
            if request is not None and rows.execute(known, [video, request]).fetchone() is not None:
                return state
            if version is not None and version != state.version:
                raise OutOfDateError(state)
            if not changes_anything(state, annotator, action):
                return state
            row = (video, state.version + 1, annotator, time.time(), request, text)
            rows.execute("INSERT INTO annotation_log VALUES (?,?,?,?,?,?)", row)
        for listener in self.listeners:
            listener(video, state.version + 1)
        return self.state(video)

    def log(self, video: str, *, after: int = 0) -> list[Entry]:
        """Return the log of a video from a version on."""
        query = "SELECT * FROM annotation_log WHERE video=? AND version>? ORDER BY version"
        return [
            Entry(row["version"], row["annotator"], row["at"], _ACTIONS.validate_json(row["action"]))
            for row in self._database.all(query, [video, after])
        ]

    def words(self) -> list[str]:
        """Return the words that were added by a person, the oldest first."""
        return [row["word"] for row in self._database.all("SELECT word FROM annotation_words ORDER BY at, word")]

    def add_word(self, word: str, annotator: str) -> None:
        """Add a word to those that can be marked and drawn."""
        with self._database.transaction() as rows:
            rows.execute("INSERT OR IGNORE INTO annotation_words VALUES (?,?,?)", (word, annotator, time.time()))

    def remove_word(self, word: str) -> None:
        """Take an added word off the list; what was drawn of it stays."""
        with self._database.transaction() as rows:
            rows.execute("DELETE FROM annotation_words WHERE word=?", [word])

    def keep_draft(self, video: str, model: str, predicted: str, drafts: list[dict[str, Any]]) -> None:
        """Keep what a model proposes for a video: its class, and a tube for every attribute."""
        text = json.dumps(drafts, allow_nan=False)
        with self._database.transaction() as rows:
            if rows.execute("SELECT 1 FROM videos WHERE id=?", [video]).fetchone() is not None:
                rows.execute(
                    "INSERT OR REPLACE INTO annotation_drafts VALUES (?,?,?,?)", (video, model, predicted, text)
                )

    def draft(self, video: str, model: str) -> tuple[str, list[dict[str, Any]]] | None:
        """Return what a model proposed for a video, None where it has not looked."""
        row = self._database.one("SELECT * FROM annotation_drafts WHERE video=? AND model=?", [video, model])
        return None if row is None else (row["predicted"], json.loads(row["drafts"]))

    def drafts(self, model: str) -> dict[str, tuple[str, list[dict[str, Any]]]]:
        """Return what a model proposed, by video: the class, and its tubes."""
        found = self._database.all("SELECT * FROM annotation_drafts WHERE model=?", [model])
        return {row["video"]: (row["predicted"], json.loads(row["drafts"])) for row in found}
