"""Draws answers: overlay and masked videos, and the page to keep. Runs in child and worker processes only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from whytube.data.formats import FORMATS, explained
from whytube.explanation import Explanation
from whytube.files import write_whole
from whytube.report import overlay_video, write_masked_video, write_report
from whytube.web.store_database import make_durable
from whytube.web.work import Outcome

if TYPE_CHECKING:
    from whytube.web.work import Context

NAMES = {"boxes": "overlay.mp4", "heat": "heat.mp4"}


def overlay(inputs: dict[str, Any], context: Context) -> Outcome:
    """Write the video with the tubes drawn on it."""
    context.progress(0, 1, "drawing")
    name = NAMES[inputs["style"]]
    explanation = Explanation.from_dict(inputs["document"])
    _durable(overlay_video(inputs["play"], explanation, Path(inputs["folder"]) / name, style=inputs["style"]))
    return Outcome(value={"url": f"/api/results/{inputs['result']}/{name}"})


def masked(inputs: dict[str, Any], context: Context) -> Outcome:
    """Write the video with the tube of one reason filled."""
    context.progress(0, 1, "hiding the tube in every frame")
    reason, fill = inputs["reason"], inputs["fill"]
    target = Path(inputs["folder"]) / f"masked-{reason}-{fill}.mp4"
    explanation = Explanation.from_dict(inputs["document"])
    _durable(write_masked_video(inputs["play"], explanation, target, reason=reason, fill=fill))
    return Outcome(value={"url": f"/api/results/{inputs['result']}/{target.name}"})


def report(play: str, document: dict[str, Any], folder: str) -> None:
    """Write report.html, one file with everything in it; an overlay that is there is used."""
    explanation, place = Explanation.from_dict(document), Path(folder)
    drawn = place / NAMES["boxes"]
    if not drawn.exists():
        overlay_video(play, explanation, drawn)
    _durable(write_report(place / "report.html", explanations=[(explanation, drawn)], title=explanation.sentence))


def tracks(_play: str, document: dict[str, Any], folder: str) -> None:
    """Write tubes.cvat.xml: the tubes that the sentence names as tracks of CVAT."""
    told = FORMATS["cvat"].write([explained(Explanation.from_dict(document))])
    _durable(write_whole(Path(folder) / "tubes.cvat.xml", told))


def _durable(path: Path) -> None:
    make_durable(path)
    make_durable(path.parent)
