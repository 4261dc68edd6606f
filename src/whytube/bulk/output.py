"""The folder of a bulk run: what is asked, which videos, and the answers.

    OUT/run.json            model, settings, versions, and an id by which workers know that they see this folder; a run
                            of another model or other settings is refused once there are answers
    OUT/videos.parquet      every video with its row and shard, in the order in which they were listed
    OUT/reasons/            a Parquet file per shard: an answer per video and negative class
    OUT/failures/           a Parquet file per shard: videos that could not be explained, and why
    OUT/attempts/           rows that a worker has in hand, so that a video that kills workers is given up

A shard is done when its file under reasons/ is there. Files appear whole, those of failures first, and a shard that is
done again gives the same files. So every row ends in exactly one of the two tables, however often a run is broken off.
"""

from __future__ import annotations

import json
import os
import platform
import re
import uuid
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from whytube.bulk.listing import Listed
from whytube.bulk.tables import Part, Row, row_schema
from whytube.errors import DataError
from whytube.files import make_folder, read_json, whole_file, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

SCHEMA = 1
SHARD, SHARDS = 16, 2000
"""Videos that are written together; they become more where there would be more shards than SHARDS, up to LARGEST."""
LARGEST = 256
FREE = ("batch",)
"""Settings that may change when a run goes on: they change answers by rounding alone."""
NAMED = re.compile(r"shard-(\d{6,})\.parquet")
"""Files of shards; others in their folders, such as copies that somebody made, are nobody's answers."""
GROUP = 4096
"""Rows of videos.parquet that are read together when the videos of a shard are looked up."""


@dataclass(frozen=True)
class Asked:
    """What is asked about every video; see `whytube.explain`.

    negatives: "runner-up", "all", "label" (the true class), or names of classes. window: seconds of a sliding window;
    None takes each video as one clip. model_hash: of the classifier and what explains it.
    """

    model: str
    model_hash: str
    negatives: str | tuple[str, ...] = "runner-up"
    k: int = 2
    effort: int = 6
    area: float = 0.1
    window: float | None = None
    batch: int = 4

    def told(self) -> dict[str, Any]:
        """Plain values for run.json: what must be the same when a run goes on, but for FREE."""
        from whytube.search.verify import SELECTING_FILLS

        plain = asdict(self) | {"schema": SCHEMA, "kind": "bulk", "tried with": list(SELECTING_FILLS)}
        return plain | {"negatives": self.negatives if isinstance(self.negatives, str) else list(self.negatives)}


