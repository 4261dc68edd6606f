"""The jobs that are kept: what was asked, how it ended, and the key under which the same question is found again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from whytube.web.messages import Job, Progress
from whytube.web.store import now

if TYPE_CHECKING:
    from whytube.web.store_database import Database, Row

TABLES = """
CREATE TABLE IF NOT EXISTS jobs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, key TEXT NOT NULL, kind TEXT NOT NULL, video TEXT,
    parameters TEXT NOT NULL, model TEXT NOT NULL, status TEXT NOT NULL, error TEXT, result TEXT, value TEXT,
    deaths INTEGER NOT NULL DEFAULT 0, created TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS jobs_key ON jobs(key, status);
CREATE INDEX IF NOT EXISTS jobs_video ON jobs(video);
CREATE INDEX IF NOT EXISTS jobs_status ON jobs(status);
"""
KEPT = 10_000
"""Ended jobs that are remembered; results stay."""


@dataclass(frozen=True)
class StoredJob:
    """A row. model: what answers it, chosen when it was asked. deaths: of worker processes while they ran it."""

    id: str
    key: str
    kind: str
    video: str | None
    parameters: dict[str, Any]
    status: str
    error: str | None = None
    result: str | None = None
    value: dict[str, Any] | None = None
    deaths: int = 0
    model: str = ""

    def job(self, *, position: int | None = None, progress: Progress | None = None) -> Job:
        """Write it as the API shows it."""
        told = {name: getattr(self, name) for name in ("id", "kind", "status", "error", "result", "value")}
        return Job(**told, position=position, progress=progress or Progress())


def key_of(kind: str, video: str | None, model: str, parameters: dict[str, Any]) -> str:
    """SHA-256 of everything that decides an answer."""
    text = json.dumps([kind, video, model, parameters], sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


class Jobs:
    """Rows of jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database
        database.add_tables(TABLES)

    def add(self, kind: str, video: str | None, parameters: dict[str, Any], key: str, model: str = "") -> StoredJob:
        """Write down a new job. model: what answers it; "" for whatever answers then."""
        job = StoredJob(uuid4().hex, key, kind, video, parameters, "queued", model=model)
        with self._database.transaction() as rows:
            rows.execute(
                "INSERT INTO jobs (id, key, kind, video, parameters, model, status, created) VALUES (?,?,?,?,?,?,?,?)",
                (job.id, key, kind, video, json.dumps(parameters, allow_nan=False), model, job.status, now()),
            )
        return job

    def find(self, ident: str) -> StoredJob | None:
        """Find a job by its id."""
        row = self._database.one("SELECT * FROM jobs WHERE id=?", [ident])
        return None if row is None else _stored(row)

    def same(self, key: str) -> StoredJob | None:
        """Find a job that has answered this question, or is about to."""
        row = self._database.one(
            "SELECT * FROM jobs WHERE key=? AND status IN ('done','running','queued') ORDER BY seq DESC LIMIT 1", [key]
        )
        return None if row is None else _stored(row)

    def requeue(self) -> list[StoredJob]:
        """Put jobs that were running when the server ended back into the queue; return the queue, oldest first."""
        with self._database.transaction() as rows:
            rows.execute("UPDATE jobs SET status='queued' WHERE status='running'")
            rows.execute(
                "DELETE FROM jobs WHERE status NOT IN ('queued','running') AND seq <= (SELECT max(seq) FROM jobs) - ?",
                [KEPT],
            )
        return [_stored(row) for row in self._database.all("SELECT * FROM jobs WHERE status='queued' ORDER BY seq")]

    def rekey(self, ident: str, key: str, model: str = "") -> None:
        """Write down that a waiting job is now a question to another model."""
        with self._database.transaction() as rows:
            rows.execute("UPDATE jobs SET key=?, model=? WHERE id=?", [key, model, ident])

    def start(self, ident: str) -> None:
        """Write down that a worker has it."""
        with self._database.transaction() as rows:
            rows.execute("UPDATE jobs SET status='running' WHERE id=? AND status='queued'", [ident])

    def died(self, ident: str) -> int:
        """Write down that the worker ended while it ran this job; return how often that happened."""
        with self._database.transaction() as rows:
            rows.execute("UPDATE jobs SET deaths=deaths+1, status='queued' WHERE id=? AND status='running'", [ident])
        job = self.find(ident)
        return 0 if job is None else job.deaths

    def end(
        self,
        ident: str,
        status: str,
        *,
        error: str | None = None,
        result: str | None = None,
        value: dict[str, Any] | None = None,
    ) -> bool:
        """Write down how it ended; False where it had ended before, as by being cancelled."""
        text = None if value is None else json.dumps(value, allow_nan=False)
        with self._database.transaction() as rows:
            found = rows.execute(
                "UPDATE jobs SET status=?, error=?, result=?, value=? WHERE id=? AND status IN ('queued','running')",
                (status, error, result, text, ident),
            ).rowcount
        return bool(found)

    def of_video(self, video: str) -> list[str]:
        """Return the ids of the jobs about a video that have not ended."""
        query = "SELECT id FROM jobs WHERE video=? AND status IN ('queued','running')"
        return [row["id"] for row in self._database.all(query, [video])]

    def forget_video(self, video: str) -> None:
        """Remove all jobs about a video."""
        with self._database.transaction() as rows:
            rows.execute("DELETE FROM jobs WHERE video=?", [video])


def _stored(row: Row) -> StoredJob:
    fields = {
        name: row[name] for name in ("id", "key", "kind", "video", "model", "status", "error", "result", "deaths")
    }
    value = None if row["value"] is None else json.loads(row["value"])
    return StoredJob(**fields, parameters=json.loads(row["parameters"]), value=value)
