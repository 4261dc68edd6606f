"""What all routes share: the site that they serve, ids in paths, and the errors that they declare."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from fastapi import Depends, Path, Request

from whytube.web.messages import ID, Problem
from whytube.web.site import Site

REASONS = {
    400: "The request cannot be read",
    401: "The token is missing or wrong",
    403: "The request comes from another site",
    404: "There is no such thing",
    408: "The body stopped coming",
    413: "The body is too large",
    422: "The request, or the video, is not what is expected",
    429: "Too much waits already: try again later",
}


Answers: TypeAlias = dict[int | str, dict[str, Any]]


def answers(*statuses: int) -> Answers:
    """Declare the errors of a route for its description; every route may also ask for the token."""
    return {status: {"model": Problem, "description": REASONS[status]} for status in (*statuses, 401)}


def site_of(request: Request) -> Site:
    """Give the site of the application."""
    site: Site = request.app.state.site
    return site


Served = Annotated[Site, Depends(site_of)]
Ident = Annotated[str, Path(pattern=ID, description="A lowercase hexadecimal id")]
