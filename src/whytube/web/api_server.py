"""Routes about the server itself: its health, its model, and the token."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Response

import whytube
from whytube.web.guard import COOKIE, same_token
from whytube.web.messages import Health, LimitsOut, ModelOut, SessionIn
from whytube.web.routes import Served, answers

router = APIRouter(tags=["server"])


@router.get("/healthz")
async def health(site: Served) -> Health:
    """Say that the server answers; open without a token."""
    queued, running = site.board.counts
    return Health(status="ok", version=whytube.__version__, model=site.model["name"], queued=queued, running=running)


@router.get("/api/model", responses=answers())
async def model(site: Served) -> ModelOut:
    """Describe the model, and what may be asked of it."""
    known = {name: site.model[name] for name in ModelOut.model_fields if name != "limits"}
    limits = {name: getattr(site.settings.limits, name) for name in LimitsOut.model_fields}
    return ModelOut(**known, limits=LimitsOut(**limits))


@router.post("/api/session", status_code=204, responses=answers(400, 403, 413, 422))
async def open_session(site: Served, body: SessionIn, response: Response) -> None:
    """Trade the token for a cookie, so that the page and its videos may be loaded."""
    token = site.settings.token
    if token is None:
        return
    if not same_token(body.token, token):
        raise HTTPException(401, "this is not the server's token: open the address that it printed at its start")
    response.set_cookie(COOKIE, token, httponly=True, samesite="strict", path="/")
