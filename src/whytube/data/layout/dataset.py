"""Dataset: an index of a user's videos, classes, attributes and boxes; no video is opened for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from whytube import checks
from whytube.data.layout.annotations import BOX_FILE, Track, read_attributes, read_boxes
from whytube.data.layout.clips import FolderSource
from whytube.data.layout.videos import Names, find_videos
from whytube.data.rows import Problems
from whytube.data.source import ACTOR, SPLITS
from whytube.errors import DataError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    import torch

    from whytube.tubes import Tube


@dataclass(frozen=True, eq=False)
class Item:
    """One video.

    name: its path relative to the data's folder, as CSV files write it. label: place of its class in the classes.
    attributes: (S,) bool. boxes: attribute, or ACTOR, -> Tube, in pixels and frames of the video itself.
    split: train, val, test, or None for a video that is in no split.
    """

    name: str
    path: Path
    label: int
    attributes: torch.Tensor = field(repr=False)
    boxes: Mapping[str, Tube] = field(repr=False)
    split: str | None


@dataclass(frozen=True, eq=False)
class Dataset:
    """C classes, S attributes, which class has which (table, (C, S) bool), and the videos.

    `videos` stand in the order of the manifest, else sorted by class and name.
    """

    folder: Path
    classes: tuple[str, ...]
    attribute_names: tuple[str, ...]
    table: torch.Tensor = field(repr=False)
    videos: tuple[Item, ...] = field(repr=False)

    def items(self, split: str) -> tuple[Item, ...]:
        """Return the videos of a split in rounds: the first of every class, the second of every class, ...

        So, as in the embedded world, the first videos of a split are not all of one class.
        """
        return self._of_split[checks.check_choice(split, "split", SPLITS)]

    def count(self, split: str) -> int:
        """Return how many videos a split has."""
        return len(self.items(split))

    def source(
        self,
        *,
        frames: int = 16,
        size: tuple[int, int] = (112, 112),
        bridge: int = 0,
        workers: int = 4,
        cache_bytes: int = 1 << 29,
    ) -> FolderSource:
        """Return the same data as batches of clips of `frames` frames of `size` (height, width)."""
        return FolderSource(self, frames=frames, size=size, bridge=bridge, workers=workers, cache_bytes=cache_bytes)

    @cached_property
    def _of_split(self) -> dict[str, tuple[Item, ...]]:
        rounds: dict[str, list[tuple[int, Item]]] = {name: [] for name in SPLITS}
        seen: Counter[tuple[str, int]] = Counter()
        for item in self.videos:
            if item.split is not None:
                rounds[item.split].append((seen[item.split, item.label], item))
                seen[item.split, item.label] += 1
        return {name: tuple(item for _, item in sorted(turns, key=itemgetter(0))) for name, turns in rounds.items()}


def read_dataset(folder: str | os.PathLike[str]) -> Dataset:
    """Index the data under `folder`; the layout is described in docs/data.md.

    Raises DataError with the first few problems where the data cannot be used. Videos are opened when clips are asked
    for; `check_dataset` opens them all.
    """
    problems = Problems(checked_folder(folder))
    dataset, _ = index(problems)
    problems.raise_errors(f"the data in {problems.folder}")
    return dataset


def index(problems: Problems) -> tuple[Dataset, dict[str, dict[str, Track]]]:
    """Read what can be read under the folder of `problems`; also returns the tracks with their lines."""
    folder = problems.folder
    try:
        videos = find_videos(folder, problems)
    except OSError as error:
        raise DataError(f"{error.filename or folder} cannot be read: {error.strerror or error}") from error
    names = Names(videos)
    table, rows = read_attributes(folder, videos, names, problems)
    tracks = read_boxes(folder, names, table.attribute_names, problems)
    items = []
    for video in videos:
        if video.name in rows:
            row, of_video = rows[video.name], tracks.get(video.name, {})
            boxes = {attribute: track.tube for attribute, track in of_video.items()}
            items.append(Item(video.name, video.path, table.classes.index(video.label), row, boxes, video.split))
            for attribute, track in of_video.items():
                if attribute != ACTOR and not row[table.attribute_names.index(attribute)]:
                    text = f"{video.name!r} has boxes of {attribute!r} but not the attribute. Is its row right?"
                    problems.warn(folder / BOX_FILE, text, int(track.lines.min()))
    return Dataset(folder, table.classes, table.attribute_names, table.values, tuple(items)), tracks


def checked_folder(folder: str | os.PathLike[str]) -> Path:
    """Require a folder."""
    place = Path(folder)
    if not place.is_dir():
        what = "is a file" if place.exists() else "does not exist"
        raise DataError(f"{place} {what}; expected a folder with videos/<class>/ or a manifest.csv, see docs/data.md")
    return place
