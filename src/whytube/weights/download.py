"""Fetch a file of known size and hash; a second try goes on where the first stopped."""

from __future__ import annotations

import hashlib
from http.client import HTTPException
from typing import TYPE_CHECKING

from whytube.errors import ModelError
from whytube.weights.web import bare

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from whytube.weights.web import Web

BLOCK = 1 << 18


def download(
    url: str,
    part: Path,
    *,
    size: int,
    sha256: str,
    web: Web,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Fetch `url` into `part`, which afterwards has the size and hash; progress is called with (bytes, size)."""
    done = part.stat().st_size if part.exists() else 0
    try:
        if done < size:
            done = _fetch(url, part, done, size, web, progress)
    except (OSError, HTTPException) as error:
        raise ModelError(
            f"cannot fetch {bare(url)}: {error}. Check the network and run it again: it goes on where it stopped"
        ) from error
    if done < size:
        raise ModelError(
            f"cannot fetch {bare(url)}: the connection ended after {done} of {size} bytes. "
            "Run it again: it goes on where it stopped"
        )
    try:
        check_hash(part, sha256)
    except ModelError:
        part.unlink()  # else every later try would go on from a wrong beginning
        raise
    return part


def check_hash(path: Path, sha256: str) -> None:
    """Require a file's contents."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise ModelError(
            f"cannot use {path.name}: its sha256 must be {sha256}, got {found}. The index may have changed it, or the "
            "transfer damaged it: run it again, or use another index"
        )


def _fetch(url: str, part: Path, done: int, size: int, web: Web, progress: Callable[[int, int], None] | None) -> int:
    """Append what is missing, or start anew where the server does not serve pieces; return how much is there."""
    with web.open(url, {"Range": f"bytes={done}-"} if done else None) as answer:
        if getattr(answer, "status", None) != 206:
            done = 0
        with part.open("ab" if done else "wb") as file:
            while done <= size and (block := answer.read(BLOCK)):
                file.write(block)
                done += len(block)
                if progress is not None:
                    progress(done, size)
    return done
