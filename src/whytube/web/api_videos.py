"""Routes about videos: receive, list, play, delete; examples and the operator's folder."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Response, UploadFile
from fastapi.responses import FileResponse

from whytube.errors import VideoError
from whytube.web.intake import EXAMPLES
from whytube.web.messages import Examples, Folder, Video, Videos
from whytube.web.routes import Answers, Ident, Served, answers

if TYPE_CHECKING:
    from collections.abc import Callable

    from whytube.web.site import Site

router = APIRouter(prefix="/api", tags=["videos"])
NEW: Answers = {201: {"model": Video, "description": "It is new"}, 200: {"description": "It was there already"}}

PLAYED: Answers = {
    200: {"content": {"video/mp4": {"schema": {"type": "string", "format": "binary"}}}},
    206: {"description": "A range of it"},
    416: {"description": "There is no such range"},
}


@router.post("/videos", status_code=201, responses={**NEW, **answers(400, 408, 413, 422, 429)})
async def add_video(site: Served, file: UploadFile, response: Response) -> Video:
    """Upload a video. The same bytes again give the same video."""
    return await _received(site, response, lambda: site.intake.add(file.file, file.filename or ""))


@router.get("/videos", responses=answers(422))
def list_videos(
    site: Served,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    offset: Annotated[int, Query(ge=0, le=1_000_000_000)] = 0,
) -> Videos:
    """List videos, the newest first."""
    return Videos(videos=site.store.list_videos(limit, offset))


@router.get("/videos/{video}", responses=answers(404, 422))
def get_video(site: Served, video: Ident) -> Video:
    """Describe a video."""
    return known_video(site, video)


@router.delete("/videos/{video}", status_code=204, responses=answers(403, 404, 422))
def delete_video(site: Served, video: Ident) -> None:
    """Delete a video with its results."""
    if not site.delete_video(video):
        raise HTTPException(404, NO_VIDEO)


@router.get(
    "/videos/{video}/play",
    response_class=FileResponse,
    responses=PLAYED | answers(400, 404, 422),
)
def play_video(site: Served, video: Ident) -> FileResponse:
    """Play a video: H.264, frame i at i / fps seconds."""
    path = site.store.video_folder(known_video(site, video).id) / "play.mp4"
    return FileResponse(path, media_type="video/mp4", headers={"cache-control": "private, max-age=31536000, immutable"})


@router.get("/examples", responses=answers())
def list_examples(site: Served) -> Examples:
    """List clips of the embedded world to start with."""
    return Examples(examples=site.intake.examples())


@router.post("/examples/{name}", status_code=201, responses={**NEW, **answers(404, 422)})
async def add_example(site: Served, name: str, response: Response) -> Video:
    """Take a clip of the embedded world."""
    if name not in EXAMPLES:
        raise HTTPException(404, "there is no such example: GET /api/examples lists them")
    return await _received(site, response, lambda: site.intake.example(name))


@router.get("/folder", responses=answers())
def list_folder(site: Served) -> Folder:
    """List the videos of the folder that the server was started with."""
    return Folder(videos=site.intake.folder())


@router.post("/folder/{key}", status_code=201, responses={**NEW, **answers(404, 413, 422)})
async def add_from_folder(site: Served, key: Ident, response: Response) -> Video:
    """Take a video of the folder that the server was started with."""
    return await _received(site, response, lambda: site.intake.from_folder(key))


NO_VIDEO = "there is no such video: it may have been deleted"


def known_video(site: Site, ident: str) -> Video:
    """Find a video, or answer 404."""
    video = site.store.video(ident)
    if video is None:
        raise HTTPException(404, NO_VIDEO)
    return video


async def _received(site: Site, response: Response, work: Callable[[], Any]) -> Video:
    """Decode in one of the few threads for that; a video that is refused is a 422 with its reason."""
    try:
        found = await asyncio.get_running_loop().run_in_executor(site.intake.threads, work)
    except VideoError as problem:
        raise HTTPException(422, str(problem)) from problem
    if found is None:
        raise HTTPException(404, "the folder has no such video any more: GET /api/folder lists them")
    video, new = found
    response.status_code = 201 if new else 200
    return Video.model_validate(video)
