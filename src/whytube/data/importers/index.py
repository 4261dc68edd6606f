"""What importers share: read lists, find the listed videos, hold some out, write a data folder that points to them."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypedDict

from whytube import checks
from whytube.data.layout.annotations import BOX_COLUMNS, BOX_FILE, CLASS_FILE, box_rows, write_classes
from whytube.data.layout.videos import MANIFEST, VIDEO_SUFFIXES, is_video, visible
from whytube.data.rows import listed, write_rows
from whytube.data.source import ACTOR, SPLITS
from whytube.errors import DataError
from whytube.files import whole_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from whytube.data.tables import AttributeTable
    from whytube.tubes import Tube


@dataclass(frozen=True)
class Listing:
    """What the files of a data set say; a video is called class/name, without its ending.

    splits: train or test, of all listed videos. found: where each video under the folder `videos` lies.
    group: the recording a video was cut from. boxes: attribute, or ACTOR, -> Tube. notes: what a user should know.
    """

    table: AttributeTable
    splits: Mapping[str, str]
    videos: Path
    found: Mapping[str, Path]
    group: Callable[[str], str]
    boxes: Callable[[str], Mapping[str, Tube]] = lambda _name: {}
    notes: Sequence[str] = ()


class Options(TypedDict, total=False):
    """What all importers can be told.

    val: share of the training videos that becomes val, by whole groups; by default 0.
    relative: write paths from the new folder to the videos, so that both can be moved together; else absolute ones.
    """

    val: float
    relative: bool


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
            text = "listed videos are not on disk and left out"
            lines.append(f"{len(self.missing)} {text}: {listed(self.missing, 3)}")
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


def check_class(name: str, table: AttributeTable, where: object) -> None:
    """Require that the class of class/name is in the table; `where` it was read begins the message."""
    label = name.partition("/")[0]
    if label not in table.classes:
        raise DataError(f"{where}: {checks.unknown_name('class', label, table.classes)}")


def read_list(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield path:line, as editors understand it, and blank-separated cells of every line that is not blank."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the list {path}: {getattr(error, 'strerror', None) or error}") from error
    for line, content in enumerate(text.splitlines(), start=1):
        if content.strip():
            yield f"{path}:{line}", content.split()


def read_splits(
    *, train: Path, test: Path, table: AttributeTable | None = None, spelt: Callable[[str], str] = str
) -> dict[str, str]:
    """Read two lists that have one class/name in the first cell of each line: class/name -> train or test.

    table: requires its classes. spelt: changes a name to how the data set is indexed.
    """
    splits: dict[str, str] = {}
    for split, path in (("train", train), ("test", test)):
        for where, cells in read_list(path):
            name = spelt(without_ending(cells[0]))
            if table is not None:
                check_class(name, table, where)
            if name in splits:
                raise DataError(f"{where}: {name!r} is listed already, in {splits[name]}. Keep one")
            splits[name] = split
    return splits


def write_index(out: str | os.PathLike[str], listing: Listing, *, val: float = 0.0, relative: bool = False) -> Imported:
    """Write manifest.csv, attributes.csv and boxes.csv of the listed videos that were found to the new folder `out`."""
    boxes = {name: listing.boxes(name) for name in listing.splits if name in listing.found}
    if not boxes:
        names = list(listing.splits)
        example = f", for example {listing.videos / names[0]} with its ending" if names else ""
        text = f"none of the {len(names)} listed videos is under {listing.videos}"
        raise DataError(f"{text}; expected <class>/<video>{example}")
    splits = hold_out({name: listing.splits[name] for name in boxes}, val, group=listing.group)
    ordered = sorted(splits, key=lambda name: name.partition("/"))
    home = Path(out).parent.resolve() / Path(out).name
    with whole_folder(out, error=DataError) as folder:
        write_classes(folder / CLASS_FILE, listing.table)
        manifest = [["video", "class", "split"]]
        for name in ordered:
            # The system follows links before it goes up by "..", so both ends have to be where they really are.
            place = listing.found[name].parent.resolve() / listing.found[name].name
            written = Path(os.path.relpath(place, home)) if relative else place
            manifest.append([written.as_posix(), name.partition("/")[0], splits[name]])
        write_rows(folder / MANIFEST, manifest)
        if any(boxes.values()):
            write_rows(folder / BOX_FILE, _box_rows({name: boxes[name] for name in ordered}))
    counts = Counter(splits.values())
    return Imported(
        folder=str(out),
        videos={split: counts[split] for split in SPLITS},
        missing=tuple(name for name in listing.splits if name not in boxes),
        actors=sum(ACTOR in tubes for tubes in boxes.values()),
        tracks=sum(attribute != ACTOR for tubes in boxes.values() for attribute in tubes),
        notes=tuple(listing.notes),
    )


def _box_rows(boxes: Mapping[str, Mapping[str, Tube]]) -> Iterator[Sequence[str | int]]:
    yield BOX_COLUMNS
    for name, tubes in boxes.items():
        for attribute, tube in tubes.items():
            yield from box_rows(name, attribute, tube.frames.tolist(), tube.boxes)


def hold_out(splits: Mapping[str, str], share: float, *, group: Callable[[str], str]) -> dict[str, str]:
    """Move whole groups from train to val, about `share` of each class's videos; one group at least stays.

    Groups are drawn by a hash of class/group, so that the choice is the same on every machine.
    """
    if not 0 <= share < 1:
        raise checks.fail("val", "a share of the training videos from 0 to below 1", share)
    groups = {name: f"{name.partition('/')[0]}/{group(name)}" for name in splits}
    sizes: dict[str, Counter[str]] = {}
    for name, split in splits.items():
        if split == "train":
            sizes.setdefault(name.partition("/")[0], Counter())[groups[name]] += 1
    held = set()
    for of_class in sizes.values():
        room = share * of_class.total()
        for key in sorted(of_class, key=lambda key: hashlib.sha256(key.encode(errors="surrogateescape")).digest())[1:]:
            if of_class[key] / 2 <= room:
                held.add(key)
                room -= of_class[key]
    return {name: "val" if split == "train" and groups[name] in held else split for name, split in splits.items()}
