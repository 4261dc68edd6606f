"""Routes about answers: the document, and files to take away."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, HTTPException
from fastapi.responses import FileResponse, JSONResponse

from whytube.errors import VideoError
from whytube.web.children import run_limited
from whytube.web.messages import Result
from whytube.web.routes import Ident, Served, answers

if TYPE_CHECKING:
    from pathlib import Path

    from whytube.web.site import Site

router = APIRouter(prefix="/api", tags=["results"])
NO_RESULT = "there is no such result: its video may have been deleted"
VIDEOS = re.compile(r"overlay\.mp4|heat\.mp4|masked-[0-4]-(mean|blur|freeze|zero|still|shift|noise)\.mp4")


def _file(media: str, *statuses: int) -> dict[str, Any]:
    content = {media: {"schema": {"type": "string", "format": "binary"}}}
    return {"response_class": FileResponse, "responses": {200: {"content": content}} | answers(404, 422, *statuses)}


@router.get("/results/{result}", responses=answers(404, 422))
def get_result(site: Served, result: Ident) -> Result:
    """Get an answer."""
    video, document = known_result(site, result)
    return Result(id=result, video=video, document=document)


@router.get("/results/{result}/explanation.json", responses=answers(404, 422))
def get_json(site: Served, result: Ident) -> JSONResponse:
    """Download the document as `whytube explain --save` writes it."""
    document = known_result(site, result)[1]
    return JSONResponse(document, headers=_attached("explanation.json"))


@router.get("/results/{result}/report.html", **_file("text/html"))
async def get_report(site: Served, result: Ident) -> FileResponse:
    """Download one page with everything in it."""
    return await _made(site, result, "report.html", "text/html", "whytube.web.drawing:report")


@router.get("/results/{result}/tubes.cvat.xml", **_file("application/xml"))
async def get_tracks(site: Served, result: Ident) -> FileResponse:
    """Download the tubes as tracks for CVAT, to correct them there."""
    return await _made(site, result, "tubes.cvat.xml", "application/xml", "whytube.web.drawing:tracks")


@router.get("/results/{result}/{name}", **_file("video/mp4", 400))
def get_video_file(site: Served, result: Ident, name: str) -> FileResponse:
    """Download a video that a job made: overlay.mp4, heat.mp4, or masked-REASON-FILL.mp4."""
    known_result(site, result)
    if VIDEOS.fullmatch(name) is None:
        raise HTTPException(404, "there is no such file of a result")
    path = site.store.result_folder(result) / name
    if not path.exists():
        raise HTTPException(404, "POST a job first")
    return FileResponse(path, media_type="video/mp4", filename=name, content_disposition_type="inline")


def known_result(site: Site, ident: str) -> tuple[str, dict[str, Any]]:
    """Find the video and the document of an answer, or answer 404."""
    found = site.store.result(ident)
    if found is None:
        raise HTTPException(404, NO_RESULT)
    return found


async def _made(site: Site, result: str, name: str, media: str, place: str) -> FileResponse:
    """Give a file of an answer; it is made, in a child process, where it was not asked for before."""

    def make() -> Path:
        video, document = known_result(site, result)
        folder = site.store.result_folder(result)
        if not (folder / name).exists():
            values = (str(site.store.video_folder(video) / "play.mp4"), document, str(folder))
            run_limited(place, *values, limits=site.settings.limits, largest=1 << 30)
        return folder / name

    try:
        path = await asyncio.get_running_loop().run_in_executor(site.intake.threads, make)
    except VideoError as problem:
        raise HTTPException(422, str(problem)) from problem
    return FileResponse(path, media_type=media, headers=_attached(name))


def _attached(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}
