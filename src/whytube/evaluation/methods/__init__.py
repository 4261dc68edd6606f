"""Baselines, controls and peers: each a small class that answers a Question with Regions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whytube.checks import unknown_name
from whytube.evaluation.methods.baselines import Centre, DetectorBox, TrueBox
from whytube.evaluation.methods.controls import RandomTube, RandomWord, ShuffledWords
from whytube.evaluation.methods.grad_cam import GradCam

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from whytube.classifiers.base import VideoClassifier
    from whytube.data.source import Source
    from whytube.explainer.regions import Method

__all__ = [
    "METHODS",
    "Centre",
    "DetectorBox",
    "GradCam",
    "RandomTube",
    "RandomWord",
    "ShuffledWords",
    "TrueBox",
    "make_methods",
]

METHODS: dict[str, Callable[[VideoClassifier, Source, int], Method]] = {
    "centre": lambda _, source, seed: Centre(source.attributes, seed=seed),
    "random-tube": lambda _, source, seed: RandomTube(source.table, seed=seed),
    "detector-box": lambda _, source, seed: DetectorBox(source.attributes, seed=seed),
    "grad-cam": lambda classifier, source, seed: GradCam(classifier, source.table, seed=seed),
    "true-box": lambda _, source, seed: TrueBox(source.attributes, source.table, seed=seed),
}
"""Methods that need no training, by name: (classifier, source, seed) -> Method."""


def make_methods(names: Iterable[str], classifier: VideoClassifier, source: Source, *, seed: int = 0) -> list[Method]:
    """Make methods by name."""
    wanted = list(names)
    for name in wanted:
        if name not in METHODS:
            raise unknown_name("method", name, METHODS)
    return [METHODS[name](classifier, source, seed) for name in wanted]
