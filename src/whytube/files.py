"""Files and folders that appear under their name only once they are whole; and JSON files, read safely."""

from __future__ import annotations

import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from whytube.documents import parse_json
from whytube.errors import WhytubeError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

LARGEST = 1 << 28
"""Bytes of a JSON file that is read; ours are far below."""
LONGEST = 40
"""Letters of a name that the name beside it keeps: file systems allow 255 bytes."""

LOCK = ".lock"

_unfinished: set[Path] = set()


@contextmanager
def whole_file(path: str | os.PathLike[str], *, error: type[WhytubeError] = WhytubeError) -> Iterator[Path]:
    """Give a name beside `path` to write to; the file replaces `path` at the end, or vanishes when the block fails.

    Its permissions are those of any new file, also where the writer chose narrower ones. An OSError becomes `error`.
    """
    target = Path(path)
    with _beside(target, error) as part:
        part.touch()
        mode = part.stat().st_mode
        yield part
        part.chmod(mode)
        part.replace(target)


@contextmanager
def whole_folder(path: str | os.PathLike[str], *, error: type[WhytubeError] = WhytubeError) -> Iterator[Path]:
    """Give a folder beside `path` to fill; it takes that name at the end. One that holds anything is refused."""
    target = Path(path)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise error(f"{target} exists already and is not an empty folder. Give a new name, or remove it first")
    with _beside(target, error) as part:
        part.mkdir()
        yield part
        if target.exists():
            target.rmdir()
        part.rename(target)


def make_folder(path: str | os.PathLike[str], *, error: type[WhytubeError] = WhytubeError) -> Path:
    """Make a folder and those above it, where they are missing; an OSError becomes `error`."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        why = "it is a file" if folder.is_file() else problem.strerror or problem
        raise error(f"cannot make the folder {folder}: {why}. Choose another name") from problem
    return folder


@contextmanager
def locked_folder(
    path: str | os.PathLike[str], *, who: str, error: type[WhytubeError] = WhytubeError
) -> Iterator[Path]:
    """Make a folder and keep others out of it for the length of the block; `who` is what an error calls them.

    The system gives the lock back also when the process is killed. The empty lock file stays.
    """
    from filelock import FileLock, Timeout

    folder = make_folder(path, error=error)
    try:
        with FileLock(folder / LOCK, timeout=0):
            yield folder
    except Timeout:
        raise error(f"{who} is writing to {folder}; wait for it or choose another folder") from None


def write_whole(path: str | os.PathLike[str], text: str, *, error: type[WhytubeError] = WhytubeError) -> Path:
    """Write a text file in UTF-8; an existing one is replaced once the new one is whole."""
    with whole_file(path, error=error) as part:
        # A file name that is not UTF-8 has parts that UTF-8 cannot hold; JSON reads them back from their escapes.
        part.write_text(text, encoding="utf-8", errors="backslashreplace")
    return Path(path)


def read_json(path: str | os.PathLike[str], *, error: type[WhytubeError] = WhytubeError) -> Any:
    """Read a JSON file; `error` says which file cannot be read, and why."""
    source = Path(path)
    try:
        if source.exists() and not source.is_file():  # a pipe or a device may never end
            raise error(f"cannot read {source}: it is not a file")
        if source.stat().st_size > LARGEST:
            raise error(f"cannot read {source}: it has more than {LARGEST >> 20} MiB")
        return parse_json(source.read_bytes())
    except OSError as problem:
        raise error(f"cannot read {source}: {problem.strerror or problem}") from problem
    except ValueError as problem:
        raise error(f"cannot read {source}: cut off, or not JSON ({problem})") from problem


def remove_unfinished() -> None:
    """Remove what is still being written: the last thing that an interrupted program does."""
    while _unfinished:
        _remove(_unfinished.pop())


def _remove(part: Path) -> None:
    if part.is_dir():
        shutil.rmtree(part, ignore_errors=True)
    else:
        with suppress(OSError):
            part.unlink(missing_ok=True)


@contextmanager
def _beside(target: Path, error: type[WhytubeError]) -> Iterator[Path]:
    """Give an unused name in the folder of `target`, and leave nothing under it."""
    if not target.parent.is_dir():
        raise error(f"cannot write {target}: there is no folder {target.parent}. Make it first")
    part = target.with_name(f".{target.name[:LONGEST]}.{uuid4().hex}.part")
    _unfinished.add(part)
    try:
        yield part
    except OSError as problem:
        raise error(f"cannot write {target}: {problem.strerror or problem}") from problem
    finally:
        _remove(part)
        _unfinished.discard(part)
