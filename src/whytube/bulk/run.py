"""Run all shards: on Ray Data, a model per actor, or one after the other in this process; the same worker in both."""

from __future__ import annotations

import importlib.util
import logging
import math
import os
import socket
from contextlib import contextmanager
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
    from whytube.bulk.output import Asked

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

    workers: actors on Ray; 0 runs in this process. None takes a worker per core, or per GPU, of the cluster where Ray
        is installed, else 0.
    ray: address of a cluster; None starts a local one. progress: called with (videos done, of all).
    """
    if importlib.util.find_spec("ray") is None:
        if workers or ray is not None:
            raise ArgumentError(
                "Ray is not installed: pip install 'whytube[bulk]', or run in this process with `workers=0`"
            )
        workers = 0
    if workers == 0 and ray is not None:
        raise ArgumentError("`workers=0` runs in this process, and `ray` names a cluster: give one of them")
    _require_answer(ray)
    with locked_folder(out, who="another bulk run", error=DataError):
        output = Output(out)
        sizes, done = output.open(asked, listed, versions), output.done()
        videos = sum(sizes)
        left = [shard for shard in range(len(sizes)) if shard not in done]
        before = videos - sum(sizes[shard] for shard in left)
        count, explained, failed = before, 0, 0
        outcomes = (
            _here(output, asked, left, device) if workers == 0 else _with_ray(output, asked, left, workers, device, ray)
        )
        for outcome in outcomes if left else ():
            if outcome.stop:
                raise DataError(f"{outcome.stop}. What is done is kept: the same command goes on")
            explained, failed = explained + outcome.explained, failed + outcome.failed
            count += sizes[outcome.shard]
            if progress is not None:
                progress(count, videos)
        return Summary(videos, explained, failed, before)


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
    output: Output, asked: Asked, shards: Sequence[int], workers: int | None, device: str, address: str | None
) -> Iterator[Outcome]:
    """Give shards to a pool of actors; Ray starts a dead one again and gives its shards to others.

    Ray Data holds back what its consumer has not taken, and items are numbers of shards, so memory stays bounded.
    """
    output.forget_attempts()
    with _cluster(workers, address) as ray:
        size, gpus = _shares(ray.cluster_resources(), workers, device)
        items = ray.data.from_items(
            [{"shard": shard} for shard in shards], override_num_blocks=min(len(shards), BLOCKS)
        )
        outcomes = items.map_batches(
            _Actor,
            fn_constructor_args=(output, asked, "cuda" if gpus else device),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=min(size, len(shards))),
            num_cpus=1,
            num_gpus=gpus,
        )
        try:
            for row in outcomes.iter_rows():
                yield Outcome(**row)
        except ray.exceptions.RayError as error:
            raise DataError(f"Ray gave up: {' '.join(str(error).split())[-400:]}. What is done is kept") from error


@contextmanager
def _cluster(workers: int | None, address: str | None) -> Iterator[Any]:
    """Join a cluster, or start one on this machine, for the length of the block, which gets the module ray."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    import ray
    import ray.data

    if ray.is_initialized():
        yield ray
        return
    where = {"num_cpus": max(workers or 1, os.cpu_count() or 1)} if address is None else {"address": address}
    try:
        ray.init(**where, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ArgumentError(f"cannot join a Ray cluster at {address}: {' '.join(str(error).split())[:300]}") from error
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield ray
    finally:
        ray.shutdown()


def _require_answer(address: str | None) -> None:
    """Refuse an address HOST:PORT where nothing listens: Ray would try for minutes."""
    host, _, port = (address or "").rpartition("/")[2].rpartition(":")
    if not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise ArgumentError(
            f"nothing answers at {address} ({error}): start a cluster with `ray start --head`, and name what it prints"
        ) from error


def _shares(there: Mapping[str, float], workers: int | None, device: str) -> tuple[int, float]:
    """How many workers, and the GPUs of each: one, or a part of one where there are more workers than GPUs."""
    if not device.startswith("cuda"):
        return workers or max(1, int(there.get("CPU", 1))), 0
    gpus = int(there.get("GPU", 0))
    if not gpus:
        raise ArgumentError("the Ray cluster has no GPU: run with `device=cpu`")
    workers = workers or gpus
    return workers, 1 / math.ceil(workers / gpus)
