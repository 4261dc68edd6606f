"""Worker processes, each led by a thread of the server that hands out jobs, passes on progress, and restarts it."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

from whytube.errors import ModelError, WhytubeError
from whytube.web.children import context, log
from whytube.web.messages import Progress
from whytube.web.work import KINDS, Outcome

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerProcess

    from whytube.web.site import Site
    from whytube.web.store_jobs import StoredJob

LOADING = 600.0
"""Seconds that a model may take to load."""
AGAIN = 5.0
"""Seconds before a model that could not be loaded is tried again."""
DEATHS = 2
"""Worker processes that a job may end before it is given up."""


class Pool:
    """All workers of a server. model: what they load; a job that was asked of another one loads that first."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.model = site.settings.model
        cores = int(os.environ.get("OMP_NUM_THREADS", "0")) or os.cpu_count() or 1
        threads = 1 if site.settings.workers > 1 else cores
        self._leads = [_Lead(self, site, threads) for _ in range(site.settings.workers)]
        self._known = threading.Event()
        self._problem: WhytubeError | None = None

    def start(self) -> None:
        """Start all workers; returns once one has loaded the model, and raises what is wrong with it."""
        for lead in self._leads:
            if not lead.is_alive():
                lead.start()
        self._known.wait()
        if self._problem is not None:
            raise self._problem

    def ready(self, model: str, description: dict[str, Any]) -> None:
        """Note what a worker says of a model that it has loaded, unless another one answers by now."""
        if model == self.model:
            self._site.model = description
        self._known.set()

    def forgive(self) -> None:
        """Forget that a model could not be loaded: another one is tried."""
        self._problem = None
        self._known.clear()

    def refuse(self, problem: WhytubeError) -> None:
        """Note why the model cannot be loaded: the server does not start, or, later, goes on without this worker."""
        if self._known.is_set():
            log.error("a worker cannot load the model: %s", problem)
        self._problem = problem
        self._known.set()

    def stop(self) -> None:
        """End all workers at once; what they had stays in the store and is done after the next start."""
        self._site.board.close()
        for lead in self._leads:
            lead.stop()
        for lead in self._leads:
            if lead.is_alive():
                lead.join(AGAIN)


class _Lead(threading.Thread):
    """Leads one worker process."""

    def __init__(self, pool: Pool, site: Site, threads: int) -> None:
        super().__init__(name="whytube-worker", daemon=True)
        self._pool, self._site, self._threads = pool, site, threads
        self._process: ForkServerProcess | None = None
        self._pipe: Connection | None = None
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Kill the process; the thread ends by itself."""
        self._stopping.set()
        process = self._process
        if process is not None:
            process.kill()

    def run(self) -> None:
        """Start the process, hand out jobs, until the server stops."""
        while not self._stopping.is_set():
            try:
                if self._pipe is None:
                    self._start()
                job = self._site.board.take(1.0)
                if job is not None:
                    self._do(job)
                elif self._process is not None and not self._process.is_alive():
                    self._end()
            except ModelError as problem:
                self._end()
                self._pool.refuse(problem)
                self._stopping.wait(AGAIN)
        self._end()

    def _start(self) -> None:
        ours, theirs = context.Pipe()
        model = self._pool.model
        self._process = context.Process(
            target=_work, args=(theirs, model, self._site.settings.device, self._threads), daemon=True
        )
        self._process.start()
        theirs.close()
        self._pipe = ours
        try:
            if not ours.poll(LOADING):
                raise ModelError(f"the model {self._pool.model} took more than {LOADING:g} seconds to load")
            what, *rest = ours.recv()
        except (EOFError, OSError):
            raise ModelError(f"the worker process ended while it loaded the model {self._pool.model}") from None
        if what != "ready":
            raise ModelError(str(rest[1]))
        self._pool.ready(model, rest[0])

    def _end(self) -> None:
        """Kill the process, whatever it does."""
        process, self._process = self._process, None
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if process is not None:
            process.kill()
            process.join()
            process.close()

    def _do(self, job: StoredJob) -> None:
        """Let the worker do a job, to its end."""
        site = self._site
        try:
            site.jobs.start(job.id)
            self._converse(job, {**job.parameters, **KINDS[job.kind].gather(site, job)})
        except WhytubeError as problem:
            if not self._stopping.is_set():
                site.finish(job, "failed", error=str(problem))
        except (EOFError, OSError):
            self._end()
            if self._stopping.is_set():
                return  # it stays "running" in the store, and is done after the next start
            if site.board.is_cancelled(job.id):
                site.finish(job, "cancelled")
            elif site.jobs.died(job.id) < DEATHS:
                log.warning("a worker process ended during job %s (%s); it is tried again", job.id, job.kind)
                site.board.put(job, first=True)
            else:
                site.finish(
                    job, "failed", error="the worker process ended twice while it did this. Ask for less effort"
                )

    def _converse(self, job: StoredJob, inputs: dict[str, Any]) -> None:
        """Send the job and hear how it goes; EOFError or OSError where the process ends or is killed."""
        assert self._pipe is not None
        site, limits = self._site, self._site.settings.limits
        self._pipe.send(("run", job.id, job.kind, inputs, job.model or self._pool.model))
        deadline, asked = time.monotonic() + limits.job, False
        while True:
            if self._pipe.poll(0.1):
                if self._hear(job, *self._pipe.recv()):
                    return
                continue
            now = time.monotonic()
            if not asked and site.board.is_cancelled(job.id):
                self._pipe.send(("cancel", job.id))
                asked, deadline = True, now + limits.cancel
            if now > deadline:
                if not asked:
                    site.finish(job, "failed", error=f"this took more than {limits.job:g} seconds. Ask for less effort")
                raise EOFError

    def _hear(self, job: StoredJob, what: str, *rest: Any) -> bool:
        """Pass on a message of the worker; says whether it is the last one of the job."""
        site = self._site
        if what == "ready":
            self._pool.ready(job.model or self._pool.model, rest[0])
        elif what == "progress":
            site.board.tell(job.id, progress=Progress(done=rest[1], total=rest[2], text=rest[3]))
        elif what == "answer":
            site.board.tell(job.id, answer=rest[1])
        elif what == "done":
            site.keep(job, rest[1] or Outcome())
        elif what == "cancelled":
            site.finish(job, "cancelled")
        elif what == "refused":
            site.finish(job, "failed", error=rest[1])
        else:
            log.error("job %s (%s) failed:\n%s", job.id, job.kind, rest[1])
            site.finish(job, "failed", error="this could not be computed: the server's log says why")
        return what not in ("ready", "progress", "answer")


def _work(pipe: Connection, model: str, device: str, threads: int) -> None:
    """Become a worker: its module, with torch, is imported there and not in the server."""
    from whytube.web.worker import main

    main(pipe, model, device, threads)
