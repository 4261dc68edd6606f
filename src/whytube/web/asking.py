"""Answers questions about videos. Runs in a worker process only."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from whytube import explaining
from whytube.search.anytime import Effort
from whytube.tubes import Tube
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
    """Say why A, not B; answers are shown after every round of the search, and the last one is kept."""
    tubes = Effort(tubes=inputs["effort"]).rounds()
    context.progress(0, inputs["effort"], "looking for tubes")
    found = explaining.explain_rounds(
        load_clip(inputs["clip"]),
        context.model,
        why=inputs["why"],
        why_not=inputs["why_not"],
        k=inputs["k"],
        effort=inputs["effort"],
        area=inputs["area"],
    )
    document: dict[str, Any] = {}
    for number, answer in enumerate(found, start=1):
        document = _document(answer, inputs)
        context.answer(document)
        tried = min(sum(tubes[:number]), inputs["effort"])
        context.progress(tried, inputs["effort"], f"{tried} of {inputs['effort']} tubes tried")
    return Outcome(document=document)


def what_if(inputs: dict[str, Any], context: Context) -> Outcome:
    """Say what hiding a tube that a person drew does to the decision."""
    context.progress(0, 1, "hiding the tube")
    found = explaining.what_if(
        load_clip(inputs["clip"]),
        context.model,
        Tube.from_dict(inputs["tube"]),
        why=inputs["why"],
        why_not=inputs["why_not"],
    )
    return Outcome(document=_document(found, inputs))


def _document(explanation: Explanation, inputs: dict[str, Any]) -> dict[str, Any]:
    """Write an answer as it is kept: with the video's own name and hash, and no path of the server."""
    return replace(explanation, source=inputs["name"], video_hash=inputs["hash"]).to_dict()
