"""The folder of a bulk run: what is asked, which videos, and the answers.

    OUT/run.json            model, settings and versions; a run with others is refused
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
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from whytube.bulk.listing import Listed
from whytube.errors import DataError
from whytube.files import make_folder, read_json, whole_file, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

SCHEMA = 1
SHARD = 16
"""Videos that are written together."""


@dataclass(frozen=True)
class Row:
    """A video of a run."""

    row: int
    video: str
    label: str
    shard: int


@dataclass(frozen=True)
class Asked:
    """What is asked about every video; see `whytube.explain`.

    negatives: "runner-up", "all", or names of classes. window: seconds of a sliding window; None takes each video as
    one clip. model_hash: of the classifier and what explains it.
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
        """Plain values for run.json: what must be the same when a run goes on."""
        plain = asdict(self) | {"schema": SCHEMA, "kind": "bulk"}
        return plain | {"negatives": self.negatives if isinstance(self.negatives, str) else list(self.negatives)}


@dataclass(frozen=True)
class Output:
    """The folder of a run."""

    folder: Path

    def open(self, asked: Asked, listed: Sequence[Listed], versions: Mapping[str, str]) -> list[Row]:
        """Begin, or go on with what is there; returns all rows. New videos are added after those that are listed."""
        for name in ("reasons", "failures", "attempts"):
            make_folder(self.folder / name, error=DataError)
        path = self.folder / "run.json"
        if path.exists():
            old = read_json(path, error=DataError)
            told = json.loads(json.dumps(asked.told()))
            different = [name for name, value in told.items() if not isinstance(old, dict) or old.get(name) != value]
            if different:
                raise DataError(
                    f"{self.folder} holds answers to other questions ({', '.join(different)} differ): "
                    "choose another folder, or ask the same"
                )
        rows = self._rows(listed)
        if not path.exists():  # last: what is listed is whole
            text = json.dumps(asked.told() | {"versions": dict(versions)}, indent=1)
            write_whole(path, text + "\n", error=DataError)
        return rows

    def _rows(self, listed: Sequence[Listed]) -> list[Row]:
        old = self.rows() if (self.folder / "videos.parquet").exists() else []
        before = [Listed(row.video, row.label) for row in old]
        if list(listed[: len(before)]) == before:
            new = list(listed[len(before) :])
        else:
            known = set(before)
            new = [one for one in listed if one not in known]
            if len(known) < len(before) or not known & set(listed):
                raise DataError(f"{self.folder} was made of other videos: choose another folder for these")
        if not new:
            return old
        first = 1 + max((row.shard for row in old), default=-1)
        rows = old + [
            Row(len(old) + place, one.video, one.label, first + place // SHARD) for place, one in enumerate(new)
        ]
        self._write(self.folder / "videos.parquet", [asdict(row) for row in rows], _row_schema())
        return rows

    def rows(self) -> list[Row]:
        """Read the rows of a run."""
        from pyarrow import parquet

        table = parquet.read_table(self.folder / "videos.parquet")
        return [Row(**row) for row in table.to_pylist()]

    def done(self) -> set[int]:
        """Shards whose answers are there."""
        return {int(path.stem.rpartition("-")[2]) for path in (self.folder / "reasons").glob("shard-*.parquet")}

    def is_done(self, shard: int) -> bool:
        """Whether the answers of a shard are there."""
        return (self.folder / "reasons" / _name(shard)).exists()

    def write(self, shard: int, answers: Sequence[Mapping[str, Any]], failures: Sequence[Mapping[str, Any]]) -> None:
        """Keep what became of a shard."""
        name = _name(shard)
        self._write(self.folder / "failures" / name, failures, failure_schema())
        self._write(self.folder / "reasons" / name, answers, answer_schema())
        for row in {int(entry["row"]) for entry in (*answers, *failures)}:
            self._attempt(row).unlink(missing_ok=True)

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
        self.finish(int(path.name) for path in (self.folder / "attempts").iterdir())

    def _attempt(self, row: int) -> Path:
        return self.folder / "attempts" / str(row)

    def _write(self, path: Path, rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        with whole_file(path, error=DataError) as part:
            parquet.write_table(pa.Table.from_pylist(list(rows), schema=schema), part)
            with part.open("rb+") as file:
                os.fsync(file.fileno())


def _name(shard: int) -> str:
    return f"shard-{shard:06d}.parquet"


def _row_schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema([("row", pa.int64()), ("video", pa.string()), ("label", pa.string()), ("shard", pa.int64())])


def failure_schema() -> pa.Schema:
    """Columns of the table of failures."""
    import pyarrow as pa

    return pa.schema([("row", pa.int64()), ("video", pa.string()), ("label", pa.string()), ("error", pa.string())])


def answer_schema() -> pa.Schema:
    """Columns of the table of answers: one row per video (or window of it) and negative class, with its reasons."""
    import pyarrow as pa

    evidence = pa.struct(
        [("fill", pa.string())]
        + [(f"{of}_{when}", pa.float64()) for of in ("positive", "negative") for when in ("before", "after")]
    )
    reason = pa.struct(
        [
            ("attribute", pa.string()),
            ("fit", pa.float64()),
            ("score", pa.float64()),
            ("verdict", pa.string()),
            ("fall", pa.float64()),
            ("frames", pa.list_(pa.int64())),
            ("times", pa.list_(pa.float64())),
            ("boxes", pa.list_(pa.list_(pa.float64(), 4))),
            ("evidence", pa.list_(evidence)),
        ]
    )
    return pa.schema(
        [
            ("row", pa.int64()),
            ("video", pa.string()),
            ("label", pa.string()),
            ("start", pa.float64()),
            ("end", pa.float64()),
            ("predicted", pa.string()),
            ("positive", pa.string()),
            ("negative", pa.string()),
            ("p_positive", pa.float64()),
            ("p_negative", pa.float64()),
            ("explained", pa.bool_()),
            ("sentence", pa.string()),
            ("reasons", pa.list_(reason)),
            ("frames", pa.list_(pa.int64())),
            ("fps", pa.float64()),
            ("duration", pa.float64()),
            ("height", pa.int64()),
            ("width", pa.int64()),
            ("video_hash", pa.string()),
            ("model", pa.string()),
            ("model_hash", pa.string()),
            ("settings", pa.string()),
            ("versions", pa.string()),
        ]
    )
