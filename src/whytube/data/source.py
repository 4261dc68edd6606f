"""Where labelled clips come from: what the embedded world, a folder of videos and a data set have in common."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch

from whytube.checks import check_int, fail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SPLITS = ("train", "val", "test")
ACTOR = "actor"
"""The box track of whoever acts, among those of attributes: many data sets have no other boxes. It is no attribute."""


class ClipBatch(Protocol):
    """B clips with what is known about them."""

    @property
    def clips(self) -> torch.Tensor:
        """Float (B, 3, T, H, W) in [0, 1]."""

    @property
    def labels(self) -> torch.Tensor:
        """Place of each clip's class in the source's classes: int64 (B,)."""

    @property
    def attributes(self) -> torch.Tensor:
        """S(x), the attributes each clip has: bool (B, S)."""


class Source(Protocol):
    """Labelled clips by split and index; the same index always gives the same clip."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The C class names."""

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """The S attribute names."""

    @property
    def table(self) -> torch.Tensor:
        """Which class has which attribute: bool (C, S)."""

    def count(self, split: str) -> int | None:
        """Return how many clips a split ("train", "val" or "test") has; None where there is no end of them."""

    def batch(self, split: str, indices: Sequence[int], device: torch.device | str = "cpu") -> ClipBatch:
        """Return the clips at these indices, on the device.

        Training asks in a thread of its own, for one batch after the other.
        A source may also have `begin(split, indices, device)`, which begins to read a batch and returns a function that
        gives it: training then calls it for the next batches, too.
        """


