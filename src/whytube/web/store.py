"""What the server keeps: videos and results, as rows of SQLite and files beside it.

    store.sqlite
    incoming/            what is being received; emptied at every start
    videos/ID/           original, play.mp4 and clip-*.npz, see decoding.py
    results/ID/          overlay.mp4, heat.mp4, masked-*.mp4, report.html: made when asked for

A row is written after its files, and both are on the disk before anybody is told. Ids come from SQLite alone: nothing
of a request becomes part of a path.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from whytube.errors import DataError
from whytube.files import make_folder
from whytube.web.messages import Video
from whytube.web.store_database import Database, Row, make_durable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TABLES = """
CREATE TABLE IF NOT EXISTS videos (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, frames INTEGER NOT NULL, fps REAL NOT NULL, duration REAL NOT NULL,
    width INTEGER NOT NULL, height INTEGER NOT NULL, created TEXT NOT NULL, bytes INTEGER NOT NULL, hash TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS results (
    id TEXT PRIMARY KEY, video TEXT NOT NULL REFERENCES videos(id) ON DELETE CASCADE, document TEXT NOT NULL,
    created TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS results_video ON results(video);
CREATE TABLE IF NOT EXISTS examples (
    name TEXT PRIMARY KEY, video TEXT NOT NULL REFERENCES videos(id) ON DELETE CASCADE);
"""


def now() -> str:
    """Return the time as it stands in rows and answers."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Store:
    """Videos and results in a folder that one server has for itself."""

    def __init__(self, folder: Path) -> None:
        self.folder = make_folder(folder, error=DataError)
        self._claim = _claimed(folder)
        self.incoming, self.videos, self.results = (
            make_folder(folder / name, error=DataError) for name in ("incoming", "videos", "results")
        )
        self.database = Database(folder / "store.sqlite")
        self.database.add_tables(TABLES)
        self._adding = threading.Lock()
        self._sweep()

    def _sweep(self) -> None:
        """Remove what a killed server left half written."""
        for path in self.incoming.iterdir():
            _remove(path)
        for folder, table in ((self.videos, "videos"), (self.results, "results")):
            known = {row["id"] for row in self.database.all(f"SELECT id FROM {table}")}
            for path in folder.iterdir():
                if path.name not in known:
                    _remove(path)
                for part in path.glob(".*.part"):
                    _remove(part)

    def close(self) -> None:
        """Close the database and let others have the folder."""
        self.database.close()
        os.close(self._claim)

    @contextmanager
    def receiving(self) -> Iterator[Path]:
        """Give a new folder for what is being received; whatever is still in it at the end is removed."""
        folder = self.incoming / uuid4().hex
        folder.mkdir()
        try:
            yield folder
        finally:
            _remove(folder)

    def add_video(self, folder: Path, video: Video, content: str) -> tuple[Video, bool]:
        """Keep the files of a received folder under the video's id; returns what is kept, and whether it is new."""
        for path in folder.iterdir():
            make_durable(path)
        make_durable(folder)
        with self._adding:
            there = self.video(video.id)
            if there is not None:
                return there, False
            target = self.videos / video.id
            _remove(target)
            folder.rename(target)
            make_durable(self.videos)
            with self.database.transaction() as rows:
                rows.execute("INSERT INTO videos VALUES (?,?,?,?,?,?,?,?,?,?)", (*video.model_dump().values(), content))
        return video, True

    def video(self, ident: str) -> Video | None:
        """Find a video."""
        row = self.database.one("SELECT * FROM videos WHERE id=?", [ident])
        return None if row is None else _video(row)

    def list_videos(self, limit: int, offset: int) -> list[Video]:
        """Return videos, the newest first."""
        query = "SELECT * FROM videos ORDER BY created DESC, rowid DESC LIMIT ? OFFSET ?"
        return [_video(row) for row in self.database.all(query, [limit, offset])]

    def video_hash(self, ident: str) -> str:
        """SHA-256 of the original file."""
        row = self.database.one("SELECT hash FROM videos WHERE id=?", [ident])
        return "" if row is None else str(row["hash"])

    def video_folder(self, ident: str) -> Path:
        """Folder with the files of a video that is there."""
        return self.videos / ident

    def example(self, name: str) -> Video | None:
        """Find the video of an example that was rendered before."""
        row = self.database.one("SELECT v.* FROM videos v JOIN examples e ON e.video = v.id WHERE e.name=?", [name])
        return None if row is None else _video(row)

    def note_example(self, name: str, video: str) -> None:
        """Remember which video an example is."""
        with self.database.transaction() as rows:
            rows.execute("INSERT OR REPLACE INTO examples SELECT ?, id FROM videos WHERE id=?", [name, video])

    def delete_video(self, ident: str) -> bool:
        """Forget a video with its results; says whether it was there."""
        with self._adding:
            made = [row["id"] for row in self.database.all("SELECT id FROM results WHERE video=?", [ident])]
            with self.database.transaction() as rows:
                found = rows.execute("DELETE FROM videos WHERE id=?", [ident]).rowcount
            if found:
                _remove(self.videos / ident)
                for result in made:
                    _remove(self.results / result)
        return bool(found)

    def add_result(self, ident: str, video: str, document: dict[str, Any]) -> None:
        """Keep an answer, unless its video was deleted; one that is there already stays."""
        text = json.dumps(document, allow_nan=False)
        with self.database.transaction() as rows:
            rows.execute(
                "INSERT OR IGNORE INTO results SELECT ?, id, ?, ? FROM videos WHERE id=?", (ident, text, now(), video)
            )

    def result(self, ident: str) -> tuple[str, dict[str, Any]] | None:
        """Find the video and the document of an answer."""
        row = self.database.one("SELECT video, document FROM results WHERE id=?", [ident])
        return None if row is None else (row["video"], json.loads(row["document"]))

    def result_folder(self, ident: str) -> Path:
        """Folder for the files made of an answer that is there; it is made."""
        folder = self.results / ident
        folder.mkdir(exist_ok=True)
        return folder


def _claimed(folder: Path) -> int:
    """Lock the folder until this process ends; refuse one that another server has."""
    import fcntl

    number = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(number)
        raise DataError(
            f"{folder} is in use by another server: stop it, or choose another folder with `store`"
        ) from None
    return number


def _video(row: Row) -> Video:
    return Video(**{name: row[name] for name in Video.model_fields})


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)
