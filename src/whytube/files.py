"""Files and folders that appear under their name only once they are whole."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from whytube.errors import WhytubeError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator


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
        raise error(f"cannot make the folder {folder}: {problem.strerror or problem}. Choose another name") from problem
    return folder


def write_whole(path: str | os.PathLike[str], text: str, *, error: type[WhytubeError] = WhytubeError) -> Path:
    """Write a text file in UTF-8; an existing one is replaced once the new one is whole."""
    with whole_file(path, error=error) as part:
        part.write_text(text, encoding="utf-8", errors="backslashreplace")  # a file's name need not be UTF-8
    return Path(path)


@contextmanager
def _beside(target: Path, error: type[WhytubeError]) -> Iterator[Path]:
    """Give an unused name in the folder of `target`, and leave nothing under it."""
    if not target.parent.is_dir():
        raise error(f"cannot write {target}: there is no folder {target.parent}. Make it first")
    part = target.with_name(f".{target.name}.{uuid4().hex}.part")
    try:
        yield part
    except OSError as problem:
        raise error(f"cannot write {target}: {problem.strerror or problem}") from problem
    finally:
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)