def fingerprint(source: Source) -> str:
    """SHA-256 of classes, attributes, table, numbers of clips and what a source says of its `contents`; 16 digits."""
    told = {
        "classes": list(source.classes),
        "attributes": list(source.attribute_names),
        "table": source.table.int().tolist(),
        "clips": {split: source.count(split) for split in SPLITS},
        "contents": _contents(source),
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def _contents(source: Source) -> str:
    """Return what a source says of its clips, where it has such a property: sources of a reader's own need none."""
    return str(getattr(source, "contents", ""))


def clips_to_take(source: Source, split: str, count: int | None) -> int:
    """Return how many clips the first `count` of a split are, or all: at least one."""
    available = source.count(split)
    if count is None and available is None:
        raise fail("count", f"a number, as there is no end of clips in {split!r}", None)
    limits = [number for number in (count, available) if number is not None]
    return check_int(min(limits), "count", 1)


def boxes_of(batch: ClipBatch) -> list[dict[str, Any]]:
    """Per clip, attribute or ACTOR -> boxes (T, 4) in pixels of the clip, zeros for no box; {} where none are known."""
    return getattr(batch, "boxes", None) or [{} for _ in batch.clips]


def boxed_indices(source: Source, split: str) -> Sequence[int] | None:
    """Return the indices of the clips with boxes of attributes; None where all have some, without end.

    It is what a source says by a method `boxed(split)`, without opening its videos; one without it has no boxes.
    """
    told: Sequence[int] | None = source.boxed(split) if hasattr(source, "boxed") else ()
    return told


@dataclass(frozen=True, eq=False)
class PlainBatch:
    """A ClipBatch and no more: clips (B, 3, T, H, W), labels (B,), attributes (B, S)."""

    clips: torch.Tensor
    labels: torch.Tensor
    attributes: torch.Tensor


@dataclass(frozen=True, eq=False)
class BoxedBatch(PlainBatch):
    """A batch with its boxes; see `boxes_of`."""

    boxes: list[dict[str, Any]]


class PermutedTable:
    """A source whose classes have exchanged their attributes: a control, with which concept figures must fall.

    Every class gets the row of another one, and a clip the row of its class: attributes still tell the classes apart,
    but all are wrong. Clips, labels and boxes stay as they are.
    """

    def __init__(self, source: Source, *, seed: int = 0) -> None:
        order = torch.from_numpy(np.random.default_rng(seed).permutation(len(source.classes)))
        other = torch.empty_like(order).scatter(0, order, order.roll(1))  # one round trip, so that no class stays
        self.source, self.table = source, source.table[other]
        self.classes, self.attribute_names = source.classes, source.attribute_names
        self.contents = _contents(source)

    def count(self, split: str) -> int | None:
        """Return how many clips a split has."""
        return self.source.count(split)

    def boxed(self, split: str) -> Sequence[int] | None:
        """Return which clips have boxes, see `boxed_indices`."""
        return boxed_indices(self.source, split)

    def batch(self, split: str, indices: Sequence[int], device: torch.device | str = "cpu") -> BoxedBatch:
        """Return the source's clips with the exchanged attributes of their classes."""
        batch = self.source.batch(split, indices, device)
        return BoxedBatch(batch.clips, batch.labels, self.table.to(device)[batch.labels], boxes_of(batch))


class RandomLabels:
    """A source whose training clips have labels of chance: a control, whose classifier learns nothing that holds.

    A clip always has the same wrong or right label, with the attributes of that class; clips of other splits keep
    theirs.
    """

    def __init__(self, source: Source, *, seed: int = 0) -> None:
        self.source, self.seed = source, seed
        self.classes, self.attribute_names, self.table = source.classes, source.attribute_names, source.table
        self.contents = f"{_contents(source)} random labels {seed}"

    def count(self, split: str) -> int | None:
        """Return how many clips a split has."""
        return self.source.count(split)

    def batch(self, split: str, indices: Sequence[int], device: torch.device | str = "cpu") -> ClipBatch:
        """Return the source's clips; those of "train" with labels drawn from all classes alike."""
        batch = self.source.batch(split, indices, device)
        if split != "train":
            return batch
        drawn = [np.random.default_rng([self.seed, int(index)]).integers(len(self.classes)) for index in indices]
        labels = torch.tensor(drawn, dtype=torch.long, device=batch.labels.device)
        return PlainBatch(batch.clips, labels, self.table.to(labels.device)[labels])


class Kept:
    """The first clips of one split of a source, kept on a device as bytes, for showing them many times.

    own, whole: for several processes that read the clips together and keep all of them: which ones this process reads,
    and a function that puts the rows of all processes together. Boxes are not put together.
    """

    def __init__(
        self,
        source: Source,
        split: str,
        count: int,
        *,
        device: torch.device | str,
        chunk: int = 64,
        own: slice | None = None,
        whole: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        check_int(count, "count", 1)
        indices = range(count)[own or slice(None)]
        self.classes, self.attribute_names, self.table = source.classes, source.attribute_names, source.table
        self.split = split
        parts = []
        self._boxes: list[dict[str, Any]] = []
        for start in range(0, len(indices), chunk):
            made = source.batch(split, indices[start : start + chunk], device)
            parts.append(((made.clips * 255).round().to(torch.uint8), made.labels, made.attributes))
            self._boxes += boxes_of(made)
        columns = [torch.cat(column) for column in zip(*parts, strict=True)]
        if whole is not None:
            columns, self._boxes = [whole(column) for column in columns], [{}] * count
        self._clips, self._labels, self._has = columns

    def count(self, split: str) -> int | None:
        """Return how many clips are kept; none of other splits."""
        return len(self._clips) if split == self.split else 0

    def batch(self, split: str, indices: Sequence[int], device: torch.device | str = "cpu") -> BoxedBatch:
        """Return kept clips, rounded to 1/255."""
        places = [int(place) for place in indices]  # also kept here: asking a GPU for them would wait for its work
        chosen = torch.as_tensor(places, device=self._clips.device)
        if split != self.split:
            raise LookupError(f"only clips of {self.split!r} are kept, not of {split!r}")
        clips, boxes = self._clips[chosen].to(device).float() / 255, [self._boxes[place] for place in places]
        return BoxedBatch(clips, self._labels[chosen].to(device), self._has[chosen].to(device), boxes)
