"""The application: routes, pages, start and end."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles

import whytube
from whytube.errors import DataError
from whytube.web import annotate_api, api_jobs, api_results, api_server, api_videos, teaching_api
from whytube.web.children import log
from whytube.web.guard import Guard
from whytube.web.routes import Ident  # noqa: TC001 - FastAPI reads it at run time

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp

    from whytube.web.site import Site

STATIC = Path(__file__).parent / "static"
ROUTERS = (
    api_server.router,
    api_videos.router,
    api_jobs.router,
    api_results.router,
    annotate_api.router,
    teaching_api.router,
)
"""All routes. A further part of the page adds its APIRouter here."""


def build_app(site: Site) -> ASGIApp:
    """Build the application of a site that is started."""
    app = FastAPI(
        title="whytube",
        version=whytube.__version__,
        description="Ask why a network said A, not B, about a video.",
        docs_url=None,  # the pages behind these load scripts from elsewhere
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.site = site
    for router in ROUTERS:
        app.include_router(router)
    app.add_exception_handler(RequestValidationError, _tell)
    app.add_exception_handler(405, _other_method)
    for problem in (DataError, OSError):
        app.add_exception_handler(problem, _cannot_keep)
    app.add_exception_handler(Exception, _own_fault)
    _add_pages(app)
    return Guard(app, site.settings)


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.site.board.attach(asyncio.get_running_loop())
    yield


async def _tell(_: Request, problem: Exception) -> JSONResponse:
    """Say in one line what is wrong with a request."""
    errors = problem.errors() if isinstance(problem, RequestValidationError) else []
    told = [f"{'.'.join(str(part) for part in error['loc'])}: {error['msg']}" for error in errors[:3]]
    return JSONResponse({"detail": "; ".join(told) or "the request is not what is expected"}, 422)


async def _other_method(request: Request, _: Exception) -> JSONResponse:
    """Say which methods a path has, over all its routes."""
    named = {name for route in request.app.routes for name in _methods(route, request.scope["path"])}
    return JSONResponse({"detail": "this path has other methods"}, 405, headers={"allow": ", ".join(sorted(named))})


def _methods(route: BaseRoute, path: str) -> set[str]:
    inner = getattr(route, "path_regex", None)
    return (getattr(route, "methods", None) or set()) if inner is not None and inner.match(path) else set()


async def _cannot_keep(_: Request, problem: Exception) -> JSONResponse:
    """Say that the server's disk, or the like, is full."""
    log.error("a request could not be kept: %s", problem)
    return JSONResponse({"detail": "the server cannot keep this now: its disk may be full"}, 507)


async def _own_fault(_: Request, __: Exception) -> JSONResponse:
    """Say that this is a bug; the server's log has the traceback."""
    return JSONResponse({"detail": "the server failed: its log says why"}, 500)


def _add_pages(app: FastAPI) -> None:
    """Serve the pages; they hold no data, which they ask for with the token."""

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return _page("index.html")

    @app.get("/r/{result}", include_in_schema=False)
    async def shared(result: Ident) -> FileResponse:  # noqa: ARG001 - the page reads it from its address
        return _page("index.html")

    @app.get("/annotate", include_in_schema=False)
    async def annotate() -> FileResponse:
        return _page("annotate.html")

    app.mount("/static", StaticFiles(directory=STATIC), name="static")


def _page(name: str) -> FileResponse:
    path = STATIC / name
    if not path.exists():
        raise HTTPException(404, "there is no such page")
    return FileResponse(path, media_type="text/html; charset=utf-8", headers={"cache-control": "no-cache"})
