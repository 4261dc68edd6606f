"""The queue of jobs, and how far each one is: in memory, for those who watch. What must last is in the store."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from whytube.web.messages import Job, Progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whytube.web.store_jobs import StoredJob


@dataclass
class Live:
    """A job that has not ended. version counts its changes, answers those of the answer so far."""

    job: StoredJob
    running: bool = False
    cancelled: bool = False
    progress: Progress = field(default_factory=Progress)
    version: int = 0
    answers: int = 0
    answer: dict[str, Any] | None = None


@dataclass(frozen=True)
class Seen:
    """What a watcher sees of a job at one moment."""

    job: Job
    version: int
    answers: int
    answer: dict[str, Any] | None


class Board:
    """Jobs that wait or run. Any thread may call it; watchers are tasks of the event loop."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.closed = False
        self._changed = threading.Condition()
        self._waiting: list[str] = []
        self._live: dict[str, Live] = {}
        self._bells: dict[str, set[asyncio.Event]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Say which event loop the watchers run in."""
        self._loop = loop

    @property
    def counts(self) -> tuple[int, int]:
        """How many jobs wait, and how many run."""
        with self._changed:
            return len(self._waiting), len(self._live) - len(self._waiting)

    @property
    def full(self) -> bool:
        """Whether no further job may wait."""
        with self._changed:
            return len(self._waiting) >= self.limit

    def put(self, job: StoredJob, *, first: bool = False) -> None:
        """Let a job wait, at the end or, for one whose worker died, at the front."""
        with self._changed:
            self._live[job.id] = Live(job)
            self._waiting.insert(0 if first else len(self._waiting), job.id)
            self._changed.notify()
            self._touch(self._waiting)

    def take(self, seconds: float) -> StoredJob | None:
        """Give the next job to a worker; None where none came in time."""
        with self._changed:
            if not self._waiting and not self.closed:
                self._changed.wait(seconds)
            if not self._waiting or self.closed:
                return None
            live = self._live[self._waiting.pop(0)]
            live.running = True
            self._touch([live.job.id, *self._waiting])
            return live.job

    def tell(self, ident: str, *, progress: Progress | None = None, answer: dict[str, Any] | None = None) -> None:
        """Show how far a running job is, or its answer so far."""
        with self._changed:
            live = self._live.get(ident)
            if live is None:
                return
            if progress is not None:
                live.progress = progress
            if answer is not None:
                live.answer = answer
                live.answers += 1
            self._touch([ident])

    def cancel(self, ident: str) -> None:
        """Take a waiting job off the board, or ask a running one to stop."""
        with self._changed:
            live = self._live.get(ident)
            if live is not None and live.running:
                live.cancelled = True
                self._touch([ident])
        if live is not None and not live.running:
            self.end(ident)

    def is_cancelled(self, ident: str) -> bool:
        """Whether a running job was asked to stop."""
        with self._changed:
            live = self._live.get(ident)
            return live is None or live.cancelled

    def end(self, ident: str) -> None:
        """Forget a job that has ended: the store knows how."""
        with self._changed:
            self._live.pop(ident, None)
            if ident in self._waiting:
                self._waiting.remove(ident)
            self._touch([ident, *self._waiting])

    def see(self, ident: str) -> Seen | None:
        """Look at a job that has not ended."""
        with self._changed:
            live = self._live.get(ident)
            if live is None or live.cancelled:
                return None
            place = None if live.running else self._waiting.index(ident) + 1
            job = live.job.job(position=place, progress=live.progress)
            job.status = "running" if live.running else "queued"
            return Seen(job, live.version, live.answers, live.answer)

    @contextmanager
    def watching(self, ident: str) -> Iterator[asyncio.Event]:
        """Give an event that is set whenever the job changes."""
        bell = asyncio.Event()
        with self._changed:
            self._bells.setdefault(ident, set()).add(bell)
        try:
            yield bell
        finally:
            with self._changed:
                bells = self._bells[ident]
                bells.discard(bell)
                if not bells:
                    del self._bells[ident]

    def ring(self, ident: str) -> None:
        """Wake those who watch something that is no job, as a video's annotation."""
        with self._changed:
            self._touch([ident])

    def close(self) -> None:
        """Let workers and watchers go."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()
            self._touch(list(self._bells))

    def _touch(self, idents: list[str]) -> None:
        """Wake those who watch these jobs; the lock is held."""
        bells: list[asyncio.Event] = []
        for ident in idents:
            if ident in self._live:
                self._live[ident].version += 1
            bells += self._bells.get(ident, ())
        if bells and self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(_ring, bells)


def _ring(bells: list[asyncio.Event]) -> None:
    for bell in bells:
        bell.set()
