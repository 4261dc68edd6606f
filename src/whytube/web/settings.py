"""What the operator of a server chose."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

ANY = ("0.0.0.0", "::")
"""Addresses that stand for all of the machine's."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Limits:
    """The most that is taken of a video, and of the machine.

    bytes, seconds, frames, pixels: of an uploaded video; pixels are those of one frame. queue: jobs that wait.
    decoding: seconds that a child process may take for one video. memory: bytes that it may take beyond its start.
    body: bytes of a request that is no upload. uploads: bodies received at the same time. idle: seconds without a byte
    after which an upload is given up. job: seconds of one job. cancel: seconds that a job has to stop by itself.
    """

    bytes: int = 256 << 20
    seconds: float = 600.0
    frames: int = 18_000
    pixels: int = 1 << 23
    queue: int = 100
    decoding: float = 120.0
    memory: int = 2 << 30
    body: int = 16 << 20
    uploads: int = 64
    idle: float = 30.0
    job: float = 3600.0
    cancel: float = 3.0


@dataclass(frozen=True)
class Settings:
    """Everything that a server is told at its start.

    model: what `load_model` takes. device: where it runs. store: the folder for everything that is kept.
    videos: a folder to pick videos from. token: what a client must show; None on a loopback address.
    hosts: further names under which the server may be asked for. workers: processes that hold the model.
    """

    model: str
    store: Path
    device: str = "auto"
    host: str = "127.0.0.1"
    port: int = 8000
    videos: Path | None = None
    token: str | None = None
    hosts: tuple[str, ...] = ()
    workers: int = 1
    limits: Limits = field(default_factory=Limits)


def default_store() -> Path:
    """Return the folder in the user's data directory."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "whytube"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "whytube"
