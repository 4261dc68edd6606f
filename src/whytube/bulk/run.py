"""Run all shards: on Ray Data, a model per actor, or one after the other in this process; the same worker in both."""

from __future__ import annotations

import importlib.util
import logging
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whytube.bulk.output import Output
from whytube.bulk.work import Outcome, Work
from whytube.errors import ArgumentError, DataError
from whytube.files import locked_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from whytube.bulk.listing import Listed
    from whytube.bulk.output import Asked, Row

BLOCKS = 1000
"""Blocks that shards are spread over at most; a block is what is given to another actor when one dies."""


QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal", "RAY_DATA_DISABLE_PROGRESS_BARS": "1"}
"""Nothing is sent anywhere, and Ray's own log stays in its files."""


@dataclass(frozen=True)
class Summary:
    """What became of a run: videos in all, explained and failed now, and those that were done before."""

    videos: int
    explained: int
    failed: int
    before: int


def run_bulk(
    listed: Sequence[Listed],
    asked: Asked,
    out: Path,
    *,
    versions: Mapping[str, str],
    workers: int | None = None,
    device: str = "cpu",
    ray: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Summary:
    """Explain videos into the folder `out`; what is there already is kept, so that a broken run goes on.

    workers: actors on Ray; 0 runs in this process. None takes a worker per core where Ray is installed, else 0.
    ray: address of a cluster; None starts a local one. progress: called with (videos done, of all).
    """
    if workers is None:
        workers = 0 if importlib.util.find_spec("ray") is None and ray is None else os.cpu_count() or 1
    if workers and importlib.util.find_spec("ray") is None:
        raise ArgumentError(
            "Ray is not installed: pip install 'whytube[bulk]', or run in this process with `workers=0`"
        )
    with locked_folder(out, who="another bulk run", error=DataError):
        output = Output(out)
        rows = output.open(asked, listed, versions)
        shards, done = _shards(rows), output.done()
        left = [shard for shard in shards if shard not in done]
        before = sum(len(shards[shard]) for shard in done)
        count, explained, failed = before, 0, 0
        outcomes = (
            _with_ray(output, asked, left, workers, device, ray) if workers else _here(output, asked, left, device)
        )
        for outcome in outcomes if left else ():
            if outcome.stop:
                raise DataError(f"{outcome.stop}. What is done is kept: the same command goes on")
            explained, failed = explained + outcome.explained, failed + outcome.failed
            count += len(shards[outcome.shard])
            if progress is not None:
                progress(count, len(rows))
        return Summary(len(rows), explained, failed, before)


def _shards(rows: Sequence[Row]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for row in rows:
        found.setdefault(row.shard, []).append(row)
    return found


def _here(output: Output, asked: Asked, shards: Sequence[int], device: str) -> Iterator[Outcome]:
    work = Work(output, asked, device=device)
    yield from map(work, shards)


class _Actor:
    """A worker as Ray Data calls it: batches with a column of shards in, batches of outcomes out."""

    def __init__(self, output: Output, asked: Asked, device: str) -> None:
        self.work = Work(output, asked, device=device, threads=1 if device == "cpu" else None)

    def __call__(self, batch: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for shard in batch["shard"].tolist():
            outcome = self.work(shard)
            yield {name: [value] for name, value in vars(outcome).items()}


def _with_ray(
    output: Output, asked: Asked, shards: Sequence[int], workers: int, device: str, address: str | None
) -> Iterator[Outcome]:
    """Give shards to a pool of actors; Ray starts a dead one again and gives its shards to others.

    Ray Data holds back what its consumer has not taken, and items are numbers of shards, so memory stays bounded.
    """
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    import ray
    from ray.data import ActorPoolStrategy, DataContext

    output.forget_attempts()
    ours = not ray.is_initialized()
    if ours:
        local = {"num_cpus": max(workers, os.cpu_count() or 1)} if address is None else {"address": address}
        ray.init(**local, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    try:
        DataContext.get_current().enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        blocks = min(len(shards), BLOCKS)
        items = ray.data.from_items([{"shard": shard} for shard in shards], override_num_blocks=blocks)
        outcomes = items.map_batches(
            _Actor,
            fn_constructor_args=(output, asked, device),
            batch_size=1,
            compute=ActorPoolStrategy(size=workers),
            num_cpus=1,
            num_gpus=1 if device.startswith("cuda") else 0,
        )
        for row in outcomes.iter_rows():
            yield Outcome(**row)
    except ray.exceptions.RayError as error:
        raise DataError(f"Ray gave up: {' '.join(str(error).split())[-400:]}. What is done is kept") from error
    finally:
        if ours:
            ray.shutdown()
