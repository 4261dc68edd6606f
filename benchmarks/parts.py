"""Where the time of an answer goes: every call of a part of whytube is timed, without that of other parts inside.

On a GPU the device is waited for at both ends of a call, so that a part's time is its own; that makes the whole slower
than it is.
"""

from __future__ import annotations

import importlib
import threading
import time
from functools import wraps
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

PARTS = {
    "decode": ["bulk.work.read_clip", "bulk.work.video_hash"],
    "classifier": ["asking.ask"],
    "layer": [
        "search.grad_cam.top_subpaths",
        "explainer.explainer.max_subpath",
        "explainer.explainer.max_subpath_difference",
    ],
    "gradients": ["explainer.explainer.map_tubes"],
    "verification": ["asking.masked_logits", "search.anytime.masked_logits", "search.verify.masked_logits"],
    "predictions": ["search.response.Predictor.__init__", "search.response.Predictor.__call__"],
    "fits of words": [
        "explainer.places.Places.fits_or_raw",
        "explainer.places.Places.fit_of",
        "explainer.places.Places.volumes_or_scores",
        "explainer.explainer.find_places",
    ],
    "tubes": ["search.anytime._Run.proposals", "search.anytime._Run._pool", "search.anytime._Run._changed"],
    "choosing": ["search.anytime._Run._spread", "search.anytime._Run._worded", "search.anytime.different"],
    "hashes": ["asking.identity", "asking.model_hash", "search.anytime.clip_keys"],
    "writing": ["asking._reasons", "bulk.work._answer", "bulk.tables.Part._flush"],
}
"""Gradients are Grad-CAM's proposals but the layer; tubes: random and changed ones; verification: masked clips through
the network, in the search and for the evidence; predictions and fits of words choose which tubes are worth that."""
ASIDE = ("decode",)
"""Done in a thread of its own."""
NETWORK = ("classifier", "gradients", "verification", "predictions")
"""Parts that are runs of the network, or of its later stages."""


def watch(spent: dict[str, float], device: torch.device) -> None:
    """Have all parts add their seconds to `spent` from now on."""
    for part, places in PARTS.items():
        for place in places:
            _time(place, part, spent, device)


class Stack(threading.local):
    """The parts that a thread is in, the innermost last, and since when that one runs."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.since = 0.0


STACK = Stack()


def _time(place: str, part: str, spent: dict[str, float], device: torch.device) -> None:
    """Have every call of a function of whytube add its time to a part, but not to the part that it is called in."""
    path = place.split(".")
    depth = 2 if path[-2].lstrip("_")[0].isupper() else 1
    owner: Any = importlib.import_module(".".join(["whytube", *path[:-depth]]))
    for name in path[-depth:-1]:
        owner = getattr(owner, name)
    call: Callable[..., Any] = getattr(owner, path[-1])

    @wraps(call)
    def timed(*args: Any, **kwargs: Any) -> Any:
        _turn(part, spent, device)
        try:
            return call(*args, **kwargs)
        finally:
            _turn(None, spent, device)

    setattr(owner, path[-1], timed)


def _turn(part: str | None, spent: dict[str, float], device: torch.device) -> None:
    """Enter a part, or leave the innermost one; its time until now is added to it."""
    if (part or STACK.parts[-1]) not in ASIDE:  # the reading thread uses no device, and would wait for the other's work
        _wait(device)
    now = time.perf_counter()
    if STACK.parts:
        spent[STACK.parts[-1]] += now - STACK.since
    if part is None:
        STACK.parts.pop()
    else:
        STACK.parts.append(part)
    STACK.since = now


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
