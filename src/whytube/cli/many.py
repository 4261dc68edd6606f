"""What commands do with several videos: find them, go on after a broken one, and keep one file for each."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from whytube.cli.options import errors, print_json, print_plain, progress_bar
from whytube.errors import ArgumentError, ExplanationError, WhytubeError, printable
from whytube.files import make_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from whytube.explanation import Explanation

Result = TypeVar("Result")
LONGEST = 200
"""Bytes of a file's name that are kept for the files made of it."""


def find_videos(places: Sequence[Path]) -> list[Path]:
    """List the videos that are named: files, folders of frames, and whatever videos lie in other folders or below."""
    from whytube.data.layout.videos import VIDEO_SUFFIXES

    found: list[Path] = []
    for place in places:
        if not _is_folder(place) or holds_frames(place):
            found.append(place)
            continue
        inside: list[Path] = []
        for folder, folders, files in os.walk(place):
            here = Path(folder)
            frames = [name for name in folders if holds_frames(here / name)]
            folders[:] = sorted(name for name in folders if name not in frames and not name.startswith("."))
            inside += [here / name for name in frames]
            inside += [here / name for name in files if Path(name).suffix.lower() in VIDEO_SUFFIXES and name[0] != "."]
        if not inside:
            raise ArgumentError(f"the folder {place} holds neither frames (.jpg, .png) nor videos; name another")
        found += sorted(inside)
    return list(dict.fromkeys(found))


def _is_folder(place: Path) -> bool:
    try:
        return place.is_dir()
    except OSError:  # a name that is too long, say: the reader tells
        return False


def holds_frames(folder: Path) -> bool:
    """Whether a folder is a video, stored frame by frame."""
    from whytube.video.frames import FRAME_SUFFIXES

    try:
        return any(file.suffix.lower() in FRAME_SUFFIXES and file.name[0] != "." for file in folder.iterdir())
    except OSError:
        return False


def each(
    title: str, videos: Sequence[Path], work: Callable[[Path], Result]
) -> Iterator[tuple[Path, Result | WhytubeError]]:
    """Do some work for every video, under a progress bar; give its result, or the error that stopped it."""
    with progress_bar(title) as progress:
        for done, video in enumerate(videos):
            progress(done, len(videos))
            try:
                yield video, work(video)
            except WhytubeError as error:
                yield video, error


def told(error: WhytubeError) -> str:
    """Return what the command line says of an error: with its options, not the parameters of Python."""
    from whytube.cli import with_options

    return with_options(str(error), sys.argv[1:])


def tell_failures(failed: dict[Path, WhytubeError], total: int) -> None:
    """End with the videos that failed and why, if any did."""
    if failed:
        rows = (f"  {_about(video, error)}" for video, error in failed.items())
        others = ", the others are done" if len(failed) < total else ""
        raise ArgumentError(f"{len(failed)} of {total} videos failed{others}:", *rows)


def _about(video: Path, error: WhytubeError) -> str:
    return str(error) if printable(video) in str(error) else f"{video}: {error}"


@dataclass(frozen=True)
class Asked:
    """What was asked about every video; an explanation that answers it already is not made again."""

    why: str | None
    why_not: str | None
    settings: Mapping[str, Any]
    model_hash: str

    def differs(self, old: Explanation, video: Path) -> str:
        """Say what is different about an earlier explanation of the same file; "" for nothing."""
        from whytube.given import video_hash

        if old.model_hash != self.model_hash:
            return f"of another model, {old.model or 'without a name'}"
        if old.video_hash != video_hash(video):
            return "of another version of the video"
        positive = self.why or old.said
        others = (name for name in old.probabilities if name != positive)
        negative = self.why_not or max(others, key=old.probabilities.__getitem__, default="")
        same = (old.positive, old.negative) == (positive, negative)
        same = same and all(old.settings.get(name) == value for name, value in self.settings.items())
        return "" if same else "of another question"


def explain_many(
    videos: Sequence[Path],
    explain: Callable[[Path], Explanation],
    draw: Callable[[Path, Explanation, Path], None],
    asked: Asked,
    *,
    out: Path | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Explain each video, print it, and keep it in `out` as NAME.json; `draw` adds further files beside that one.

    What `out` holds already is kept. A second video of the same name becomes NAME-2. JSON is one array, with a place
    for every video.
    """
    if out is not None:
        make_folder(out, error=ArgumentError)
    taken: set[Path] = set()
    there = 0

    def work(video: Path) -> Explanation:
        nonlocal there
        if out is None:
            return explain(video)
        path, old = _place(out, video, taken)
        taken.add(path)
        if old is not None and not overwrite:
            different = asked.differs(old, video)
            if different:
                raise ArgumentError(f"{path} exists, {different}: choose another --out, or give --overwrite")
            there += 1
        found = explain(video) if old is None or overwrite else old
        draw(video, found, path)
        if found is not old:  # last: what is there is whole
            found.save(path, overwrite=True)
        return found

    failed: dict[Path, WhytubeError] = {}
    plain: list[dict[str, Any]] = []
    for video, found in each("explaining", videos, work):
        if isinstance(found, WhytubeError):
            failed[video] = found
            plain.append({"source": str(video.absolute()), "error": told(found)})
        elif as_json:
            plain.append(found.to_dict())
        else:
            print_plain(f"{video}: {found.sentence}")
    if as_json:
        print_json(plain)
    elif out is not None:
        made = len(videos) - len(failed) - there
        print_plain(f"{made} explained, {there} there already: {out}", to=errors)
    tell_failures(failed, len(videos))


def _place(out: Path, video: Path, taken: set[Path]) -> tuple[Path, Explanation | None]:
    """Find the file of a video: that of an earlier explanation of it, which is returned too, or an unused name."""
    from whytube.explanation import Explanation

    stem = os.fsdecode(os.fsencode(video.absolute().stem)[:LONGEST])
    for number in count(1):
        path = out / f"{stem if number == 1 else f'{stem}-{number}'}.json"
        if path in taken:
            continue
        if not path.exists():
            return path, None
        try:
            old = Explanation.load(path)
        except ExplanationError:
            continue
        if old.source == str(video.absolute()):
            return path, old
    raise AssertionError("numbers do not end")
