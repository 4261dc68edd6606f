"""Classifiers on disk: weights with everything needed to build the network again and to judge it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whytube.checkpoint import load_tensors, read_header, save_tensors
from whytube.classifiers.catalogue import ARCHITECTURES, construct
from whytube.errors import ArgumentError, ModelError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import torch

    from whytube.classifiers.base import VideoClassifier

KIND = "classifier"
SHIPPED = Path(__file__).parent.parent / "models"
"""Models that come with the package: a folder each, with classifier.safetensors, explainer.safetensors and a card."""


@dataclass(frozen=True)
class Card:
    """What a classifier's file says beside its weights.

    architecture, settings, classes: how to build it. recipe: how it was trained. metrics: what it reached.
    provenance: on what data, at which commit, on which machine.
    """

    architecture: str
    settings: dict[str, Any]
    classes: tuple[str, ...]
    recipe: dict[str, Any] | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)


def save_classifier(
    path: str | os.PathLike[str],
    model: VideoClassifier,
    *,
    provenance: Mapping[str, Any],
    recipe: Mapping[str, Any] | None = None,
    metrics: Mapping[str, Any] | None = None,
) -> Path:
    """Write a classifier as one safetensors file with its card."""
    card = Card(
        architecture=model.architecture,
        settings=model.settings,
        classes=model.classes,
        recipe=None if recipe is None else dict(recipe),
        metrics=dict(metrics or {}),
        provenance=dict(provenance),
    )
    return save_tensors(path, model.state_dict(), asdict(card), kind=KIND)


def load_classifier(path_or_name: str | os.PathLike[str]) -> VideoClassifier:
    """Read a classifier, by path or by the name of shipped weights; it is ready to use (evaluation mode)."""
    path = find_weights(path_or_name)
    tensors, header = load_tensors(path, kind=KIND)
    card = _card(path, header)
    model = _build(path, card, card.classes)
    _fill(model, tensors, path)
    return model.eval()


def load_backbone(path_or_name: str | os.PathLike[str], classes: Sequence[str], *, seed: int = 0) -> VideoClassifier:
    """Read a classifier without its head, to go on with other classes (as the paper, UCF101-24 to Olympic Sports).

    The new head starts from random weights, decided by `seed`.
    """
    path = find_weights(path_or_name)
    tensors, header = load_tensors(path, kind=KIND)
    model = _build(path, _card(path, header), classes, seed=seed)
    kept = {name: tensor for name, tensor in tensors.items() if not name.startswith("head.")}
    fresh = {name: tensor for name, tensor in model.state_dict().items() if name.startswith("head.")}
    _fill(model, kept | fresh, path)
    return model


def read_card(path_or_name: str | os.PathLike[str]) -> Card:
    """Read what a classifier's file says about it, without the weights."""
    path = find_weights(path_or_name)
    return _card(path, read_header(path, kind=KIND))


def find_weights(path_or_name: str | os.PathLike[str]) -> Path:
    """Path of shipped weights by name; anything that has a suffix or a folder is a path already."""
    path = Path(path_or_name)
    if path.suffix or len(path.parts) != 1:
        return path
    known = sorted(file.parent.name for file in SHIPPED.glob("*/classifier.safetensors"))
    if path.name in known:
        return SHIPPED / path.name / "classifier.safetensors"
    listed = f"the names of shipped weights ({', '.join(known)})" if known else "no weights are shipped"
    raise ModelError(f"no weights are called {path.name!r}: expected a path to a .safetensors file; {listed}")


def _card(path: Path, header: dict[str, Any]) -> Card:
    try:
        return Card(**{**header, "classes": tuple(header["classes"])})
    except (TypeError, KeyError) as error:
        raise ModelError(f"cannot use {path}: its card is damaged ({error})") from error


def _build(path: Path, card: Card, classes: Sequence[str], *, seed: int = 0) -> VideoClassifier:
    if card.architecture not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ModelError(f"cannot use {path}: unknown architecture {card.architecture!r}; this whytube knows {known}")
    try:
        return construct(card.architecture, classes, settings=card.settings, seed=seed)
    except (TypeError, ArgumentError) as error:
        raise ModelError(f"cannot use {path}: {error}") from error


def _fill(model: VideoClassifier, tensors: dict[str, torch.Tensor], path: Path) -> None:
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise ModelError(f"cannot use {path}: its weights do not fit its settings. {error}") from error
