"""Which videos there are, of which class and in which split."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from whytube.data.rows import Problems, Row, Sheet, listed
from whytube.data.source import SPLITS
from whytube.video.frames import FRAME_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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

    def rows(self, sheet: Sheet, *, once: bool = False) -> Iterator[tuple[Video, Row]]:
        """Yield every row with its video; an unknown name is an error, and with `once` a second row of a video is."""
        lines: dict[str, int] = {}
        for row in sheet:
            written = row["video"]
            if written not in self._asked:  # boxes.csv has a row per frame
                self._asked[written] = self.look_up(written, sheet.problems)
            video = self._asked[written]
            if isinstance(video, str):
                row.error(video)
            elif once and video.name in lines:
                row.error(f"{video.name!r} comes again, after line {lines[video.name]}. Keep one row")
            else:
                lines[video.name] = row.line
                yield video, row

    def look_up(self, written: str, problems: Problems) -> Video | str:
        """Return the video, or what is wrong with the name."""
        for name in (written, _tidy(written)):
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
    place = int.from_bytes(hashlib.sha256(key.encode(errors="surrogateescape")).digest()[:8], "big") % 100
    return "train" if place < 70 else "val" if place < 80 else "test"


def _from_manifest(folder: Path, problems: Problems) -> tuple[list[Video], bool]:
    """Read manifest.csv; also returns whether it gives splits."""
    sheet = Sheet(folder / MANIFEST, problems, required=("video", "class"), optional=("split",))
    videos: dict[Path, Video] = {}
    given = "split" in sheet.columns
    for row in sheet:
        name = _tidy(row["video"])
        place = folder / name
        if not row["video"] or not row["class"]:
            row.error("a video and its class are needed, got an empty cell")
        elif place in videos:
            row.error(f"{name!r} comes again, after line {videos[place].line}. Keep one row")
        elif not _exists(place):
            row.error(f"no file or folder {str(place)!r}. Put it there, or correct the path")
        else:
            videos[place] = Video(name, place, row["class"], _split(row) if given else None, sheet.path, row.line)
    return list(videos.values()), given


def _exists(place: Path) -> bool:
    try:
        return place.exists()
    except OSError:  # as for a name that is too long
        return False


def _from_folders(folder: Path, problems: Problems) -> Iterator[Video]:
    inside = folder / VIDEO_FOLDER
    for place in visible(inside if inside.is_dir() else folder):
        if not place.is_dir():
            if place.suffix.lower() in VIDEO_SUFFIXES:
                problems.warn(place, "a video outside a class folder is left out. Move it to <class>/")
            continue
        entries = visible(place)
        videos = {entry for entry in entries if is_video(entry)}
        frames = {entry for entry in entries if entry.suffix.lower() in FRAME_SUFFIXES}
        for entry in entries:
            if entry in videos:
                yield Video(entry.relative_to(folder).as_posix(), entry, place.name, None, place)
            elif entry.is_dir():
                text = "the folder holds no .jpg or .png frames and is left out"
                problems.warn(entry, f"{text}. List videos in deeper folders in manifest.csv")
            elif entry not in frames:
                ending = entry.suffix or "a file without an ending"
                problems.warn(entry, f"{ending} is not known as a video and is left out")
        if frames and not videos:
            text = f"the class folder holds single frames. Move those of each video to {place.name}/<name>/"
            problems.warn(place, text)
        elif not videos:
            problems.warn(place, "the class folder holds no videos. Fill it or remove it")


def visible(folder: Path) -> list[Path]:
    """List what is in a folder and not hidden, sorted."""
    return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))


def is_video(entry: Path) -> bool:
    """Tell a video, by its ending, or a folder of frames."""
    if entry.is_dir():
        return any(p.suffix.lower() in FRAME_SUFFIXES and not p.name.startswith(".") for p in entry.iterdir())
    return entry.suffix.lower() in VIDEO_SUFFIXES


def _with_split_file(path: Path, videos: list[Video], problems: Problems) -> list[Video]:
    splits = {video.name: video.split for video in videos}
    for video, row in Names(videos).rows(Sheet(path, problems, required=("video", "split")), once=True):
        splits[video.name] = chosen = _split(row)
        if video.split not in (None, chosen):
            text = f"{video.name!r} is in {video.split!r} in {MANIFEST}:{video.line} and in {chosen!r} here. Keep one"
            row.error(text)
    missing = [name for name, chosen in splits.items() if chosen is None]
    if missing:
        text = f"{len(missing)} of {len(videos)} videos are in no split and not used: {listed(missing, 3)}"
        problems.warn(path, text)
    return [replace(video, split=splits[video.name]) for video in videos]


def _split(row: Row) -> str | None:
    """Read the cell `split`; None where it is empty or wrong."""
    if row["split"] and row["split"] not in SPLITS:
        row.error(row.sheet.problems.unknown("split", row["split"], SPLITS))
    return row["split"] if row["split"] in SPLITS else None
