"""A classifier on disk: its weights, and a card that says how to build it again and how good it is."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whytube.checks import unknown_name
from whytube.errors import ArgumentError, ModelError
from whytube.models.presets import ARCHITECTURES, construct
from whytube.models.stored import load_tensors, read_header, save_tensors

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import torch

    from whytube.classifiers.base import VideoClassifier

KIND = "classifier"
SHIPPED = Path(__file__).parent


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
    half: bool = False,
) -> Path:
    """Write a classifier as one safetensors file with its card.

    half: store the filters of the body as float16. The head stays exact: explainers know their classifier by it.
    """
    if model.architecture not in ARCHITECTURES:
        raise ModelError(
            f"cannot save a classifier of architecture {model.architecture!r}, as it could not be built again. "
            "Save the weights with the library that the network comes from, and the explainer with save_explainer"
        )
    tensors = model.state_dict()
    if half:
        tensors = {name: _halved(name, tensor) for name, tensor in tensors.items()}
    card = Card(
        architecture=model.architecture,
        settings=model.settings,
        classes=model.classes,
        recipe=None if recipe is None else dict(recipe),
        metrics=dict(metrics or {}),
        provenance=dict(provenance),
    )
    return save_tensors(path, tensors, asdict(card), kind=KIND)


def load_classifier(path_or_name: str | os.PathLike[str]) -> VideoClassifier:
    """Read a classifier, by path or by the name of a shipped model; it is ready to use (evaluation mode)."""
    path = find_weights(path_or_name)
    tensors, header = load_tensors(path, kind=KIND)
    card = _card(path, header)
    model = _build(path, card, card.classes)
    _fill(model, tensors, path)
    return model.eval()


def load_backbone(
    path_or_name: str | os.PathLike[str], classes: Sequence[str], *, seed: int = 0, **changes: Any
) -> VideoClassifier:
    """Read a classifier without its head, to train it for other classes (as the paper, UCF101-24 to Olympic Sports).

    seed: decides the weights of the new head. changes: go over the stored settings.
    """
    path = find_weights(path_or_name)
    tensors, header = load_tensors(path, kind=KIND)
    card = _card(path, header)
    model = _build(path, replace(card, settings=card.settings | changes), classes, seed=seed)
    kept = {name: tensor for name, tensor in tensors.items() if not name.startswith("head.")}
    fresh = {name: tensor for name, tensor in model.state_dict().items() if name.startswith("head.")}
    _fill(model, kept | fresh, path)
    return model


def read_card(path_or_name: str | os.PathLike[str]) -> Card:
    """Read what a classifier's file says about it, without the weights."""
    path = find_weights(path_or_name)
    return _card(path, read_header(path, kind=KIND))


def find_weights(path_or_name: str | os.PathLike[str]) -> Path:
    """Path of a classifier's file, from the name of a shipped model, the folder of a model, or the path itself."""
    path = Path(path_or_name)
    if path.name in shipped_names() and len(path.parts) == 1:
        path = SHIPPED / path.name
    elif len(path.parts) == 1 and not path.suffix and not path.exists():
        raise unknown_name("model", path.name, shipped_names())
    return path / "classifier.safetensors" if path.is_dir() else path


def shipped_names() -> list[str]:
    """Names of the models that come with the package."""
    return sorted(file.parent.name for file in SHIPPED.glob("*/classifier.safetensors"))


def weights_fingerprint(path_or_name: str | os.PathLike[str]) -> str:
    """First 16 digits of the SHA-256 of the names and values of a classifier's tensors."""
    tensors, _ = load_tensors(find_weights(path_or_name), kind=KIND)
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode())
        digest.update(tensor.contiguous().numpy().data)
    return digest.hexdigest()[:16]


def _halved(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """Turn filters into float16; vectors (normalisations, biases) are few and may go beyond its range."""
    return tensor.half() if tensor.is_floating_point() and tensor.ndim > 1 and not name.startswith("head.") else tensor


def _card(path: Path, header: dict[str, Any]) -> Card:
    if header.pop("base", None) is not None:
        raise ModelError(
            f"cannot use {path}: it holds only what differs from pulled weights, a format of versions before 0.2. "
            "Make a whole file of it with studies/whole_weights.py of whytube's source"
        )
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
