"""How a file becomes a video of the server: uploads, examples of the embedded world, and the operator's folder."""

from __future__ import annotations

import hashlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

from whytube.errors import VideoError, printable
from whytube.web.children import run_limited, stop_children
from whytube.web.messages import Example, FolderVideo, Video
from whytube.web.store import now
from whytube.web.store_database import make_durable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whytube.web.site import Site

SUFFIXES = frozenset(
    {".3gp", ".avi", ".flv", ".gif", ".m2ts", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".mts", ".ogv", ".seq"}
    | {".ts", ".webm", ".wmv"}
)
"""Endings that the kept file may have, as a hint to the reader: one of these, whatever a client sent."""
AT_ONCE = 2
"""Videos that are decoded at the same time."""
LISTED = 2000
"""Files of the operator's folder that are offered."""
LONGEST_NAME = 120
EXAMPLES = {"gavotte": 4, "twist": 0, "minuet": 2, "samba": 7, "tango": 13, "waltz": 19}
"""Dances to start with, and the index of a test clip of each."""


class Intake:
    """Receives, decodes and keeps videos. The methods block: they are called in the threads of `threads`."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._clips = threading.Lock()
        self.threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="whytube-intake")

    def stop(self) -> None:
        """Take no further video."""
        self.threads.shutdown(wait=False, cancel_futures=True)
        stop_children()

    def add(self, source: BinaryIO, name: str) -> tuple[Video, bool]:
        """Keep a video; the same bytes again give the same video. Says whether it is new; VideoError if refused."""
        limits, shown = self._site.settings.limits, display_name(name)
        with self._site.store.receiving() as folder:
            file = folder / f"original{_suffix(name)}"
            content, size = _copy(source, file, limits.bytes)
            there = self._site.store.video(content[:32])
            if there is not None:
                return there, False
            values = {"seconds": limits.seconds, "frames": limits.frames, "pixels": limits.pixels}
            largest = max(64 << 20, 4 * limits.bytes)
            found = run_limited(
                "whytube.web.decoding:prepare_video",
                str(folder),
                file.name,
                shown,
                self._clip_shape,
                values,
                limits=limits,
                largest=largest,
            )
            video = Video(id=content[:32], name=shown, created=now(), bytes=size, **found)
            return self._site.store.add_video(folder, video, content)

    def example(self, name: str) -> tuple[Video, bool]:
        """Keep a clip of the embedded world; it is rendered once."""
        there = self._site.store.example(name)
        if there is not None:
            return there, False
        with self._site.store.receiving() as folder:
            path = folder / "example.mp4"
            limits = self._site.settings.limits
            run_limited(
                "whytube.web.decoding:render_example", str(path), EXAMPLES[name], limits=limits, largest=64 << 20
            )
            with path.open("rb") as source:
                video, new = self.add(source, f"{name}.mp4")
        self._site.store.note_example(name, video.id)
        return video, new

    def examples(self) -> list[Example]:
        """List the clips to start with."""
        known = self._site.model.get("world", False)
        return [Example(name=name, title=name.capitalize()) for name in EXAMPLES] if known else []

    def folder(self) -> list[FolderVideo]:
        """List the videos of the operator's folder."""
        return [FolderVideo(key=key, name=name) for key, name, _ in self._offered()]

    def from_folder(self, key: str) -> tuple[Video, bool] | None:
        """Keep a video of the operator's folder; None where it has none of that key."""
        for known, name, path in self._offered():
            if known == key:
                with path.open("rb") as source:
                    return self.add(source, name)
        return None

    def _offered(self) -> Iterator[tuple[str, str, Path]]:
        """Yield key, name and path of the folder's videos: files in it, not what links lead to elsewhere."""
        top = self._site.settings.videos
        if top is None:
            return
        count = 0
        for folder, folders, files in os.walk(top):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for file in sorted(files):
                path = Path(folder) / file
                if path.suffix.lower() not in SUFFIXES or file.startswith(".") or path.is_symlink():
                    continue
                name = path.relative_to(top).as_posix()
                yield hashlib.sha256(os.fsencode(name)).hexdigest()[:32], display_name(name), path
                count += 1
                if count >= LISTED:
                    return

    def clip(self, video: str) -> Path:
        """Find the frames of a video that the model sees; they are made where another model was asked before."""
        folder, (frames, size) = self._site.store.video_folder(video), self._clip_shape
        path = folder / f"clip-{frames}-{size[0]}x{size[1]}.npz"
        with self._clips:
            if not path.exists():
                limits = self._site.settings.limits
                file = next(folder.glob("original*")).name
                values = (str(folder), file, self._clip_shape, limits.pixels)
                run_limited("whytube.web.decoding:prepare_clip", *values, limits=limits, largest=1 << 30)
                make_durable(folder)
        return path

    @property
    def _clip_shape(self) -> tuple[int, tuple[int, int]]:
        model = self._site.model
        return model["frames"], (model["size"][0], model["size"][1])


def display_name(name: str) -> str:
    """Write a file's name for people: its last part, on one line, not too long."""
    last = PurePosixPath(name.replace("\\", "/")).name
    shown = printable(last.encode("utf-8", "replace").decode()).strip()
    return shown[:LONGEST_NAME] if shown.strip(".") else "video"


def _suffix(name: str) -> str:
    ending = PurePosixPath(name.replace("\\", "/")).suffix.lower()
    return next((known for known in SUFFIXES if known == ending), "")


def _copy(source: BinaryIO, target: Path, most: int) -> tuple[str, int]:
    """Write a file while its SHA-256 is taken; returns that and its size."""
    digest, size = hashlib.sha256(), 0
    with target.open("wb") as file:
        while block := source.read(1 << 20):
            size += len(block)
            if size > most:
                raise VideoError(f"this file has more than {most >> 20} MiB, the most that is taken")
            digest.update(block)
            file.write(block)
    if not size:
        raise VideoError("this file is empty; expected a video. Fetch or write it again")
    return digest.hexdigest(), size
