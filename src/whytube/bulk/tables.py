"""The tables of a bulk run: their columns, and answers that go to the disk while a shard is worked on."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from whytube.errors import DataError
from whytube.files import whole_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pyarrow as pa

HELD = 256
"""Answers that are held before they go to the disk: a long video has many."""


@dataclass(frozen=True, slots=True)
class Row:
    """A video of a run: a row of videos.parquet."""

    row: int
    video: str
    label: str
    shard: int


class Part:
    """The two tables of a shard while they are filled. Answers of a video that fails later are taken out at the end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failed: dict[int, Mapping[str, Any]] = {}
        self.held: list[Mapping[str, Any]] = []
        self.written: set[int] = set()

    def __enter__(self) -> Self:
        from pyarrow import parquet

        self.writer = parquet.ParquetWriter(self.path, answer_schema())
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._flush()
            self.writer.close()
        else:
            with suppress(OSError):  # a full disk has been told of
                self.writer.close()

    def answer(self, answer: Mapping[str, Any]) -> None:
        """Keep an answer."""
        self.held.append(answer)
        if len(self.held) == HELD:
            self._flush()

    def fail(self, row: Row, error: str) -> None:
        """Keep that a video could not be explained; the first reason counts."""
        found = {"row": row.row, "video": row.video, "label": row.label, "error": error}
        self.failed.setdefault(row.row, found)

    @property
    def failures(self) -> pa.Table:
        """The table of failures."""
        import pyarrow as pa

        return pa.Table.from_pylist([self.failed[row] for row in sorted(self.failed)], schema=failure_schema())

    def drop_failed(self) -> None:
        """Take the answers of failed videos out of the file."""
        import pyarrow as pa
        from pyarrow import compute, parquet

        wrong = self.written & self.failed.keys()
        if not wrong:
            return
        with (
            whole_file(self.path, error=DataError) as part,
            parquet.ParquetFile(self.path) as file,
            parquet.ParquetWriter(part, answer_schema()) as writer,
        ):
            for batch in file.iter_batches(HELD):
                writer.write_batch(batch.filter(compute.invert(compute.is_in(batch["row"], pa.array(sorted(wrong))))))

    def _flush(self) -> None:
        import pyarrow as pa

        kept = [answer for answer in self.held if answer["row"] not in self.failed]
        self.held = []
        if kept:
            self.written.update(int(answer["row"]) for answer in kept)
            self.writer.write_table(pa.Table.from_pylist(kept, schema=answer_schema()))


def row_schema() -> pa.Schema:
    """Columns of the table of videos."""
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
