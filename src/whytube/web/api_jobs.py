"""Routes about jobs: ask, look, follow, cancel."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, HTTPException, Response
from fastapi.responses import StreamingResponse

from whytube.checks import find_name
from whytube.errors import ArgumentError
from whytube.web.api_videos import known_video
from whytube.web.events import follow
from whytube.web.messages import Job, JobIn
from whytube.web.routes import Answers, Ident, Served, answers
from whytube.web.site import FullError, Site
from whytube.web.work import KINDS

if TYPE_CHECKING:
    from whytube.web.store_jobs import StoredJob

router = APIRouter(prefix="/api", tags=["jobs"])
ASKED: Answers = {
    202: {"model": Job, "description": "It waits"},
    200: {"model": Job, "description": "It was asked before, and is done"},
}
FOLLOWED: Answers = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}
NO_JOB = "there is no such job: its video may have been deleted"


@router.post(
    "/jobs",
    status_code=202,
    responses=ASKED | answers(400, 403, 404, 413, 422, 429),
)
def ask(site: Served, body: JobIn, response: Response) -> Job:
    """Ask for something. What was asked before is not computed again: its job comes back."""
    video, parameters = _checked(site, body)
    try:
        job, _ = site.ask(body.kind, video, parameters)
    except FullError:
        text = f"{site.settings.limits.queue} jobs wait already: try again in a minute"
        raise HTTPException(429, text, headers={"retry-after": "30"}) from None
    response.status_code = 200 if job.status == "done" else 202
    return job


@router.get("/jobs/{job}", responses=answers(404, 422))
def get_job(site: Served, job: Ident) -> Job:
    """Look at a job."""
    return site.show(_known(site, job))


@router.delete("/jobs/{job}", responses=answers(403, 404, 422))
def cancel_job(site: Served, job: Ident) -> Job:
    """Cancel a job; one that has ended stays as it is."""
    return site.cancel(_known(site, job))


@router.get(
    "/jobs/{job}/events",
    response_class=StreamingResponse,
    responses=FOLLOWED | answers(404, 422),
)
def follow_job(site: Served, job: Ident) -> StreamingResponse:
    """Follow a job: events `job` and `answer`, until it has ended."""
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(follow(site, _known(site, job)), media_type="text/event-stream", headers=headers)


def _known(site: Site, ident: str) -> StoredJob:
    job = site.jobs.find(ident)
    if job is None:
        raise HTTPException(404, NO_JOB)
    return job


def _checked(site: Site, body: JobIn) -> tuple[str | None, dict[str, Any]]:
    """Find the video of what is asked; write class names and effort in one way, so that the same has one key."""
    given: dict[str, Any] = body.model_dump(exclude={"kind"})
    _name_classes(site, given)
    prepare = KINDS[body.kind].prepare
    if prepare is not None:
        try:
            return prepare(site, given)
        except LookupError as problem:
            raise HTTPException(404, str(problem.args[0])) from None
        except ArgumentError as problem:
            raise HTTPException(422, str(problem)) from None
    if "result" in given:
        found = site.store.result(given["result"])
        if found is None:
            raise HTTPException(404, "there is no such result: its video may have been deleted")
        _check_reason(found[1], given)
        return found[0], given
    video = known_video(site, given.pop("video")).id if "video" in given else None
    if isinstance(given.get("effort"), str):
        given["effort"] = site.model["efforts"][given["effort"]]
    if "tube" in given:
        _check_tube(given["tube"])
    return video, given


def _name_classes(site: Site, given: dict[str, Any]) -> None:
    """Write the classes A and B as the model does; refuse those that it does not know."""
    try:
        for name in ("why", "why_not"):
            if given.get(name) is not None:
                given[name] = site.model["classes"][find_name("class", given[name], site.model["classes"])]
    except ArgumentError as problem:
        raise HTTPException(422, str(problem)) from None
    if given.get("why") is not None and given.get("why") == given.get("why_not"):
        raise HTTPException(422, f"`why_not` must be another class than `why`, got {given['why']!r} for both")


def _check_reason(document: dict[str, Any], given: dict[str, Any]) -> None:
    count = len(document["reasons"])
    if "reason" in given and given["reason"] >= count:
        raise HTTPException(422, f"`reason` must be below {count}, the number of reasons, got {given['reason']}")


def _check_tube(tube: dict[str, Any]) -> None:
    frames, boxes = tube["frames"], tube["boxes"]
    if len(frames) != len(boxes):
        raise HTTPException(422, f"`tube` must have one box per frame, got {len(frames)} frames, {len(boxes)} boxes")
    if any(b <= a for a, b in pairwise(frames)):
        raise HTTPException(422, "`tube.frames` must increase")
    if any(x2 < x1 or y2 < y1 for x1, y1, x2, y2 in boxes):
        raise HTTPException(422, "`tube.boxes` must be x1, y1, x2, y2 with x1 <= x2 and y1 <= y2")
