"""Ahead: a source whose next batches are read while the last one is worked on."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future
    from typing import Self

    from whytube.data.source import ClipBatch, Source


class _Read(NamedTuple):
    """A batch, and on CUDA the event after which it is there."""

    batch: ClipBatch
    there: Any


class Ahead:
    """Reads batches of a source in a thread of its own, one after the other, in the order they are asked for.

    So a source is never asked twice at a time. One with a method `begin`, as a folder of videos has, is told of every
    batch at once, so that its threads go on to the next batch while the last videos of this one are decoded. On CUDA
    the copies to the device run beside the work there. Use it in a `with` block.

    waited: seconds that were spent waiting for batches.
    """

    def __init__(self, source: Source) -> None:
        self.source, self.waited = source, 0.0
        self.classes, self.attribute_names, self.table = source.classes, source.attribute_names, source.table
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="reading ahead")
        self._coming: dict[tuple[str, tuple[int, ...]], Future[_Read]] = {}
        self._begun: dict[tuple[str, tuple[int, ...]], Any] = {}
        self._stream: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for begun in self._begun.values():  # nobody will take these
            if hasattr(begun, "cancel"):
                begun.cancel()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def count(self, split: str) -> int | None:
        """Return how many clips a split has."""
        return self.source.count(split)

    def expect(self, split: str, indices: Sequence[int], device: torch.device | str) -> None:
        """Have a batch read that will be asked for, unless it is being read; who expects many holds them in memory."""
        key = split, tuple(indices)
        if key not in self._coming:
            device = torch.device(device)
            begin = getattr(self.source, "begin", None)
            given: Callable[[], ClipBatch]
            if begin is None:
                given = partial(self.source.batch, split, indices, device)
            else:
                given = self._begun[key] = begin(split, indices, device)
            self._coming[key] = self._pool.submit(self._read, given, device)

    def batch(self, split: str, indices: Sequence[int], device: torch.device | str = "cpu") -> ClipBatch:
        """Return a batch, waiting for it if need be."""
        self.expect(split, indices, device)
        began = time.perf_counter()
        batch, there = self._coming.pop((split, tuple(indices))).result()
        self._begun.pop((split, tuple(indices)), None)
        self.waited += time.perf_counter() - began
        if there is not None:
            stream = torch.cuda.current_stream(device)
            stream.wait_event(there)
            for tensor in (batch.clips, batch.labels, batch.attributes):
                tensor.record_stream(stream)  # else its memory could be given away before it was used here
        return batch

    def _read(self, given: Callable[[], ClipBatch], device: torch.device) -> _Read:
        if device.type != "cuda":
            return _Read(given(), None)
        if self._stream is None:
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        with torch.cuda.device(device), torch.cuda.stream(self._stream):
            batch = given()
            there = torch.cuda.Event()  # type: ignore[no-untyped-call]
            there.record(self._stream)
        return _Read(batch, there)
