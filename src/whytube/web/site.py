"""One server's parts together, and what they do with a job: ask, keep, finish, cancel."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from whytube.errors import ModelError
from whytube.web.annotations import Annotations
from whytube.web.board import Board
from whytube.web.children import log
from whytube.web.intake import Intake
from whytube.web.pool import Pool
from whytube.web.store import Store
from whytube.web.store_jobs import Jobs, StoredJob, key_of
from whytube.web.store_taught import TaughtStore
from whytube.web.work import KINDS, Outcome

if TYPE_CHECKING:
    from whytube.web.messages import Job
    from whytube.web.settings import Settings


class FullError(Exception):
    """The queue is full."""


class Site:
    """Store, jobs, board, intake and workers of one server. model: what a worker said of the model, see `describe`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.model: dict[str, Any] = {}
        self.store = Store(settings.store)
        self.jobs = Jobs(self.store.database)
        self.board = Board(settings.limits.queue)
        self.annotations = Annotations(self.store.database)
        self.annotations.listeners.append(lambda video, _: self.board.ring(video))
        self.taught = TaughtStore(self.store, settings.model)
        self.intake = Intake(self)
        self.pool = Pool(self)
        self._asking = threading.Lock()

    def start(self) -> None:
        """Load the model, and go on with what an earlier server left."""
        self._start_pool()
        for job in self.jobs.requeue():
            key = key_of(job.kind, job.video, self.model["hash"], job.parameters)
            if key != job.key:  # it was asked of another model
                self.jobs.rekey(job.id, key, self.pool.model)
            self.board.put(replace(job, key=key, model=self.pool.model))

    def _start_pool(self) -> None:
        """Start the workers with the taught model that was chosen, or, where that is unfit, with the one given."""
        chosen = self.taught.chosen()
        if chosen is not None:
            self.pool.model = str(self.taught.path(chosen.id))
            try:
                self.pool.start()
                return
            except ModelError as problem:
                log.warning("the taught model cannot be used, the one it was taught from answers: %s", problem)
                self.taught.choose(None)
                self.pool.model = self.settings.model
                self.pool.forgive()
        self.pool.start()
        self.taught.note_base(self.model)

    def use(self, ident: str | None) -> None:
        """Answer with a taught model from now on, or with the one it was taught from; LookupError for an unknown one.

        Jobs that wait are still answered by the model that they were asked of.
        """
        row = None if ident is None else self.taught.find(ident)
        description = self.taught.base_description() if row is None else row.description
        if description is None or (row is None and ident is not None):
            raise LookupError(ident)
        with self._asking:
            self.taught.choose(ident)
            self.pool.model = self.settings.model if ident is None else str(self.taught.path(ident))
            self.model = description

    def stop(self) -> None:
        """End all processes and close the store."""
        self.pool.stop()
        self.intake.stop()
        self.store.close()

    def ask(self, kind: str, video: str | None, parameters: dict[str, Any]) -> tuple[Job, bool]:
        """Find the job that answers this question, or let a new one wait; says whether it is new."""
        with self._asking:
            key, model = key_of(kind, video, self.model["hash"], parameters), self.pool.model
            there = self.jobs.same(key)
            if there is not None:
                return self.show(there), False
            if kind in ("explain", "what_if") and self.store.result(key[:32]) is not None:
                job = self.jobs.add(kind, video, parameters, key, model)
                self.jobs.end(job.id, "done", result=key[:32])
                return self.show(job), False
            if self.board.full:
                raise FullError
            job = self.jobs.add(kind, video, parameters, key, model)
            self.board.put(job)
        return self.show(job), True

    def show(self, job: StoredJob) -> Job:
        """Write a job as it is now."""
        seen = self.board.see(job.id)
        return (self.jobs.find(job.id) or job).job() if seen is None else seen.job

    def keep(self, job: StoredJob, outcome: Outcome) -> None:
        """Keep what a job gave, and then say that it is done."""
        kind, result = KINDS[job.kind], None
        if job.video is not None and self.store.video(job.video) is None:
            self.finish(job, "cancelled")
            return
        if kind.keep is not None:
            kind.keep(self, job, outcome)
        elif outcome.document is not None and job.video is not None:
            result = job.key[:32]
            self.store.add_result(result, job.video, outcome.document)
        self.finish(job, "done", value=outcome.value, result=result)

    def finish(
        self,
        job: StoredJob,
        status: str,
        *,
        error: str | None = None,
        value: dict[str, Any] | None = None,
        result: str | None = None,
    ) -> None:
        """Write down how a job ended, then tell those who watch."""
        self.jobs.end(job.id, status, error=error, value=value, result=result)
        self.board.end(job.id)

    def cancel(self, job: StoredJob) -> Job:
        """Cancel a job that has not ended; one that has stays as it is."""
        self.jobs.end(job.id, "cancelled")
        self.board.cancel(job.id)
        return (self.jobs.find(job.id) or job).job()

    def delete_video(self, video: str) -> bool:
        """Forget a video, its results and its jobs."""
        for ident in self.jobs.of_video(video):
            job = self.jobs.find(ident)
            if job is not None:
                self.cancel(job)
        found = self.store.delete_video(video)
        self.jobs.forget_video(video)
        return found
