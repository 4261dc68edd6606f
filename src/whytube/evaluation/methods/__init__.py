"""Baselines, controls and peers: each a small class that answers a Question with Regions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whytube.checks import unknown_name
from whytube.evaluation.methods.baselines import Centre, DetectorBox, TrueBox
from whytube.evaluation.methods.controls import (
    Called,
    RandomAttribute,
    RandomTube,
    RandomVerified,
    Remembered,
    ShuffledAttributes,
)
from whytube.evaluation.methods.grad_cam import GradCam
from whytube.evaluation.methods.own import load_method
from whytube.evaluation.methods.shuffled_scores import ShuffledScores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from whytube.classifiers.base import VideoClassifier
    from whytube.data.source import Source
    from whytube.evaluation.judge import TruthMethod
    from whytube.search.verify import Method

__all__ = [
    "CONTROLS",
    "METHODS",
    "Called",
    "Centre",
    "DetectorBox",
    "GradCam",
    "RandomAttribute",
    "RandomTube",
    "RandomVerified",
    "Remembered",
    "ShuffledAttributes",
    "ShuffledScores",
    "TrueBox",
    "load_method",
    "make_methods",
]

METHODS: dict[str, Callable[[VideoClassifier, Source, int], Method | TruthMethod]] = {
    "centre": lambda _, source, seed: Centre(source.attribute_names, seed=seed),
    "random-tube": lambda _, source, seed: RandomTube(source.table, seed=seed),
    "detector-box": lambda _, __, seed: DetectorBox(seed=seed),
    "grad-cam": lambda classifier, source, seed: GradCam(classifier, source.table, seed=seed),
    "true-box": lambda _, __, seed: TrueBox(seed=seed),
}
"""Methods that need no training, by name: (classifier, source, seed) -> Method."""


CONTROLS: dict[str, Callable[[Method, VideoClassifier, Source, int], Method]] = {
    "random-tube": lambda like, _, source, seed: RandomTube(source.table, like=like, seed=seed),
    "random-verified": lambda like, classifier, source, seed: RandomVerified(classifier, source.table, like, seed=seed),
    "random-attribute": lambda like, _, source, seed: RandomAttribute(like, source.table, seed=seed),
    "shuffled-attributes": lambda like, _, source, seed: ShuffledAttributes(
        like, len(source.attribute_names), seed=seed
    ),
    "shuffled-scores": lambda like, classifier, _, seed: ShuffledScores(like, classifier, seed=seed),
}
"""What remains of a method once its tube or word is left to chance: (method, classifier, source, seed) -> Method."""


def make_methods(
    names: Iterable[str], classifier: VideoClassifier, source: Source, *, like: Method | None = None, seed: int = 0
) -> list[Method | TruthMethod]:
    """Make methods by name; with `like`, also the controls of that method."""
    controls = {} if like is None else CONTROLS
    wanted = list(names)
    for name in wanted:
        if name not in METHODS and name not in controls:
            raise unknown_name("method", name, {**METHODS, **controls})
    return [
        controls[name](like, classifier, source, seed)
        if like is not None and name in controls
        else METHODS[name](classifier, source, seed)
        for name in wanted
    ]
