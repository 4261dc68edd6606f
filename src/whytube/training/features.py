"""Features of training clips, kept: a frozen classifier need not look twice at a clip that is shown many times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from whytube.classifiers.base import Features
from whytube.training.memory import free_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from whytube.classifiers.base import VideoClassifier
    from whytube.data.source import Source

SHARE = 0.5
"""Of the memory that is free as a run begins; features that would take more are not kept."""


@dataclass(frozen=True, eq=False)
class SeenBatch:
    """A ClipBatch with what the classifier says of its clips; these are read only where they are asked for."""

    features: Features
    labels: torch.Tensor
    attributes: torch.Tensor
    read: Callable[[], torch.Tensor]

    @property
    def clips(self) -> torch.Tensor:
        """Float (B, 3, T, H, W) in [0, 1]."""
        return self.read()


class SeenClips:
    """A source whose clips come with a frozen classifier's logits and maps, which are made once and kept, as they are.

    Clips are read and run in fixed groups, each when one of it is first shown: last bits depend on a batch's size, and
    a resumed run shall have the same.
    groups: the indices of "train", each in one group. scales: how many of the maps are kept, the last ones. place: the
    device that they are kept on.
    """

    def __init__(
        self,
        classifier: VideoClassifier,
        source: Source,
        groups: Sequence[Sequence[int]],
        *,
        scales: int,
        place: torch.device,
    ) -> None:
        self.classes, self.attribute_names, self.table = source.classes, source.attribute_names, source.table
        self.classifier, self.source, self.scales, self.place = classifier, source, scales, place
        self._left = {index: group for group in groups for index in group}
        self._columns: list[torch.Tensor] = []  # logits, labels, attributes, and the maps: a row per clip

    def count(self, split: str) -> int | None:
        """Return how many clips a split has."""
        return self.source.count(split)

    @torch.no_grad()
    def batch(self, split: str, indices: Sequence[int], device: torch.device | str = "cpu") -> SeenBatch:
        """Return what is known of clips of "train"; those that were never shown are run first."""
        if split != "train":
            raise LookupError(f"only features of 'train' are kept, not of {split!r}")
        for index in indices:
            if index in self._left:
                self._keep(self._left[index], device)
        rows = torch.as_tensor(list(indices), device=self.place)
        logits, labels, attributes, *maps = (column[rows].to(device) for column in self._columns)
        read = lambda: self.source.batch(split, indices, device).clips  # noqa: E731
        return SeenBatch(Features(logits, tuple(maps)), labels, attributes, read)

    def _keep(self, group: Sequence[int], device: torch.device | str) -> None:
        shown = self.source.batch("train", group, device)
        logits, maps = self.classifier.features(shown.clips)
        made = (logits, shown.labels, shown.attributes, *maps[-self.scales :])
        if not self._columns:
            self._columns = [torch.empty(len(self._left), *x.shape[1:], dtype=x.dtype, device=self.place) for x in made]
        rows = torch.as_tensor(list(group), device=self.place)
        for column, x in zip(self._columns, made, strict=True):
            column[rows] = x.to(self.place)
        for index in group:
            del self._left[index]


def bytes_of_features(shapes: Sequence[tuple[int, ...]], classes: int, clips: int) -> int:
    """Bytes of maps (d, t, h, w) and logits of so many clips, in float32."""
    return 4 * clips * (classes + sum(math.prod(shape) for shape in shapes))


def place_of_features(
    size: int, device: torch.device, *, clips: int | None, shown: int, processes: int = 1
) -> torch.device | None:
    """Say where features of `size` bytes are kept: on the device, or in the host's memory; None for nowhere.

    clips: different ones, None for no end of them. shown: in all; where none comes twice, nothing is kept. processes:
    that share the host's memory, and each keep features of their own.
    """
    if clips is None or shown <= clips:
        return None
    for place in (device, torch.device("cpu")):
        free = free_bytes(place)
        if free is not None and size * (processes if place.type == "cpu" else 1) <= SHARE * free:
            return place
    return None
