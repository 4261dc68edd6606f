"""FolderSource: a user's videos as batches of clips, as World gives them."""

from __future__ import annotations

import json
import os
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from operator import index as as_int
from threading import Lock
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
import torch

from whytube import checks
from whytube.data.source import PlainBatch
from whytube.errors import VideoError
from whytube.video import read_bytes, reader
from whytube.video.apart import Readers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from whytube.data.layout.dataset import Dataset, Item
    from whytube.tubes import Tube
    from whytube.video.read import Sampled


APART_AFTER = 64
"""Videos that a source decodes in this process, before it starts others for that."""


@dataclass(frozen=True, eq=False)
class FolderBatch(PlainBatch):
    """Clips with where they come from.

    items: the B videos. indices, times: (B, T) frame of the video and its seconds. sizes: (B, 2) height and width of
    the video's own frames. With these a box of the clip maps back: x * sizes[b, 1] / W in frame indices[b, t].
    """

    items: tuple[Item, ...] = field(repr=False)
    indices: NDArray[np.int64] = field(repr=False)
    times: NDArray[np.float64] = field(repr=False)
    sizes: NDArray[np.int64] = field(repr=False)
    bridge: int = 0

    @cached_property
    def boxes(self) -> list[dict[str, NDArray[np.float64]]]:
        """Per clip, attribute or ACTOR -> box (T, 4) in pixels of the clip, cut off at its edges; zeros for no box."""
        height, width = self.clips.shape[-2:]
        edges = np.array([width, height, width, height], dtype=np.float64)
        found = []
        for item, indices, size in zip(self.items, self.indices, self.sizes, strict=True):
            scale = edges / size[[1, 0, 1, 0]]
            boxes = {name: boxes_at(tube, indices, bridge=self.bridge) for name, tube in item.boxes.items()}
            found.append({name: (corners * scale).clip(0, edges) for name, corners in boxes.items()})
        return found


@dataclass(frozen=True, eq=False)
class _Begun:
    """A batch whose videos are being decoded; called, it gives the batch. Of one that fails the rest is not wanted."""

    give: Callable[[], FolderBatch]
    coming: Sequence[Future[Sampled]]

    def __call__(self) -> FolderBatch:
        try:
            return self.give()
        finally:
            self.cancel()

    def cancel(self) -> None:
        """Decode nothing more for it."""
        for clip in self.coming:
            clip.cancel()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def training_workers() -> int:
    """Return how many videos a training decodes at a time: as many as there are cores, but from 4 to 16."""
    return max(4, min(16, cores()))


