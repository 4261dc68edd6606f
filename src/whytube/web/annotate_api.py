"""Routes of the annotating page: what was drawn and marked, actions, drafts, suggestions, agreement, files."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Response, UploadFile
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from whytube.errors import WhytubeError
from whytube.web import agreement as agreeing
from whytube.web.annotate_exchange import bring, facts, plain_videos
from whytube.web.annotation_actions import Name  # noqa: TC001 - FastAPI reads it
from whytube.web.annotation_messages import (
    ActionIn,
    Agreement,
    Annotation,
    Draft,
    Drafts,
    Format,
    Imported,
    LabelOut,
    MarkOut,
    OutOfDate,
    Overview,
    Pair,
    Suggestion,
    TrackOut,
    VideoRow,
    WordIn,
    WordRow,
)
from whytube.web.annotations import OutOfDateError
from whytube.web.api_videos import known_video
from whytube.web.children import run_limited
from whytube.web.events import HEARTBEAT, event
from whytube.web.messages import ID
from whytube.web.routes import Answers, Ident, Served, answers
from whytube.web.suggestions import suggest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from whytube.web.annotation_state import State
    from whytube.web.messages import Video
    from whytube.web.site import Site

router = APIRouter(prefix="/api", tags=["annotations"])
STALE: Answers = {409: {"model": OutOfDate, "description": "Somebody else was faster: the current state"}}
STREAM: Answers = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}
FILE: Answers = {200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}}
MOST_VIDEOS = 10_000
LARGEST_FILE = 1 << 28
TYPES = {".xml": "application/xml", ".json": "application/json", ".csv": "text/csv", ".zip": "application/zip"}


@router.get("/annotations", responses=answers())
def overview(site: Served) -> Overview:
    """List videos, words, and what would help most."""
    videos, states = site.store.list_videos(MOST_VIDEOS, 0), site.annotations.states()
    drafts = site.annotations.drafts(site.model["hash"])
    helpful = suggest([video.id for video in videos], states, drafts)
    return Overview(
        videos=[_video_row(video, site.annotations.state(video.id), drafts.get(video.id)) for video in videos],
        words=_word_rows(site, list(states.values())),
        classes=site.model["classes"],
        suggestions=[Suggestion(**asdict(one)) for one in helpful],
        undrafted=sum(video.id not in drafts for video in videos) if site.model["attributes"] else 0,
    )


@router.post("/words", status_code=204, responses=answers(400, 403, 413, 422))
def add_word(site: Served, body: WordIn) -> None:
    """Add a word that can be marked and drawn."""
    if body.word not in site.model["attributes"]:
        site.annotations.add_word(body.word, body.annotator)


@router.delete("/words", status_code=204, responses=answers(403, 422))
def remove_word(site: Served, word: Annotated[Name, Query()]) -> None:
    """Take an added word off the list; what was drawn of it stays."""
    site.annotations.remove_word(word)


@router.get("/agreement", responses=answers())
def agreement(site: Served) -> Agreement:
    """Say how far annotators agree, and how that is computed."""
    pairs = [
        Pair(**{**asdict(p), "annotators": list(p.annotators)}) for p in agreeing.agreement(site.annotations.states())
    ]
    return Agreement(pairs=pairs, how=(agreeing.__doc__ or "").partition("\n\n")[2].strip())


@router.get("/annotation-files", response_class=Response, responses=FILE | answers(404, 422))
def export(
    site: Served,
    format: Format,
    video: Annotated[str | None, Query(pattern=ID)] = None,
    annotator: Annotated[Name | None, Query()] = None,
) -> Response:
    """Download what was drawn and marked as a file of another tool, or a zip of files."""
    videos = site.store.list_videos(MOST_VIDEOS, 0) if video is None else [known_video(site, video)]
    found = plain_videos(videos, site.annotations, annotator=annotator)
    if not found:
        raise HTTPException(404, "nothing was drawn or marked yet")
    ending, data = _in_child(site, "whytube.web.exchange:write_file", format, found)
    headers = {"content-disposition": f'attachment; filename="annotations-{format}{ending}"'}
    return Response(data, media_type=TYPES[ending], headers=headers)


@router.post("/annotation-files", responses=answers(400, 403, 404, 413, 422))
def bring_in(
    site: Served,
    file: UploadFile,
    format: Format,
    annotator: Annotated[Name, Query()],
    video: Annotated[str | None, Query(pattern=ID)] = None,
) -> Imported:
    """Add what a file of another tool says; annotator: who drew what the file names nobody for."""
    known = [facts(each) for each in site.store.list_videos(MOST_VIDEOS, 0)]
    if video is not None:
        known_video(site, video)
    found = _in_child(site, "whytube.web.exchange:read_file", format, file.file.read(), known, video)
    added, same = bring(site.annotations, found, annotator=annotator)
    return Imported(videos=added, same=same)


@router.get("/annotations/{video}", responses=answers(404, 422))
def get_annotation(site: Served, video: Ident) -> Annotation:
    """Return all that was said of a video."""
    known_video(site, video)
    return shown(video, site.annotations.state(video))


@router.post(
    "/annotations/{video}/actions", responses=STALE | answers(400, 403, 404, 413, 422), response_model=Annotation
)
def act(site: Served, video: Ident, body: ActionIn) -> Annotation | JSONResponse:
    """Do something to an annotation; what is acknowledged is on the disk."""
    known_video(site, video)
    try:
        state = site.annotations.append(video, body.annotator, body.action, version=body.version, request=body.request)
    except LookupError:
        known_video(site, video)
        raise
    except OutOfDateError as problem:
        told = OutOfDate(detail=str(problem), state=shown(video, problem.state))
        return JSONResponse(told.model_dump(mode="json"), 409)
    return shown(video, state)


@router.get("/annotations/{video}/drafts", responses=answers(404, 422))
def get_drafts(site: Served, video: Ident) -> Drafts:
    """Return what the model proposes for a video, once it has looked: see the job `draft`."""
    known_video(site, video)
    predicted, drafts = site.annotations.draft(video, site.model["hash"]) or (None, [])
    return Drafts(predicted=predicted, drafts=[Draft.model_validate_json(json.dumps(draft)) for draft in drafts])


@router.get("/annotations/{video}/events", response_class=StreamingResponse, responses=STREAM | answers(404, 422))
def follow(site: Served, video: Ident) -> StreamingResponse:
    """Follow an annotation: an event `annotation` with its version, now and whenever that changes."""
    known_video(site, video)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(_versions(site, video), media_type="text/event-stream", headers=headers)


async def _versions(site: Site, video: str) -> AsyncIterator[bytes]:
    last = -1
    with site.board.watching(video) as bell:
        while not site.board.closed:
            bell.clear()
            state = await run_in_threadpool(site.annotations.state, video)
            if state.version != last:
                last = state.version
                yield event("annotation", {"version": last})
            try:
                await asyncio.wait_for(bell.wait(), HEARTBEAT)
            except TimeoutError:
                yield b": still here\n\n"


def shown(video: str, state: State) -> Annotation:
    """Write a state as the API shows it."""
    return Annotation(
        video=video,
        version=state.version,
        label=None if state.label is None else LabelOut(label=state.label[0], annotator=state.label[1]),
        tracks=[
            TrackOut(
                annotator=track.annotator,
                attribute=track.attribute,
                track=track.number,
                origin=track.origin,
                keys=[track.keys[frame] for frame in track.frames],
            )
            for track in state.tracks.values()
        ],
        marks=[MarkOut(annotator=who, attribute=word, value=value) for (who, word), value in state.marks.items()],
        undo=state.undoable,
        redo=state.redoable,
    )


def _video_row(video: Video, state: State, drafted: tuple[str, Any] | None) -> VideoRow:
    return VideoRow(
        video=video,
        version=state.version,
        label=None if state.label is None else state.label[0],
        predicted=None if drafted is None else drafted[0],
        boxes=state.boxes,
        tracks=len(state.tracks),
        marks=len(state.marks),
        annotators=state.annotators,
    )


def _word_rows(site: Site, states: list[State]) -> list[WordRow]:
    """List the model's words, those that were added, and others that are in use."""
    known = list(site.model["attributes"])
    used = sorted({word for state in states for _, word in state.present})
    rows = []
    for word in dict.fromkeys((*known, *site.annotations.words(), *used)):
        own = [[track.boxes for track in state.tracks.values() if track.attribute == word] for state in states]
        counts = [sum(boxes) for boxes in own if sum(boxes)]
        rows.append(WordRow(word=word, known=word in known, boxes=sum(counts), videos=len(counts)))
    return rows


def _in_child(site: Site, place: str, *values: Any) -> Any:
    """Read or write a file in a process of its own; what it refuses is a 422."""
    try:
        return run_limited(place, *values, limits=site.settings.limits, largest=LARGEST_FILE)
    except WhytubeError as problem:
        raise HTTPException(422, str(problem)) from None
