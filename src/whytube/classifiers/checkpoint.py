"""Classifiers on disk: weights with everything needed to build the network again and to judge it.

A classifier that was fine-tuned from pulled weights may be stored as what differs from them: its base.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from whytube.cache import cached_weights
from whytube.checkpoint import load_tensors, read_header, save_tensors
from whytube.classifiers.catalogue import ARCHITECTURES, construct
from whytube.errors import ArgumentError, ModelError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from whytube.classifiers.base import VideoClassifier

KIND = "classifier"
SHIPPED = Path(__file__).parent.parent / "models"
"""Models that come with the package: a folder each, with classifier.safetensors, explainer.safetensors and a card."""


@dataclass(frozen=True)
class Card:
    """What a classifier's file says beside its weights.

    architecture, settings, classes: how to build it. recipe: how it was trained. metrics: what it reached.
    provenance: on what data, at which commit, on which machine.
    base: {"name", "fingerprint"} of the pulled weights that the file only differs from; None for a whole file.
    """

    architecture: str
    settings: dict[str, Any]
    classes: tuple[str, ...]
    recipe: dict[str, Any] | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    base: dict[str, str] | None = None


def save_classifier(
    path: str | os.PathLike[str],
    model: VideoClassifier,
    *,
    provenance: Mapping[str, Any],
    recipe: Mapping[str, Any] | None = None,
    metrics: Mapping[str, Any] | None = None,
    base: str | None = None,
    half: bool = False,
) -> Path:
    """Write a classifier as one safetensors file with its card.

    base: name of pulled weights; tensors that are the same there are left out, and whoever loads the file needs them.
    half: store the weights of the body as float16. The head stays exact: explainers know their classifier by it.
    """
    if model.architecture not in ARCHITECTURES:
        raise ModelError(
            f"cannot save a classifier of architecture {model.architecture!r}, as it could not be built again. "
            "Save the weights with the library that the network comes from, and the explainer with save_explainer"
        )
    tensors, known = model.state_dict(), None
    if base is not None:
        theirs = _base_tensors(base)
        known = {"name": base, "fingerprint": _fingerprint(theirs)}
        tensors = {name: tensor for name, tensor in tensors.items() if not _same(tensor, theirs.get(name))}
    if half:
        tensors = {name: _halved(name, tensor) for name, tensor in tensors.items()}
    card = Card(
        architecture=model.architecture,
        settings=model.settings,
        classes=model.classes,
        recipe=None if recipe is None else dict(recipe),
        metrics=dict(metrics or {}),
        provenance=dict(provenance),
        base=known,
    )
    return save_tensors(path, tensors, asdict(card), kind=KIND)


def load_classifier(path_or_name: str | os.PathLike[str]) -> VideoClassifier:
    """Read a classifier, by path or by the name of shipped or pulled weights; it is ready to use (evaluation mode)."""
    path = find_weights(path_or_name)
    tensors, card = _read(path)
    model = _build(path, card, card.classes)
    _fill(model, tensors, path)
    return model.eval()


def load_backbone(
    path_or_name: str | os.PathLike[str], classes: Sequence[str], *, seed: int = 0, **changes: Any
) -> VideoClassifier:
    """Read a classifier without its head, to go on with other classes (as the paper, UCF101-24 to Olympic Sports).

    The new head starts from random weights, decided by `seed`; `changes` go over the stored settings.
    """
    path = find_weights(path_or_name)
    tensors, card = _read(path)
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
    """Path of shipped or pulled weights by name; anything that has a suffix or a folder is a path already."""
    path = Path(path_or_name)
    if path.suffix or len(path.parts) != 1:
        return path
    known = sorted(file.parent.name for file in SHIPPED.glob("*/classifier.safetensors"))
    if path.name in known:
        return SHIPPED / path.name / "classifier.safetensors"
    pulled = cached_weights(path.name)
    if pulled.exists():
        return pulled
    listed = f"the names of shipped weights ({', '.join(known)})" if known else "no weights are shipped"
    raise ModelError(
        f"no weights are called {path.name!r} here: expected a path to a .safetensors file; {listed}; or pulled "
        "weights: `whytube models list` shows what `whytube models pull` can fetch"
    )


def weights_fingerprint(path_or_name: str | os.PathLike[str]) -> str:
    """Tell the weights of a classifier from others, however their file was written."""
    return _fingerprint(_read(find_weights(path_or_name))[0])


def is_pulled(path_or_name: str | os.PathLike[str]) -> bool:
    """Whether this is the name of weights in the cache, on which a file can stand as its base."""
    path = Path(path_or_name)
    shipped = (SHIPPED / path.name).is_dir()
    return not path.suffix and len(path.parts) == 1 and not shipped and cached_weights(path.name).exists()


def _read(path: Path) -> tuple[dict[str, torch.Tensor], Card]:
    """All tensors of a classifier, those of its base included."""
    tensors, header = load_tensors(path, kind=KIND)
    card = _card(path, header)
    if card.base is None:
        return tensors, card
    theirs = _base_tensors(card.base["name"])
    if _fingerprint(theirs) != card.base["fingerprint"]:
        raise ModelError(f"cannot use {path}: it stands on other weights than the {card.base['name']} in the cache")
    return theirs | tensors, card


def _base_tensors(name: str) -> dict[str, torch.Tensor]:
    path = cached_weights(name)
    if not path.exists():
        raise ModelError(f"the weights {name!r} are not in the cache: run `whytube models pull {name}` first")
    return load_tensors(path, kind=KIND)[0]


def _fingerprint(tensors: Mapping[str, torch.Tensor]) -> str:
    """Tell sets of weights apart, however their files were written."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode())
        digest.update(tensor.contiguous().numpy().data)
    return digest.hexdigest()[:16]


def _same(tensor: torch.Tensor, other: torch.Tensor | None) -> bool:
    return other is not None and tensor.shape == other.shape and torch.equal(tensor.cpu(), other)


def _halved(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """Turn filters into float16; vectors (normalisations, biases) are few and may go beyond its range."""
    return tensor.half() if tensor.is_floating_point() and tensor.ndim > 1 and not name.startswith("head.") else tensor


def _card(path: Path, header: dict[str, Any]) -> Card:
    try:
        card = Card(**{**header, "classes": tuple(header["classes"])})
        if card.base is not None and set(card.base) != {"name", "fingerprint"}:
            raise KeyError("base")
    except (TypeError, KeyError) as error:
        raise ModelError(f"cannot use {path}: its card is damaged ({error})") from error
    return card


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
