"""FolderSource: a user's videos as batches of clips, as World gives them."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from operator import index as as_int
from threading import Lock
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
import torch

from whytube import checks
from whytube.video import read_clip

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from whytube.data.layout.dataset import Dataset, Item
    from whytube.tubes import Tube


@dataclass(frozen=True, eq=False)
class FolderBatch:
    """Clips (B, 3, T, H, W) float32 in [0, 1], labels (B,) int64, attributes (B, S) bool, and where they come from.

    items: the B videos. indices, times: (B, T) frame of the video and its seconds. sizes: (B, 2) height and width of
    the video's own frames. With these a box of the clip maps back: x * sizes[b, 1] / W in frame indices[b, t].
    """

    clips: torch.Tensor
    labels: torch.Tensor
    attributes: torch.Tensor
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
            on_frames = {word: boxes_at(tube, indices, bridge=self.bridge) for word, tube in item.boxes.items()}
            found.append({word: (boxes * scale).clip(0, edges) for word, boxes in on_frames.items()})
        return found


@dataclass(frozen=True)
class _Decoded:
    """A clip as it is kept: pixels (3, T, H, W) uint8, with the indices, times and size of Clip."""

    pixels: torch.Tensor
    indices: NDArray[np.int64]
    times: NDArray[np.float64]
    size: tuple[int, int]


class FolderSource:
    """Clips of a Dataset, `frames` frames spread over each video and resized to `size` (height, width).

    bridge: boxes at most so many frames apart are joined by linear interpolation; 0 takes annotated frames alone.
    workers: videos decoded at a time. cache_bytes: decoded clips are kept in memory, as bytes, until so much is full
    (half a GiB holds 890 clips of 16 x 112 x 112); 0 keeps none.
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        frames: int = 16,
        size: tuple[int, int] = (112, 112),
        bridge: int = 0,
        workers: int = 4,
        cache_bytes: int = 1 << 29,
    ) -> None:
        self.dataset = dataset
        self.frames = checks.check_int(frames, "frames", 1)
        self.size = checks.check_size(size)
        self.bridge = checks.check_int(bridge, "bridge", 0)
        self.workers = checks.check_int(workers, "workers", 1)
        # Filled and never emptied: over a set that does not fit, dropping the oldest would miss every time.
        self._room = checks.check_int(cache_bytes, "cache_bytes", 0)
        self._kept: dict[str, _Decoded] = {}
        self._lock = Lock()

    @property
    def classes(self) -> tuple[str, ...]:
        """The C classes."""
        return self.dataset.classes

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """The S attributes."""
        return self.dataset.attribute_names

    @property
    def table(self) -> torch.Tensor:
        """Which class has which attribute: bool (C, S)."""
        return self.dataset.table.clone()

    @property
    def contents(self) -> str:
        """Every video with its split, class and attributes: what tells this data from other data of the same words."""
        rows = [(item.name, item.split, item.label, item.attributes.int().tolist()) for item in self.dataset.videos]
        return json.dumps(rows)

    def count(self, split: str) -> int:
        """Return how many clips a split has."""
        return self.dataset.count(split)

    def batch(self, split: str, indices: Iterable[SupportsIndex], device: torch.device | str = "cpu") -> FolderBatch:
        """Read clips by their places in `dataset.items(split)`, in any order and with repeats."""
        items = self.dataset.items(split)
        last = len(items) - 1
        if last < 0:
            raise checks.fail("split", "one with videos", f"{split!r}, which has none in {self.dataset.folder}")
        chosen = tuple(items[checks.check_int(as_int(place), "index", 0, last)] for place in indices)
        with ThreadPoolExecutor(self.workers) as pool:
            decoded = list(pool.map(self._decode, chosen))
        target, steps = torch.device(device), (len(chosen), self.frames)
        attributes = [item.attributes for item in chosen]
        return FolderBatch(
            clips=self._stack(decoded, target),
            labels=torch.tensor([item.label for item in chosen], dtype=torch.long, device=target),
            attributes=torch.stack(attributes).to(target) if chosen else self.table[:0].to(target),
            items=chosen,
            indices=np.array([clip.indices for clip in decoded], dtype=np.int64).reshape(steps),
            times=np.array([clip.times for clip in decoded], dtype=np.float64).reshape(steps),
            sizes=np.array([clip.size for clip in decoded], dtype=np.int64).reshape(-1, 2),
            bridge=self.bridge,
        )

    def _stack(self, decoded: list[_Decoded], device: torch.device) -> torch.Tensor:
        if not decoded:
            return torch.zeros(0, 3, self.frames, *self.size, device=device)
        return torch.stack([clip.pixels for clip in decoded]).to(device).float().div_(255.0)

    def _decode(self, item: Item) -> _Decoded:
        with self._lock:
            kept = self._kept.get(item.name)
        if kept is not None:
            return kept
        clip = read_clip(item.path, frames=self.frames, size=self.size)
        pixels = clip.frames.mul_(255.0).round_().byte()
        decoded = _Decoded(pixels, clip.indices, clip.times, clip.size)
        with self._lock:
            if item.name not in self._kept and pixels.nbytes <= self._room:
                self._kept[item.name] = decoded
                self._room -= pixels.nbytes
        return decoded


def boxes_at(tube: Tube, indices: NDArray[np.int64], *, bridge: int = 0) -> NDArray[np.float64]:
    """Boxes at frame indices, zeros where there is none: (T,) -> (T, 4), in the tube's pixels.

    Between two annotated frames that are at most `bridge` apart, corners are interpolated linearly. A frame that was
    annotated alone, and is not among the indices, counts for the nearest of them if that is half a step away or less.
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
    """Fill empty boxes (T, 4) in place with those of frames that stand alone, where a step passed over them."""
    if len(indices) < 2:
        return
    reach = np.diff(indices).max() / 2
    alone = ~np.isin(tube.frames - 1, tube.frames) & ~np.isin(tube.frames + 1, tube.frames)
    for frame, box in zip(tube.frames[alone], tube.boxes[alone], strict=True):
        step = int(np.abs(indices - frame).argmin())
        if not boxes[step].any() and abs(int(indices[step]) - int(frame)) <= reach:
            boxes[step] = box
