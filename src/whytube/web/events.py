"""Progress of a job as server-sent events: what is true now, and again whenever that changes."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from whytube.web.messages import Job
    from whytube.web.site import Site
    from whytube.web.store_jobs import StoredJob

HEARTBEAT = 15.0
"""Seconds after which a line is sent though nothing happened, so that nobody between takes the connection for dead."""


async def follow(site: Site, stored: StoredJob) -> AsyncIterator[bytes]:
    """Yield `job` and `answer` events until the job has ended.

    A slow reader misses steps between, never the last one: nothing is queued for it.
    """
    versions, answers = -1, 0
    with site.board.watching(stored.id) as bell:
        while not site.board.closed:
            bell.clear()
            seen = site.board.see(stored.id)
            if seen is None:
                break
            if seen.version != versions:
                versions = seen.version
                yield event("job", seen.job.model_dump())
            if seen.answers != answers and seen.answer is not None:
                answers = seen.answers
                yield event("answer", seen.answer)
            try:
                await asyncio.wait_for(bell.wait(), HEARTBEAT)
            except TimeoutError:
                yield b": still here\n\n"
    job = await run_in_threadpool(_ended, site, stored)
    if job is None:
        return
    found = await run_in_threadpool(site.store.result, job.result) if job.result else None
    if found is not None:
        yield event("answer", found[1])
    yield event("job", job.model_dump())


def _ended(site: Site, stored: StoredJob) -> Job | None:
    """Read how a job ended; None where the server stops before it did."""
    found = site.jobs.find(stored.id)
    if found is None:  # deleted with its video
        return stored.job().model_copy(update={"status": "cancelled"})
    return found.job() if found.status in ("done", "failed", "cancelled") else None


def event(name: str, data: dict[str, Any]) -> bytes:
    """Write one event; JSON has no line breaks."""
    return f"event: {name}\ndata: {json.dumps(data, allow_nan=False)}\n\n".encode()