@dataclass(eq=False, repr=False)
class FolderSource:
    """Clips of a Dataset, `frames` frames spread over each video and resized to `size` (height, width).

    bridge: boxes at most so many frames apart are joined by linear interpolation; 0 takes annotated frames alone.
    workers: videos decoded at a time; after the first APART_AFTER in as many processes, which end with the source.
    cache_bytes: decoded clips are kept in memory, as bytes, until so much is full (half a GiB holds 890 clips of
    16 x 112 x 112); 0 keeps none.
    """

    dataset: Dataset
    _: KW_ONLY
    frames: int = 16
    size: tuple[int, int] = (112, 112)
    bridge: int = 0
    workers: int = 4
    cache_bytes: int = 1 << 29

    def __post_init__(self) -> None:
        for name, least in (("frames", 1), ("bridge", 0), ("workers", 1), ("cache_bytes", 0)):
            checks.check_int(getattr(self, name), name, least)
        self.size = checks.check_size(self.size)
        self.classes, self.attribute_names = self.dataset.classes, self.dataset.attribute_names
        self.table = self.dataset.table.clone()
        # Filled and never emptied: over a set that does not fit, dropping the oldest would miss every time.
        self._kept: dict[str, tuple[torch.Tensor, Sampled]] = {}
        self._room = self.cache_bytes
        self._lock = Lock()
        self._decoded, self._readers = 0, Readers()
        weakref.finalize(self, self._readers.close)

    def __repr__(self) -> str:
        return type(self).__name__  # results record it, and where the folder lies is no part of them

    @property
    def contents(self) -> str:
        """Every video with its split, class and attributes, for the fingerprint."""
        rows = [(item.name, item.split, item.label, item.attributes.int().tolist()) for item in self.dataset.videos]
        return json.dumps(rows)

    @property
    def reader(self) -> str:
        """Name the library that reads the videos, for the provenance of results."""
        return reader()

    def count(self, split: str) -> int:
        """Return how many clips a split has."""
        return self.dataset.count(split)

    def boxed(self, split: str) -> list[int]:
        """Return the places in `dataset.items(split)` of the clips with boxes of attributes; opens no video."""
        known = set(self.attribute_names)
        return [place for place, item in enumerate(self.dataset.items(split)) if known & item.boxes.keys()]

    def batch(self, split: str, indices: Iterable[SupportsIndex], device: torch.device | str = "cpu") -> FolderBatch:
        """Read clips by their places in `dataset.items(split)`, in any order and with repeats."""
        return self.begin(split, indices, device)()

    def begin(self, split: str, indices: Iterable[SupportsIndex], device: torch.device | str = "cpu") -> _Begun:
        """Begin to decode a batch, and return what gives it; so several can be under way without a pause between.

        Who does not want it any more calls `cancel` of what is returned.
        """
        items = self.dataset.items(split)
        last = len(items) - 1
        if last < 0:
            raise checks.fail("split", "one with videos", f"{split!r}, which has none in {self.dataset.folder}")
        chosen = tuple(items[checks.check_int(as_int(place), "index", 0, last)] for place in indices)
        pinned = torch.device(device).type == "cuda"  # so that the copy does not hold up the host
        pixels = torch.empty(len(chosen), 3, self.frames, *self.size, dtype=torch.uint8, pin_memory=pinned)
        # Where more videos are decoded at a time than there are cores, more threads for one only cost time.
        threads = max(1, cores() // max(1, min(self.workers, len(chosen))))
        coming = [
            self._pool.submit(self._decode, item, place, threads) for item, place in zip(chosen, pixels, strict=True)
        ]

        return _Begun(lambda: self._batch(chosen, pixels, [clip.result() for clip in coming], device), coming)

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.workers, thread_name_prefix="decoding")

    def _batch(
        self, chosen: tuple[Item, ...], pixels: torch.Tensor, decoded: list[Sampled], device: torch.device | str
    ) -> FolderBatch:
        attributes = torch.empty(len(chosen), len(self.attribute_names), dtype=torch.bool)
        for b, item in enumerate(chosen):
            attributes[b] = item.attributes
        steps = (len(chosen), self.frames)
        return FolderBatch(
            clips=pixels.to(device, non_blocking=pixels.is_pinned()).float().div_(255.0),
            labels=torch.tensor([item.label for item in chosen], dtype=torch.long, device=device),
            attributes=attributes.to(device),
            items=chosen,
            indices=np.array([clip.indices for clip in decoded], dtype=np.int64).reshape(steps),
            times=np.array([clip.times for clip in decoded], dtype=np.float64).reshape(steps),
            sizes=np.array([clip.size for clip in decoded], dtype=np.int64).reshape(-1, 2),
            bridge=self.bridge,
        )

    def _decode(self, item: Item, pixels: torch.Tensor, threads: int) -> Sampled:
        """Fill pixels (3, T, H, W) with a video's bytes."""
        with self._lock:
            kept = self._kept.get(item.name)
        if kept is not None:
            pixels.copy_(kept[0])
            return kept[1]
        with self._lock:
            self._decoded += 1
            apart = self._decoded > APART_AFTER
        try:
            sampled = self._readers.read(item.path, pixels, threads=threads) if apart else None
            sampled = sampled or read_bytes(item.path, pixels, threads=threads)
        except VideoError as error:
            raise error.bare from error
        with self._lock:
            if item.name not in self._kept and pixels.nbytes <= self._room:
                self._room -= pixels.nbytes
                self._kept[item.name] = pixels.clone(), sampled
        return sampled


def boxes_at(tube: Tube, indices: NDArray[np.int64], *, bridge: int = 0) -> NDArray[np.float64]:
    """Boxes at frame indices, zeros where there is none: (T,) -> (T, 4), in the tube's pixels.

    Between two annotated frames that are at most `bridge` apart, corners are interpolated linearly. A frame without
    annotated neighbours that sampling skipped goes to the nearest sampled frame, at most half a stride away.
    """
    boxes = tube.at(indices)
    _place_single(boxes, tube, indices)
    if bridge < 2 or len(tube) < 2:
        return boxes
    after = np.searchsorted(tube.frames, indices).clip(1, len(tube) - 1)
    left, right = tube.frames[after - 1], tube.frames[after]
    inside = (indices > left) & (indices < right) & (right - left <= bridge)
    share = ((indices - left) / (right - left))[:, None]
    between = (1 - share) * tube.boxes[after - 1] + share * tube.boxes[after]
    return np.where(inside[:, None], between, boxes)


def _place_single(boxes: NDArray[np.float64], tube: Tube, indices: NDArray[np.int64]) -> None:
    """Fill empty boxes (T, 4) in place with those of annotated frames that sampling skipped; see boxes_at."""
    if len(indices) < 2:
        return
    reach = np.diff(indices).max() / 2
    alone = ~np.isin(tube.frames - 1, tube.frames) & ~np.isin(tube.frames + 1, tube.frames)
    for frame, box in zip(tube.frames[alone], tube.boxes[alone], strict=True):
        step = int(np.abs(indices - frame).argmin())
        if not boxes[step].any() and abs(int(indices[step]) - int(frame)) <= reach:
            boxes[step] = box
