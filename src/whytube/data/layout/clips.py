"""FolderSource: a user's videos as batches of clips, as World gives them."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from operator import index as as_int
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, SupportsIndex

import numpy as np
import torch

from whytube import checks
from whytube.data.source import PlainBatch
from whytube.errors import VideoError
from whytube.video import read_clip, reader

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from whytube.data.layout.dataset import Dataset, Item
    from whytube.tubes import Tube


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


class _Decoded(NamedTuple):
    """A clip as it is kept: pixels (3, T, H, W) uint8, with the indices, times and size of Clip."""

    pixels: torch.Tensor
    indices: NDArray[np.int64]
    times: NDArray[np.float64]
    size: tuple[int, int]


@dataclass(eq=False, repr=False)
class FolderSource:
    """Clips of a Dataset, `frames` frames spread over each video and resized to `size` (height, width).

    bridge: boxes at most so many frames apart are joined by linear interpolation; 0 takes annotated frames alone.
    workers: videos decoded at a time. cache_bytes: decoded clips are kept in memory, as bytes, until so much is full
    (half a GiB holds 890 clips of 16 x 112 x 112); 0 keeps none.
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
        self._kept: dict[str, _Decoded] = {}
        self._room = self.cache_bytes
        self._lock = Lock()

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
        items = self.dataset.items(split)
        last = len(items) - 1
        if last < 0:
            raise checks.fail("split", "one with videos", f"{split!r}, which has none in {self.dataset.folder}")
        chosen = tuple(items[checks.check_int(as_int(place), "index", 0, last)] for place in indices)
        with ThreadPoolExecutor(self.workers) as pool:
            decoded = list(pool.map(self._decode, chosen))
        pinned = torch.device(device).type == "cuda"  # so that the copy does not hold up the host
        pixels = torch.empty(len(chosen), 3, self.frames, *self.size, dtype=torch.uint8, pin_memory=pinned)
        attributes = torch.empty(len(chosen), len(self.attribute_names), dtype=torch.bool)
        for b, (item, clip) in enumerate(zip(chosen, decoded, strict=True)):
            pixels[b], attributes[b] = clip.pixels, item.attributes
        steps = (len(chosen), self.frames)
        return FolderBatch(
            clips=pixels.to(device, non_blocking=pinned).float().div_(255.0),
            labels=torch.tensor([item.label for item in chosen], dtype=torch.long, device=device),
            attributes=attributes.to(device),
            items=chosen,
            indices=np.array([clip.indices for clip in decoded], dtype=np.int64).reshape(steps),
            times=np.array([clip.times for clip in decoded], dtype=np.float64).reshape(steps),
            sizes=np.array([clip.size for clip in decoded], dtype=np.int64).reshape(-1, 2),
            bridge=self.bridge,
        )

    def _decode(self, item: Item) -> _Decoded:
        with self._lock:
            kept = self._kept.get(item.name)
        if kept is not None:
            return kept
        try:
            clip = read_clip(item.path, frames=self.frames, size=self.size)
        except VideoError as error:
            raise error.bare from error
        pixels = clip.frames.mul_(255.0).round_().byte()
        decoded = _Decoded(pixels, clip.indices, clip.times, clip.size)
        with self._lock:
            if item.name not in self._kept and pixels.nbytes <= self._room:
                self._kept[item.name] = decoded
                self._room -= pixels.nbytes
        return decoded


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
