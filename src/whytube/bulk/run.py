"""Run all shards: on Ray Data, a model per actor, or one after the other in this process; the same worker in both."""

from __future__ import annotations

import importlib.util
import logging
import math
import os
import platform
import signal
import socket
import threading
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whytube.bulk.output import Output
from whytube.bulk.work import Outcome, Work, told
from whytube.errors import ArgumentError, DataError
from whytube.files import locked_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from pathlib import Path

    from whytube.bulk.listing import Listed
    from whytube.bulk.output import Asked

BLOCKS = 1000
"""Blocks that shards are spread over at most."""
AT_A_TIME, SHARED = 8, 8
"""Shards that a worker is given at a time at most, which another one is given when it dies; at least so many times
each of the workers is given some."""

LATE = 90.0
"""Seconds after which files that other machines wrote are seen in a shared folder, as on NFS, at the latest."""

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
    device: of the workers. "auto" takes GPUs where the cluster has any: those of this machine say nothing about it.
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
    out = out.absolute()  # workers of a cluster are in folders of their own
    with locked_folder(out, who="another bulk run", error=DataError):
        output = Output(out)
        sizes, done = output.open(asked, listed, versions), output.done()
        output = output.for_workers()
        videos = sum(sizes)
        left = [shard for shard in range(len(sizes)) if shard not in done]
        before = videos - sum(sizes[shard] for shard in left)
        count, explained, failed = before, 0, 0
        outcomes = (
            _here(output, asked, left, device) if workers == 0 else _with_ray(output, asked, left, workers, device, ray)
        )
        if progress is not None and left:
            progress(count, videos)
        with closing(outcomes):  # what has not come is not waited for
            for outcome in outcomes if left else ():
                if outcome.stop:
                    raise DataError(f"{outcome.stop}. What is done is kept: the same command goes on")
                explained, failed = explained + outcome.explained, failed + outcome.failed
                count += sizes[outcome.shard]
                if progress is not None:
                    progress(count, videos)
        _require_answers(output, left)
        return Summary(videos, explained, failed, before)


def _require_answers(output: Output, shards: Sequence[int]) -> None:
    """Require the files of shards that workers say are done."""
    missing, last = {*shards} - output.done(), time.monotonic() + LATE
    while missing and time.monotonic() < last:
        time.sleep(0.5)
        missing = {shard for shard in missing if not output.is_done(shard)}
    if missing:
        lost = f"the answers of {len(missing)} shards are not in {output.folder}"
        raise DataError(f"{lost}: do all workers write to this folder?")


def _here(output: Output, asked: Asked, shards: Sequence[int], device: str) -> Generator[Outcome, None, None]:
    with closing(Work(output, asked, device=device)) as work:
        yield from map(work, shards, [*shards[1:], None])


class _Actor:
    """A worker as Ray Data calls it: batches with a column of shards in, batches of outcomes out."""

    work: Callable[[int, int | None], Outcome]

    def __init__(self, output: Output, asked: Asked, device: str) -> None:
        try:
            self.work = Work(output, asked, device=device, threads=1 if device == "cpu" else None)
        except Exception as error:  # Ray would tell of it in a hundred lines
            text = f"a worker on {platform.node()} could not load {asked.model}: {told(error)}"
            self.work = lambda shard, _: Outcome(shard, stop=text)

    def __call__(self, batch: dict[str, Any]) -> Iterator[dict[str, Any]]:
        shards = batch["shard"].tolist()
        for outcome in map(self.work, shards, [*shards[1:], None]):
            yield {name: [value] for name, value in vars(outcome).items()}
            if outcome.stop:
                return


def _with_ray(
    output: Output, asked: Asked, shards: Sequence[int], workers: int | None, device: str, address: str | None
) -> Generator[Outcome, None, None]:
    """Give shards to a pool of actors; Ray starts a dead one again and gives its shards to others.

    Ray Data holds back what its consumer has not taken, and items are numbers of shards, so memory stays bounded.
    """
    output.forget_attempts()
    with _cluster(workers, address) as ray:
        size, gpus, where = _shares(ray.cluster_resources(), workers, device)
        items = ray.data.from_items(
            [{"shard": shard} for shard in shards], override_num_blocks=min(len(shards), BLOCKS)
        )
        items.context.target_max_block_size = 1  # outcomes are told one by one, not once all of a batch are there
        outcomes = items.map_batches(
            _Actor,
            fn_constructor_args=(output, asked, where),
            batch_size=_at_a_time(len(shards), size),
            compute=ray.data.ActorPoolStrategy(size=min(size, len(shards))),
            num_cpus=1,
            num_gpus=gpus,
        )
        try:
            # Not `iter_rows`: its threads outlive it, look for Ray after the end, and Ray then ends the program.
            for bundle in outcomes.iter_internal_ref_bundles():
                for block in ray.get(list(bundle.block_refs)):
                    yield from (Outcome(**row) for row in block.to_pylist())
        except ray.exceptions.RayError as error:
            raise DataError(f"Ray gave up: {' '.join(str(error).split())[-400:]}. What is done is kept") from error


def _at_a_time(shards: int, workers: int) -> int:
    """Shards that a worker is given at a time, to read one while it explains another: few, to share the last evenly."""
    return max(1, min(AT_A_TIME, shards // (SHARED * workers)))


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
    # "local": else Ray joins whatever else runs on this machine, or what RAY_ADDRESS names.
    cores = max(workers or 1, os.cpu_count() or 1)
    where = {"address": "local", "num_cpus": cores} if address is None else {"address": address}
    try:
        with _own_signals():
            ray.init(**where, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        what = "start Ray here" if address is None else f"join a Ray cluster at {address}"
        raise ArgumentError(f"cannot {what}: {' '.join(str(error).split())[:300]}") from error
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield ray
    finally:
        ray.shutdown()


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep what this program does at a signal: Ray would end it with a code of its own, files half written."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():  # elsewhere nobody may change them, Ray neither
            for number, handler in kept.items():
                if handler is not None:
                    signal.signal(number, handler)


def _require_answer(address: str | None) -> None:
    """Refuse an address HOST:PORT where nothing listens: Ray would try for minutes."""
    if address in (None, "auto"):
        return
    host, _, port = address.rpartition("/")[2].rpartition(":")
    if not port.isdecimal():
        raise ArgumentError(f"`ray` must be the address of a cluster, HOST:PORT, or auto, got {address!r}")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise ArgumentError(
            f"nothing answers at {address} ({error}): start a cluster with `ray start --head`, and name what it prints"
        ) from error


def _shares(there: Mapping[str, float], workers: int | None, device: str) -> tuple[int, float, str]:
    """How many workers, the GPUs of each, and their device.

    A worker has one GPU, or a part of one where there are more workers than GPUs. "auto" is a GPU if `there` has any.
    """
    gpus = int(there.get("GPU", 0))
    if device == "auto":
        device = "cuda" if gpus else "cpu"
    if not device.startswith("cuda"):
        return workers or max(1, int(there.get("CPU", 1))), 0, device
    if not gpus:
        raise ArgumentError("the Ray cluster has no GPU: run with `device=cpu`")
    workers = workers or gpus
    return workers, 1 / math.ceil(workers / gpus), "cuda"
