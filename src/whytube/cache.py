"""The user's cache: the one folder where whytube keeps what it fetched."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def cache_folder() -> Path:
    """Path of the cache: WHYTUBE_CACHE, or whytube in XDG_CACHE_HOME, or ~/.cache/whytube. It may not exist yet."""
    if named := os.environ.get("WHYTUBE_CACHE"):
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "whytube"


def cached_weights(name: str) -> Path:
    """Path of pulled weights, whether they are there or not."""
    return cache_folder() / "weights" / f"{name}.safetensors"


@contextlib.contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Hold the lock file `path`; a second process waits. Where the system has no such locks nobody waits."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
