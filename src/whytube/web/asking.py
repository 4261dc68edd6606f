"""Answers questions about videos. Runs in a worker process only."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from whytube import explaining
from whytube.web.decoding import load_clip
from whytube.web.work import Outcome

if TYPE_CHECKING:
    from whytube.explanation import Explanation
    from whytube.web.work import Context


def classify(inputs: dict[str, Any], context: Context) -> Outcome:
    """Say the probabilities of all classes, the likeliest first."""
    context.progress(0, 1, "classifying")
    said = explaining.classify(load_clip(inputs["clip"]), context.model, top=None)
    return Outcome(value={"probabilities": said, "predicted": next(iter(said))})


def explain(inputs: dict[str, Any], context: Context) -> Outcome:
    """Say why A, not B."""
    context.progress(0, 1, "searching")
    found = explaining.explain(
        load_clip(inputs["clip"]),
        context.model,
        why=inputs["why"],
        why_not=inputs["why_not"],
        k=inputs["k"],
        effort=inputs["effort"],
        area=inputs["area"],
    )
    return Outcome(document=_document(found, inputs))


def _document(explanation: Explanation, inputs: dict[str, Any]) -> dict[str, Any]:
    """Write an answer as it is kept: with the video's own name and hash, and no path of the server."""
    return replace(explanation, source=inputs["name"], video_hash=inputs["hash"]).to_dict()
