"""check_dataset: every problem of a user's data, with its file and line, and how much data there is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, astuple, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from whytube.data.layout.annotations import BOX_FILE, Track
from whytube.data.layout.dataset import Item, checked_folder, index
from whytube.data.rows import Problem, Problems, grouped
from whytube.data.source import ACTOR, SPLITS
from whytube.errors import VideoError, printable
from whytube.video import VideoInfo, iter_windows, probe

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

# A box may reach so many pixels out of the frame without a warning: annotation tools round.
SLACK = 1.0


@dataclass(frozen=True)
class Statistics:
    """The paper's Table 1 for one split: classes and attributes that occur in it; tracks of attributes, their boxes.

    actors: videos with boxes of the actor, which are not among the others.
    """

    split: str
    videos: int
    classes: int
    attributes: int
    tracks: int
    boxes: int
    actors: int


@dataclass(frozen=True)
class Report:
    """What `check_dataset` found; printed, it is a table followed by a line for every kind of problem."""

    folder: str
    problems: tuple[Problem, ...]
    statistics: tuple[Statistics, ...]

    @property
    def ok(self) -> bool:
        """Whether the data can be used: there may be warnings but no errors."""
        return not any(problem.level == "error" for problem in self.problems)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers for JSON."""
        return {"ok": self.ok, **asdict(self)}

    def __str__(self) -> str:
        table = [[head.name for head in fields(Statistics)], *(astuple(row) for row in self.statistics)]
        lines = [f"{split:8}" + "".join(f"{cell:>12}" for cell in cells) for split, *cells in table]
        errors = sum(problem.level == "error" for problem in self.problems)
        lines += ["", *grouped(self.problems)] if self.problems else []
        lines += ["", f"{self.folder}: errors: {errors}, warnings: {len(self.problems) - errors}"]
        return "\n".join(lines)


def check_dataset(
    folder: str | os.PathLike[str],
    *,
    deep: bool = False,
    workers: int = 4,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """List everything that is wrong with the data under `folder`, and count what there is.

    Every video is opened and its first frame decoded; with `deep` all frames are.
    progress: called with the number of videos done and of all. Raises DataError only where there is no such folder.
    """
    problems = Problems(checked_folder(folder))
    dataset, tracks = index(problems)
    with ThreadPoolExecutor(workers) as pool:
        probed = pool.map(lambda item: _probe(item, deep=deep), dataset.videos)
        for done, (item, result) in enumerate(zip(dataset.videos, probed, strict=True), start=1):
            if isinstance(result, str):
                problems.error(item.path, result)
            elif result.frames == 1:
                text = "the video has only one frame: nothing moves in it, and a clip is that picture again and again"
                problems.warn(item.path, f"{text}. Replace it, or leave it out{_unused(tracks.get(item.name, {}))}")
            else:
                _check_tracks(result, tracks.get(item.name, {}), dataset.folder / BOX_FILE, problems)
            if progress is not None:
                progress(done, len(dataset.videos))
    groups = {split: dataset.items(split) for split in SPLITS} | {"all": dataset.videos}
    statistics = tuple(_count(split, items) for split, items in groups.items())
    return Report(str(problems.folder), tuple(problems.found), statistics)


def _probe(item: Item, *, deep: bool) -> VideoInfo | str:
    """Describe a video, or say why it cannot be read."""
    try:
        info = probe(item.path)
        if not deep:
            return info
        last = 0
        for window in iter_windows(item.path, frames=16, size=(16, 16)):
            last = int(window.indices[-1])
        return replace(info, frames=last + 1)
    except VideoError as error:
        return str(error.bare).replace(printable(item.path), "the video")


def _check_tracks(info: VideoInfo, tracks: dict[str, Track], path: Path, problems: Problems) -> None:
    (height, width), frame = info.size, f"frame of {info.size[1]} x {info.size[0]}"
    for attribute, track in tracks.items():
        x1, y1, x2, y2 = track.tube.boxes.T
        late = track.tube.frames >= info.frames
        outside = (x1 >= width) | (y1 >= height) | (x2 <= 0) | (y2 <= 0)
        beyond = np.stack([-x1, -y1, x2 - width, y2 - height]).max(0)
        for at in np.flatnonzero(outside & ~late):
            box = ",".join(format(v, "g") for v in track.tube.boxes[at])
            problems.error(path, f"the box {box} lies outside the {frame} pixels", int(track.lines[at]))
        if late.any():
            text = f"frame {track.tube.frames[late][0]} of {attribute!r} does not exist"
            problems.warn(path, f"{text}: the video has {info.frames} frames{_more(late)}", int(track.lines[late][0]))
        partly = (beyond > SLACK) & ~outside & ~late
        if partly.any():
            text = f"the box of {attribute!r} reaches {beyond[partly][0]:g} pixels out of the {frame}"
            problems.warn(path, f"{text} and is cut off{_more(partly)}", int(track.lines[partly][0]))


def _unused(tracks: dict[str, Track]) -> str:
    """Say how many boxes stand at frames after the first."""
    boxes = sum(int((track.tube.frames > 0).sum()) for track in tracks.values())
    return f" ({BOX_FILE} has {boxes} boxes at later frames)" if boxes else ""


def _more(which: np.ndarray[Any, np.dtype[np.bool_]]) -> str:
    others = int(which.sum()) - 1
    return f" (and {others} more of its frames)" if others else ""


def _count(split: str, items: tuple[Item, ...]) -> Statistics:
    attributes = int(torch.stack([item.attributes for item in items]).any(0).sum()) if items else 0
    tubes = [tube for item in items for name, tube in item.boxes.items() if name != ACTOR]
    return Statistics(
        split=split,
        videos=len(items),
        classes=len({item.label for item in items}),
        attributes=attributes,
        tracks=len(tubes),
        boxes=sum(map(len, tubes)),
        actors=sum(ACTOR in item.boxes for item in items),
    )
