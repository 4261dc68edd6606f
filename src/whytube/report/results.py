"""Read an evaluation's results for the report: every key may be absent or None."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whytube.report.charts import Line

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Column:
    """A measure of the table: where it stands in a method's results, its heading, and whether more is better."""

    path: tuple[str, ...]
    heading: str
    hint: str
    more_is_better: bool | None = True


COLUMNS = (
    Column(
        ("negative_class_accuracy", "top1"),
        "negative, top\N{NO-BREAK SPACE}1",
        "masking the tube raises B more than any other class",
    ),
    Column(
        ("negative_class_accuracy", "top3"),
        "negative, top\N{NO-BREAK SPACE}3",
        "B is among the three classes that rise most",
    ),
    Column(("positive_drop",), "p(A) falls", "share of tubes that lower p(A) when masked"),
    Column(
        ("concept_accuracy", "top1"), "concept, top\N{NO-BREAK SPACE}1", "the best tube lies on a true box of its word"
    ),
    Column(("concept_accuracy", "top3"), "concept, top\N{NO-BREAK SPACE}3", "one of the best three does"),
    Column(("concept_accuracy", "top5"), "concept, top\N{NO-BREAK SPACE}5", "one of the best five does"),
    Column(("tube_area",), "area", "share of the clip that a tube covers", more_is_better=None),
    Column(("tube_frames",), "frames", "mean length of a tube", more_is_better=None),
)


@dataclass(frozen=True)
class Measure:
    """A value with the interval around it, where one was given."""

    value: float
    low: float | None = None
    high: float | None = None


def methods_of(results: Mapping[str, Any] | None) -> dict[str, Mapping[str, Any]]:
    """Name -> results of each method that has any, in their order."""
    methods = _mapping(results).get("methods")
    return {str(name): method for name, method in _mapping(methods).items() if _mapping(method)}


def measure(method: Mapping[str, Any], path: tuple[str, ...]) -> Measure | None:
    """Read one measure: a number, or {"mean" or "value", and "low" and "high" or "interval": [low, high]}.

    For a number the interval may stand under the same path in method["intervals"].
    """
    found, bounds = _dig(method, path), _dig(_mapping(method.get("intervals")), path)
    if isinstance(found, dict):
        bounds = found.get("interval", (found.get("low"), found.get("high")))
        found = found.get("mean", found.get("value"))
    value = _number(found)
    if value is None:
        return None
    ends = bounds if isinstance(bounds, (list, tuple)) and len(bounds) == 2 else (None, None)
    low, high = _number(ends[0]), _number(ends[1])
    return Measure(value) if low is None or high is None else Measure(value, low, high)


def curves(methods: Mapping[str, Mapping[str, Any]], key: str) -> list[Line]:
    """Lines of each method's curve: {"negatives": [1, 2, ...], "top1": [...], ...}, or a list of such points."""
    lines = []
    for name, method in methods.items():
        curve = method.get("curve")
        if isinstance(curve, list):
            points = [point for point in curve if isinstance(point, dict)]
            x, y = [p.get("negatives") for p in points], [p.get(key) for p in points]
        else:
            y = _mapping(curve).get(key) or []
            x = _mapping(curve).get("negatives") or list(range(1, len(y) + 1))
        pairs = [(_number(a), _value(b)) for a, b in zip(x, y, strict=False)]
        lines.append(Line(name, [a for a, _ in pairs if a is not None], [b for a, b in pairs if a is not None]))
    return lines


def lengths(method: Mapping[str, Any]) -> Counter[int]:
    """Count tubes per length: a list of lengths, or a mapping {length: count}."""
    found = method.get("tube_lengths")
    if isinstance(found, dict):
        return Counter({int(length): int(count) for length, count in found.items() if int(count) > 0})
    return Counter(int(length) for length in found or ())


def _value(found: object) -> float | None:
    return _number(found.get("mean", found.get("value")) if isinstance(found, dict) else found)


def _number(found: object) -> float | None:
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not math.isfinite(found):
        return None
    return float(found)


def _dig(found: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        found = _mapping(found).get(key)
    return found


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, dict) else {}
