"""What a method asks of the classifier while it answers: counted here, not claimed by the method.

The methods of the classifier's class are watched for the time of a block, so that copies of the network count too.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import torch

from whytube.classifiers.base import Features
from whytube.search.response import back_share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from whytube.classifiers.base import VideoClassifier

WATCHED = ("forward", "features", "front", "back", "finish")
"""Methods of a VideoClassifier that run it, or a part of it, on a batch."""
WITH_GRADIENT, BACKWARD = 3, 2
"""Runs that a run with gradients on counts as, its backward run included, and each further backward run through it."""


@dataclass
class Runs:
    """How many clips a classifier was run on; whole runs, first parts and second parts of runs apart."""

    share: float = 1.0
    """Of a run that a second part is, in multiply-adds."""
    whole: int = 0
    front: int = 0
    back: int = 0

    @property
    def clips(self) -> float:
        """All of them; a part of a run counts by its share."""
        return self.whole + (1 - self.share) * self.front + self.share * self.back


@contextmanager
def counted(classifier: VideoClassifier) -> Iterator[Runs]:
    """Count the clips that networks of the classifier's class are run on in a block.

    A run with gradients on counts as three, since a backward run costs about two; every further backward run through
    the same logits counts as two more.
    """
    cut = classifier.response_cut
    runs = Runs() if cut is None else Runs(back_share(classifier, cut))

    def see(name: str, given: torch.Tensor, result: Any) -> Any:
        kind = name if name in ("front", "back") else "whole"
        logits = result.logits if isinstance(result, Features) else result
        times = 1
        if torch.is_grad_enabled() and logits.requires_grad:
            times = WITH_GRADIENT
            if name != "front":
                logits.register_hook(_Backward(runs, kind, len(given)))
        setattr(runs, kind, getattr(runs, kind) + times * len(given))
        return result

    with watched(type(classifier), see):
        yield runs


class _Backward:
    """A hook on logits that counts backward runs but the first, which the forward run has paid for."""

    def __init__(self, runs: Runs, kind: str, clips: int) -> None:
        self.runs, self.kind, self.clips, self.paid = runs, kind, clips, True

    def __call__(self, _gradient: torch.Tensor) -> None:
        if self.paid:
            self.paid = False
            return
        setattr(self.runs, self.kind, getattr(self.runs, self.kind) + BACKWARD * self.clips)


@contextmanager
def watched(kind: type[VideoClassifier], see: Callable[[str, torch.Tensor, Any], Any]) -> Iterator[None]:
    """Have `see(name, batch, result)` look at every run of networks of a class in a block; what it returns is given.

    Only calls from outside are seen: where `forward` calls `features`, that is one run.
    """
    inside = threading.local()

    def watching(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(run)
        def seen(network: VideoClassifier, given: torch.Tensor, *rest: Any, **named: Any) -> Any:
            if getattr(inside, "run", False):
                return run(network, given, *rest, **named)
            inside.run = True
            try:
                result = run(network, given, *rest, **named)
            finally:
                inside.run = False
            return see(name, given, result)

        return seen

    own = {name: vars(kind)[name] for name in WATCHED if name in vars(kind)}
    for name in WATCHED:
        setattr(kind, name, watching(name, getattr(kind, name)))
    try:
        yield
    finally:
        for name in WATCHED:
            if name in own:
                setattr(kind, name, own[name])
            else:
                delattr(kind, name)
