"""Which videos there are, of which class and in which split."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from whytube.data.rows import Problems, read_sheet
from whytube.video.frames import FRAME_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SPLITS = ("train", "val", "test")
MANIFEST, SPLIT_FILE, VIDEO_FOLDER = "manifest.csv", "splits.csv", "videos"
# Other endings have to be listed in a manifest, which takes what is there.
VIDEO_SUFFIXES = frozenset(
    {".3gp", ".avi", ".flv", ".m2ts", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".mts", ".ogv", ".seq", ".ts"}
    | {".webm", ".wmv"}
)


@dataclass(frozen=True)
class Video:
    """One video: its name in all CSV files, where it lies, its class and split, and where this was said."""

    name: str
    path: Path
    label: str
    split: str | None
    file: Path
    line: int | None = None


class Names:
    """Find a video by its name as a CSV file writes it.

    A name is the path relative to the data's folder. `videos/` in front and the ending may be left out where that
    leaves no doubt, and `class/name` stands for a video that lies anywhere.
    """

    def __init__(self, videos: Sequence[Video]) -> None:
        self._videos = {video.name: video for video in videos}
        self._short: dict[str, list[Video]] = {}
        self._of_class: dict[str, list[Video]] = {}
        self._asked: dict[str, Video | str] = {}
        for video in videos:
            for stem in {PurePosixPath(video.name).name, PurePosixPath(video.name).stem}:
                self._of_class.setdefault(f"{video.label}/{stem}", []).append(video)
            for alias in _aliases(video.name):
                self._short.setdefault(alias, []).append(video)

    def find(self, written: str, problems: Problems) -> Video | str:
        """Return the video, or what is wrong with the name."""
        if written not in self._asked:  # boxes.csv has a row per frame
            self._asked[written] = self._look_up(written, problems)
        return self._asked[written]

    def _look_up(self, written: str, problems: Problems) -> Video | str:
        if written in self._videos:
            return self._videos[written]
        name = _tidy(written)
        if name in self._videos:
            return self._videos[name]
        found = self._short.get(name) or self._of_class.get(name, [])
        if len(found) > 1:
            return f"{written!r} may be {found[0].name!r} or {found[1].name!r}. Write the name with its ending"
        return found[0] if found else problems.unknown("video", written, self._videos)


def _tidy(written: str) -> str:
    return PurePosixPath(written.replace("\\", "/")).as_posix()


def _aliases(name: str) -> set[str]:
    path = PurePosixPath(name)
    shapes = {path, path.with_suffix("")} if path.suffix else {path}
    inside = {PurePosixPath(*p.parts[1:]) for p in shapes if p.parts[:1] == (VIDEO_FOLDER,)}
    return {p.as_posix() for p in shapes | inside}


def find_videos(folder: Path, problems: Problems) -> list[Video]:
    """List the videos of manifest.csv, else those in class folders, with their splits; nothing is opened."""
    if (folder / MANIFEST).is_file():
        videos, given = _from_manifest(folder, problems)
    else:
        videos, given = list(_from_folders(folder, problems)), False
    if not videos:
        problems.error(folder, "no videos. Expected videos/<class>/<name>.mp4 (or .avi, ...), or a manifest.csv")
    if (folder / SPLIT_FILE).is_file():
        return _with_split_file(folder / SPLIT_FILE, videos, problems)
    if given or not videos:
        return videos
    split = [replace(video, split=split_by_name(video)) for video in videos]
    counts = Counter(video.split for video in split)
    told = ", ".join(f"{counts[name]} {name}" for name in SPLITS)
    problems.warn(folder, f"no {SPLIT_FILE}: splits were drawn by name ({told}). Write one to choose them yourself")
    return split


def split_by_name(video: Video) -> str:
    """Draw a split from `class/name` alone: 70 % train, 10 % val, 20 % test; new videos move no others."""
    key = f"{video.label}/{PurePosixPath(video.name).stem}"
    place = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % 100
    return "train" if place < 70 else "val" if place < 80 else "test"


def _from_manifest(folder: Path, problems: Problems) -> tuple[list[Video], bool]:
    """Read manifest.csv; also returns whether it gives splits."""
    path = folder / MANIFEST
    sheet = read_sheet(path, problems, required=("video", "class"), optional=("split",))
    videos: dict[Path, Video] = {}
    given = sheet is not None and "split" in sheet.columns
    for row in sheet.rows if sheet else []:
        name = _tidy(row.cells["video"])
        place = folder / name
        if not row.cells["video"] or not row.cells["class"]:
            problems.error(path, "a video and its class are needed, got an empty cell", row.line)
        elif place in videos:
            problems.error(path, f"{name!r} comes again, after line {videos[place].line}. Keep one row", row.line)
        elif not place.exists():
            problems.error(path, f"no file or folder {place}. Put it there, or correct the path", row.line)
        else:
            split = _checked_split(row.cells["split"], path, row.line, problems) if given else None
            videos[place] = Video(name, place, row.cells["class"], split, path, row.line)
    return list(videos.values()), given


def _from_folders(folder: Path, problems: Problems) -> Iterator[Video]:
    inside = folder / VIDEO_FOLDER
    root = inside if inside.is_dir() else folder
    for place in visible(root):
        if not place.is_dir():
            if place.suffix.lower() in VIDEO_SUFFIXES:
                problems.warn(place, "a video outside a class folder is left out. Move it to <class>/")
            continue
        count = 0
        for entry in visible(place):
            if is_video(entry):
                yield Video(entry.relative_to(folder).as_posix(), entry, place.name, None, place)
                count += 1
            elif not (entry.suffix.lower() in FRAME_SUFFIXES and entry.is_file()):
                problems.warn(entry, _left_out(entry))
        if not count and any(entry.suffix.lower() in FRAME_SUFFIXES for entry in visible(place)):
            text = f"the class folder holds single frames. Move those of each video to {place.name}/<name>/"
            problems.warn(place, text)
        elif not count:
            problems.warn(place, "the class folder holds no videos. Fill it or remove it")


def visible(folder: Path) -> list[Path]:
    """List what is in a folder and not hidden, sorted."""
    return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))


def is_video(entry: Path) -> bool:
    """Tell a video, by its ending, or a folder of frames."""
    if entry.is_dir():
        return any(p.suffix.lower() in FRAME_SUFFIXES and not p.name.startswith(".") for p in entry.iterdir())
    return entry.suffix.lower() in VIDEO_SUFFIXES


def _left_out(entry: Path) -> str:
    if entry.is_dir():
        return "the folder holds no .jpg or .png frames and is left out. List videos in deeper folders in manifest.csv"
    return f"{entry.suffix or 'a file without an ending'} is not known as a video and is left out"


def _with_split_file(path: Path, videos: list[Video], problems: Problems) -> list[Video]:
    sheet = read_sheet(path, problems, required=("video", "split"))
    names, lines, split = Names(videos), dict[str, int](), {video.name: video.split for video in videos}
    for row in sheet.rows if sheet else []:
        video = names.find(row.cells["video"], problems)
        if isinstance(video, str):
            problems.error(path, video, row.line)
            continue
        if video.name in lines:
            text = f"{video.name!r} comes again, after line {lines[video.name]}. Keep one row"
            problems.error(path, text, row.line)
            continue
        lines[video.name] = row.line
        chosen = _checked_split(row.cells["split"], path, row.line, problems)
        if video.split not in (None, chosen):
            text = f"{video.name!r} is in {video.split!r} in {MANIFEST}:{video.line} and in {chosen!r} here. Keep one"
            problems.error(path, text, row.line)
        split[video.name] = chosen
    missing = [name for name, chosen in split.items() if chosen is None]
    if missing:
        some = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        problems.warn(path, f"{len(missing)} of {len(videos)} videos are in no split and not used: {some}")
    return [replace(video, split=split[video.name]) for video in videos]


def _checked_split(text: str, path: Path, line: int, problems: Problems) -> str | None:
    if text and text not in SPLITS:
        problems.error(path, problems.unknown("split", text, SPLITS), line)
        return None
    return text or None