@dataclass(frozen=True)
class Output:
    """The folder of a run; id: that of its run.json, for workers, which may see another folder of this name."""

    folder: Path
    id: str = ""

    def open(self, asked: Asked, listed: Sequence[Listed], versions: Mapping[str, str]) -> list[int]:
        """Begin, or go on with what is there. New videos are added after those that are listed.

        Returns the number of videos of each shard.
        """
        for name in ("reasons", "failures", "attempts"):
            make_folder(self.folder / name, error=DataError)
            for part in (self.folder / name).glob(".*.part"):  # of workers that were killed
                part.unlink(missing_ok=True)
        path = self.folder / "run.json"
        if not path.exists() and self._shards("reasons"):
            raise DataError(f"{self.folder} holds answers, but not its run.json: choose another folder")
        if path.exists() and (other := self._others(asked)):
            if self._shards("reasons"):
                raise DataError(
                    f"{self.folder} holds answers to other questions ({other}): choose another folder, or ask the same"
                )
            self.forget_attempts()  # no question was answered yet, and rows will be those of other videos
            failures = [self.folder / "failures" / _name(shard) for shard in self._shards("failures")]
            for stale in (*failures, self.folder / "videos.parquet", path):
                stale.unlink(missing_ok=True)  # run.json last: a run that is ended here begins anew, too
        sizes = self._list(listed, SHARD if asked.window is None else 1)  # long videos one by one
        told = read_json(path, error=DataError) if path.exists() else asked.told() | {"versions": dict(versions)}
        if "id" not in told:  # last: what is listed is whole
            told["id"] = uuid.uuid4().hex
            write_whole(path, json.dumps(told, indent=1) + "\n", error=DataError)
        return sizes

    def for_workers(self) -> Output:
        """Return this folder, which is open, with its id."""
        return replace(self, id=read_json(self.folder / "run.json", error=DataError)["id"])

    def require_shared(self) -> None:
        """Require that this process sees the folder that the run was begun in, not another one of that name."""
        if not self.id:
            return
        try:
            same = self.for_workers().id == self.id
        except (DataError, KeyError, TypeError):
            same = False
        if not same:
            here = platform.node()
            raise DataError(f"a worker on {here} does not see the folder {self.folder}: all machines must share it")

    def _others(self, asked: Asked) -> str:
        """Tell which settings of the run that is there are others, "" for none."""
        told, old = json.loads(json.dumps(asked.told())), read_json(self.folder / "run.json", error=DataError)
        if not isinstance(old, dict):
            return "run.json is damaged"
        names = [name for name, value in told.items() if name not in FREE and old.get(name) != value]
        if any(name not in old for name in names):
            return "asked by an earlier version"
        return ", ".join(f"`{name}` was {old[name]!r}, now {told[name]!r}" for name in names)

    def _list(self, listed: Sequence[Listed], least: int) -> list[int]:
        """Write videos.parquet where it lacks videos; returns the number of videos of each shard."""
        import pyarrow as pa

        old = row_schema().empty_table()
        if (self.folder / "videos.parquet").exists():
            old = self._videos()
        new = self._new(old, listed)
        sizes = [count["counts"] for count in old["shard"].value_counts().to_pylist()]  # they are in order
        if new:
            size = min(max(least, -(-len(new) // SHARDS)), LARGEST)
            columns = {
                "row": range(len(old), len(old) + len(new)),
                "video": [one.video for one in new],
                "label": [one.label for one in new],
                "shard": [len(sizes) + place // size for place in range(len(new))],
            }
            added = pa.table({name: pa.array(values) for name, values in columns.items()}, schema=row_schema())
            self._write(self.folder / "videos.parquet", pa.concat_tables([old, added]))
            sizes += [min(size, len(new) - first) for first in range(0, len(new), size)]
        return sizes

    def _new(self, old: pa.Table, listed: Sequence[Listed]) -> Sequence[Listed]:
        """Videos that are listed and were not before."""
        before = [Listed(*one) for one in zip(old["video"].to_pylist(), old["label"].to_pylist(), strict=True)]
        if listed[: len(before)] == before:
            return listed[len(before) :]
        known = set(before)
        if len(known) < len(before) or not known & set(listed):
            raise DataError(f"{self.folder} was made of other videos: choose another folder for these")
        return [one for one in listed if one not in known]

    def _videos(self, shard: int | None = None) -> pa.Table:
        from pyarrow import ArrowException, parquet

        path = self.folder / "videos.parquet"
        try:
            return parquet.read_table(path, filters=None if shard is None else [("shard", "=", shard)])
        except (ArrowException, OSError) as error:
            raise DataError(f"cannot read {path}: {' '.join(str(error).split())}") from error

    def rows(self, shard: int | None = None) -> list[Row]:
        """Read the rows of a shard, or all."""
        return [Row(**row) for row in self._videos(shard).to_pylist()]

    def done(self) -> set[int]:
        """Shards whose answers are there, and their failures."""
        return self._shards("reasons") & self._shards("failures")

    def _shards(self, name: str) -> set[int]:
        return {int(found[1]) for path in (self.folder / name).iterdir() if (found := NAMED.fullmatch(path.name))}

    def is_done(self, shard: int) -> bool:
        """Whether the answers of a shard are there."""
        return all((self.folder / name / _name(shard)).exists() for name in ("reasons", "failures"))

    def failed(self, shard: int) -> int:
        """How many videos of a shard that is done could not be explained."""
        from pyarrow import parquet

        return int(parquet.read_metadata(self.folder / "failures" / _name(shard)).num_rows)

    @contextmanager
    def writing(self, shard: int) -> Iterator[Part]:
        """Give the block the tables of a shard to fill; they are there once it ends, those of failures first."""
        name = _name(shard)
        with whole_file(self.folder / "reasons" / name, error=DataError) as path:
            with Part(path) as part:
                yield part
            part.drop_failed()
            self._write(self.folder / "failures" / name, part.failures)
            _sync(path)

    def attempts(self, row: int) -> int:
        """How often a worker had a row in hand and died."""
        try:
            return len(self._attempt(row).read_bytes())
        except OSError:
            return 0

    def attempt(self, rows: Iterable[int]) -> None:
        """Note that rows are in hand."""
        for row in rows:
            with self._attempt(row).open("ab") as file:
                file.write(b".")

    def finish(self, rows: Iterable[int]) -> None:
        """Note that rows are not in hand any more, and nothing died of them."""
        for row in rows:
            self._attempt(row).unlink(missing_ok=True)

    def forget_attempts(self) -> None:
        """Begin to count anew: whoever had rows in hand before was stopped on purpose."""
        self.finish(int(path.name) for path in (self.folder / "attempts").iterdir() if path.name.isdecimal())

    def _attempt(self, row: int) -> Path:
        return self.folder / "attempts" / str(row)

    def _write(self, path: Path, table: pa.Table) -> None:
        from pyarrow import parquet

        with whole_file(path, error=DataError) as part:
            parquet.write_table(table, part, row_group_size=GROUP)
            _sync(part)


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _name(shard: int) -> str:
    return f"shard-{shard:06d}.parquet"
