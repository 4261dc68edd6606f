"""What importers share: find the videos that lists name, hold some out, write a data folder that points to them."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from whytube import checks
from whytube.data.layout.annotations import BOX_FILE, CLASS_FILE
from whytube.data.layout.videos import MANIFEST, SPLITS, VIDEO_SUFFIXES, is_video, visible
from whytube.data.layout.writing import BOX_COLUMNS, box_rows, class_rows, write_rows
from whytube.data.source import ACTOR
from whytube.errors import DataError
from whytube.files import whole_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from whytube.data.tables import AttributeTable
    from whytube.tubes import Tube


@dataclass(frozen=True, eq=False)
class Entry:
    """One video where it lies.

    name: among the videos of its class. group: the recording it was cut from. boxes: attribute, or ACTOR, -> Tube.
    """

    name: str
    path: Path
    label: str
    split: str
    group: str
    boxes: Mapping[str, Tube] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Imported:
    """What an importer wrote to `folder`; printed, it is a summary.

    videos: how many of each split. missing: listed videos that are not on disk, as class/name. actors: how many videos
    have boxes of the actor. tracks: of attributes. notes: what else a user should know.
    """

    folder: str
    videos: dict[str, int]
    missing: tuple[str, ...]
    actors: int
    tracks: int
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {split}" for split, count in self.videos.items() if count)
        lines = [f"{self.folder}: {sum(self.videos.values())} videos ({counts})"]
        if self.missing:
            some = ", ".join(self.missing[:3]) + (", ..." if len(self.missing) > 3 else "")
            lines.append(f"{len(self.missing)} listed videos are not on disk and left out: {some}")
        lines.append(f"{self.actors} videos have boxes of the actor; {self.tracks} tracks of attributes")
        return "\n".join([*lines, *self.notes])


def without_ending(name: str) -> str:
    """Leave out the ending of a video's file; other dots are part of the name."""
    ending = PurePosixPath(name).suffix
    return name.removesuffix(ending) if ending.lower() in VIDEO_SUFFIXES else name


def videos_under(folder: Path) -> dict[str, Path]:
    """Find all videos in class folders: class/name without ending -> path."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; expected the unpacked videos in it, <class>/<video>")
    places = [place for place in visible(folder) if place.is_dir()]
    entries = ((place.name, entry) for place in places for entry in visible(place) if is_video(entry))
    return {f"{label}/{without_ending(entry.name)}": entry for label, entry in entries}


def read_list(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and blank-separated words of every line of a text file that is not blank."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the list {path}: {getattr(error, 'strerror', None) or error}") from error
    for line, content in enumerate(text.splitlines(), start=1):
        if content.strip():
            yield line, content.split()


def write_index(
    out: str | os.PathLike[str],
    entries: Sequence[Entry],
    *,
    table: AttributeTable,
    listed: Sequence[str],
    videos: Path,
    val: float = 0.0,
    relative: bool = False,
    notes: Sequence[str] = (),
) -> Imported:
    """Write manifest.csv, attributes.csv and boxes.csv of the videos to the new folder `out`.

    listed: class/name of all videos that should have been found under `videos`. val: share of train, by whole groups.
    relative: paths from `out` to the videos, so that both can be moved together; else they are absolute.
    """
    if not entries:
        example = f", for example {videos / listed[0]} with its ending" if listed else ""
        raise DataError(f"none of the {len(listed)} listed videos is under {videos}; expected <class>/<video>{example}")
    entries = sorted(hold_out(entries, val), key=lambda entry: (entry.label, entry.name))
    with whole_folder(out, error=DataError) as folder:
        write_rows(folder / MANIFEST, _manifest_rows(entries, Path(out), relative=relative))
        write_rows(folder / CLASS_FILE, class_rows(table.classes, table.attribute_names, table.values))
        if any(entry.boxes for entry in entries):
            write_rows(folder / BOX_FILE, _box_rows(entries))
    counts = Counter(entry.split for entry in entries)
    there = {f"{entry.label}/{entry.name}" for entry in entries}
    return Imported(
        folder=str(out),
        videos={split: counts[split] for split in SPLITS},
        missing=tuple(name for name in listed if name not in there),
        actors=sum(ACTOR in entry.boxes for entry in entries),
        tracks=sum(word != ACTOR for entry in entries for word in entry.boxes),
        notes=tuple(notes),
    )


def hold_out(entries: Sequence[Entry], share: float) -> list[Entry]:
    """Move whole groups from train to val, about `share` of each class's videos; one group at least stays.

    Groups are drawn by a hash of their names, so that the choice is the same on every machine.
    """
    if not 0 <= share < 1:
        raise checks.fail("val", "a share of the training videos from 0 to below 1", share)
    sizes: dict[str, Counter[str]] = {}
    for entry in entries:
        if entry.split == "train":
            sizes.setdefault(entry.label, Counter())[entry.group] += 1
    held: set[tuple[str, str]] = set()
    for label, groups in sizes.items():
        room = share * groups.total()
        for group in sorted(groups, key=lambda group: hashlib.sha256(f"{label}/{group}".encode()).digest())[1:]:
            if groups[group] / 2 <= room:
                held.add((label, group))
                room -= groups[group]
    return [
        replace(entry, split="val") if entry.split == "train" and (entry.label, entry.group) in held else entry
        for entry in entries
    ]


def _manifest_rows(entries: Sequence[Entry], out: Path, *, relative: bool) -> Iterator[list[str]]:
    yield ["video", "class", "split"]
    home = out.parent.resolve() / out.name
    for entry in entries:
        # The system follows links before it goes up by "..", so both ends have to be where they really are.
        place = entry.path.parent.resolve() / entry.path.name
        written = Path(os.path.relpath(place, home)) if relative else place
        yield [written.as_posix(), entry.label, entry.split]


def _box_rows(entries: Sequence[Entry]) -> Iterator[Sequence[str | int]]:
    yield BOX_COLUMNS
    for entry in entries:
        for word, tube in entry.boxes.items():
            yield from box_rows(f"{entry.label}/{entry.name}", word, tube.frames.tolist(), tube.boxes)
