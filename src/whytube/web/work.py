"""The kinds of jobs: what each takes, and the function that does it in a worker process.

To add a kind: a body in messages.py (and in JobIn), a row in KINDS here, and a function (inputs, Context) -> Outcome in
a module that only workers import.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from whytube.errors import ArgumentError
from whytube.web import annotate_jobs, messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from whytube.web.site import Site
    from whytube.web.store_jobs import StoredJob


class CancelledError(Exception):
    """The job was asked to stop."""


@dataclass(frozen=True)
class Outcome:
    """What a job gives: a small value for the job itself, and the document of an answer, which is kept as a result."""

    value: dict[str, Any] | None = None
    document: dict[str, Any] | None = None


class Context(Protocol):
    """What a worker offers to the function of a job."""

    model: Any
    """The model, as `load_model` gave it."""

    def progress(self, done: int, total: int, text: str = "") -> None:
        """Show how far the job is; raises CancelledError where it was asked to stop."""

    def answer(self, document: dict[str, Any]) -> None:
        """Show the answer so far; raises CancelledError where the job was asked to stop."""


@dataclass(frozen=True)
class Kind:
    """A kind of job.

    body: what a client sends. run: MODULE:FUNCTION of the worker. gather: collects, in the server, what the worker
    needs: values that can be pickled. keep: called in the server
    with the outcome before the job is done; by default the document is kept as a result. prepare: turns what a client
    sent into a video and the parameters of the job; LookupError where something is not there.
    """

    body: type[messages.Message]
    run: str
    gather: Callable[[Site, StoredJob], dict[str, Any]]
    keep: Callable[[Site, StoredJob, Outcome], None] | None = None
    prepare: Callable[[Site, dict[str, Any]], tuple[str | None, dict[str, Any]]] | None = None


def gather_video(site: Site, job: StoredJob) -> dict[str, Any]:
    """Collect the video of a job: its clip is made if the model wants another one than the video was received for."""
    video = None if job.video is None else site.store.video(job.video)
    if video is None:
        raise ArgumentError("the video of this job was deleted")
    return {
        "name": video.name,
        "hash": site.store.video_hash(video.id),
        "clip": str(site.intake.clip(video.id)),
    }


def gather_result(site: Site, job: StoredJob) -> dict[str, Any]:
    """Collect the document of a result, the video as it is played, and the folder for what is made of them."""
    found = site.store.result(job.parameters["result"])
    if found is None:
        raise ArgumentError("the result of this job was deleted")
    return {
        "result": job.parameters["result"],
        "document": found[1],
        "play": str(site.store.video_folder(found[0]) / "play.mp4"),
        "folder": str(site.store.result_folder(job.parameters["result"])),
    }


KINDS: dict[str, Kind] = {
    "classify": Kind(messages.ClassifyJob, "whytube.web.asking:classify", gather_video),
    "explain": Kind(messages.ExplainJob, "whytube.web.asking:explain", gather_video),
    "what_if": Kind(messages.WhatIfJob, "whytube.web.asking:what_if", gather_video),
    "overlay": Kind(messages.OverlayJob, "whytube.web.drawing:overlay", gather_result),
    "masked": Kind(messages.MaskedJob, "whytube.web.drawing:masked", gather_result),
    "draft": Kind(
        messages.DraftJob,
        "whytube.web.drafting:draft",
        annotate_jobs.gather_draft,
        annotate_jobs.keep_draft,
        annotate_jobs.prepare_draft,
    ),
    "teach": Kind(
        messages.TeachJob,
        "whytube.web.teaching:teach",
        annotate_jobs.gather_teach,
        annotate_jobs.keep_teach,
        annotate_jobs.prepare_teach,
    ),
}
