"""Routes about models that were taught: what would be taught, which there are, which answers. `teach` is a job."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException

from whytube.web.annotate_jobs import drawn
from whytube.web.annotation_messages import TaughtModel, TaughtModels, Teachable, UseIn
from whytube.web.routes import Ident, Served, answers

router = APIRouter(prefix="/api/teaching", tags=["teaching"])
NO_MODEL = "there is no such taught model: GET /api/teaching/models lists them"


@router.get("", responses=answers())
def teachable(site: Served) -> Teachable:
    """Say what teaching would use now."""
    words: dict[str, int] = {}
    videos = 0
    for video, state in site.annotations.states().items():
        known = site.store.video(video)
        tubes = {} if known is None else drawn(state, frames=known.frames)["tubes"]
        videos += bool(tubes)
        for word in tubes:
            words[word] = words.get(word, 0) + 1
    return Teachable(videos=videos, words=words, can=bool(site.model["words"]))


@router.get("/models", responses=answers())
def models(site: Served) -> TaughtModels:
    """List the models that were taught, the newest first."""
    chosen = site.taught.chosen()
    current = None if chosen is None else chosen.id
    rows = [
        TaughtModel(
            id=row.id, created=row.created, current=row.id == current, report=row.report, asked=row.asked or None
        )
        for row in site.taught.all()
    ]
    return TaughtModels(base=site.model["name"], current=current, models=rows)


@router.put("/current", status_code=204, responses=answers(400, 403, 404, 413, 422))
def use(site: Served, body: UseIn) -> None:
    """Answer with a taught model from now on, or with the one that the server was started with."""
    try:
        site.use(body.model)
    except LookupError:
        raise HTTPException(404, NO_MODEL) from None


@router.delete("/models/{model}", status_code=204, responses=answers(403, 404, 422))
def remove(site: Served, model: Ident) -> None:
    """Remove a taught model; the one that answers is left first."""
    if site.taught.find(model) is None:
        raise HTTPException(404, NO_MODEL)
    chosen = site.taught.chosen()
    if chosen is not None and chosen.id == model:
        site.use(None)
    site.taught.remove(model)
