"""Results: what an evaluation found. The suite writes them; the report, the tables and the studies read them.

A figure is named by its path in the JSON tree: "positive_drop", "negative_class_accuracy.top1",
"log_probability.negative_class_accuracy.top3", "concept_accuracy.top5", "fills.blur.positive_drop", "tube_area" ...
Every figure has its 95 % interval, which the JSON keeps in a second tree, `intervals`, of the same form.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from whytube.checks import check_finite, fail
from whytube.documents import build
from whytube.errors import ArgumentError, DataError
from whytube.files import read_json, write_whole

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from pathlib import Path

ALWAYS = ("negative_class_accuracy.top1", "negative_class_accuracy.top3", "positive_drop", "curve.top1", "curve.top3")
"""Figures that every version measured and that every answer defines; any other may be missing from a file."""


@dataclass(frozen=True)
class Figure:
    """A mean over cases and its 95 % interval; all None where no case defines it."""

    mean: float | None = None
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        for name in ("mean", "low", "high"):
            if getattr(self, name) is not None:
                check_finite(getattr(self, name), name)


@dataclass(frozen=True)
class Comparison:
    """How much larger a figure is for one method than for another on the same cases.

    difference: of the means. low, high: its 95 % interval over clips. p: of a permutation test over clips. Of pooled
    runs: the mean difference, its range, and the largest p.
    """

    difference: float | None
    low: float | None
    high: float | None
    p: float | None

    def __post_init__(self) -> None:
        for name in ("difference", "low", "high", "p"):
            if getattr(self, name) is not None:
                check_finite(getattr(self, name), name)


Comparisons: TypeAlias = "Mapping[str, Mapping[str, Mapping[str, Comparison]]]"
"""Method -> another -> path of a figure -> Comparison."""


@dataclass(frozen=True)
class ClassifierResults:
    """The classifier that was explained: how often it is right on the clips, and what it is."""

    accuracy: Figure
    classes: int
    architecture: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    accuracies: Sequence[float | None] | None = None
    """Of each run, where several were pooled."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "accuracy": self.accuracy.mean,
            "interval": [self.accuracy.low, self.accuracy.high],
            "classes": self.classes,
            "architecture": self.architecture,
            "settings": dict(self.settings),
        } | ({} if self.accuracies is None else {"accuracies": list(self.accuracies)})

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> ClassifierResults:
        """Read what `to_dict` wrote."""
        stored = build(_Classifier, plain, "classifier")
        accuracy = Figure(stored.accuracy, *stored.interval)
        return cls(accuracy, stored.classes, stored.architecture, stored.settings, stored.accuracies)


@dataclass(frozen=True)
class MethodResults:
    """What was found about one method.

    Attributes:
        figures: of the best region, by path.
        curves: by path, "curve.top1" and so on; entry n-1 is the accuracy over the n most probable negatives. With the
            paper's fill alone "fills.zero.curve.top1".
        ranks: the headline figures of each of the k regions alone, by path.
        tube_lengths: entry n counts the best regions that span n frames, n = 0 ... T.
        clips: one record per clip, see `clip_records`; None where they were not kept.
    """

    figures: Mapping[str, Figure]
    curves: Mapping[str, Sequence[Figure]]
    ranks: Sequence[Mapping[str, Figure]]
    tube_lengths: Sequence[int]
    clips: Sequence[Mapping[str, Any]] | None = None

    def figure(self, path: str) -> Figure:
        """Return a figure; an empty one where the version that measured did not know it yet."""
        return self.figures.get(path, Figure())

    @property
    def fills(self) -> list[str]:
        """The fills that regions were masked with."""
        return list(dict.fromkeys(path.split(".")[1] for path in self.figures if path.startswith("fills.")))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        means, spans = _means(self.figures), _spans(self.figures)
        for path, curve in self.curves.items():
            means[path] = [figure.mean for figure in curve]
            spans[path] = [[figure.low, figure.high] for figure in curve]
        return nested(means) | {
            "ranks": [nested(_means(rank)) for rank in self.ranks],
            "intervals": nested(spans) | {"ranks": [nested(_spans(rank)) for rank in self.ranks]},
            "tube_lengths": list(self.tube_lengths),
            "clips": None if self.clips is None else list(self.clips),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> MethodResults:
        """Read what `to_dict` wrote."""
        plain = build(dict[str, Any], plain, "method")
        apart = ("ranks", "intervals", "tube_lengths", "clips")
        stored = build(_Method, {key: plain[key] for key in apart if key in plain}, "method")
        means = flat({key: plain[key] for key in plain if key not in apart})
        spans = flat({key: stored.intervals[key] for key in stored.intervals if key != "ranks"})
        if any(means.get(path) is None for path in ALWAYS):
            raise ArgumentError(f"a method must have {', '.join(ALWAYS)}")
        curves = {path: mean for path, mean in means.items() if path.startswith("curve.") or isinstance(mean, list)}
        unknown = [dict.fromkeys(flat(rank), (None, None)) for rank in stored.ranks]  # of earlier versions
        around = build(list[dict[str, Any]], stored.intervals.get("ranks", unknown), "intervals.ranks")
        if len(around) != len(stored.ranks):
            raise fail("intervals.ranks", f"one for each of {len(stored.ranks)} ranks", f"{len(around)}")
        return cls(
            _figures({path: mean for path, mean in means.items() if path not in curves}, spans),
            {path: _curve(mean, spans.get(path), path) for path, mean in curves.items()},
            [_figures(flat(rank), flat(span)) for rank, span in zip(stored.ranks, around, strict=True)],
            stored.tube_lengths,
            stored.clips,
        )


@dataclass(frozen=True)
class Results:
    """What `evaluate` found: about the classifier, about every method by its name, and where the numbers come from.

    comparisons: of methods on the same cases, see `compare`; none in files of earlier versions.
    """

    classifier: ClassifierResults
    methods: Mapping[str, MethodResults]
    provenance: Mapping[str, Any]
    comparisons: Comparisons = field(default_factory=dict)

    @property
    def seen_fills(self) -> Sequence[str]:
        """The fills among those that regions were masked with that some method had seen."""
        settings = self.provenance.get("settings")
        seen = settings.get("seen_fills") if isinstance(settings, dict) else None
        return [str(fill) for fill in seen] if isinstance(seen, list) else []

    @property
    def notes(self) -> Sequence[str]:
        """What a reader must know beside the figures, one sentence each; earlier versions wrote none."""
        notes = self.provenance.get("notes")
        return [str(note) for note in notes] if isinstance(notes, list) else []

    def with_provenance(self, **entries: Any) -> Results:
        """Return the same results with further entries on where they come from."""
        return replace(self, provenance={**self.provenance, **entries})

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: {"classifier", "methods": {name: ...}, "provenance", "comparisons"}."""
        methods = {name: method.to_dict() for name, method in self.methods.items()}
        plain = {"classifier": self.classifier.to_dict(), "methods": methods, "provenance": dict(self.provenance)}
        pairs = {
            one: {other: {path: asdict(told) for path, told in found.items()} for other, found in others.items()}
            for one, others in self.comparisons.items()
        }
        return plain | ({"comparisons": pairs} if pairs else {})

    @classmethod
    def from_dict(cls, plain: Any, *, name: str = "this") -> Results:
        """Read what `to_dict` wrote, by this or an earlier version; name: what an error calls it."""
        what = "not results of an evaluation. Give a file that `whytube evaluate --out FILE.json` wrote"
        if not isinstance(plain, dict) or not {"classifier", "methods", "provenance"} <= plain.keys():
            raise DataError(f"{name} is {what}")
        try:
            found = build(dict[str, Any], plain["methods"], "methods")
            methods = {method: MethodResults.from_dict(tree) for method, tree in found.items()}
            provenance = build(dict[str, Any], plain["provenance"], "provenance")
            pairs = build(dict[str, dict[str, dict[str, Comparison]]], plain.get("comparisons", {}), "comparisons")
            return cls(ClassifierResults.from_dict(plain["classifier"]), methods, provenance, pairs)
        except ArgumentError as error:
            raise DataError(f"{name} is damaged, or {what} ({error})") from error

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a JSON file; an existing one is replaced."""
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"
        return write_whole(path, text, error=DataError)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Results:
        """Read a JSON file that `save` wrote."""
        return cls.from_dict(read_json(path, error=DataError), name=str(path))


@dataclass(frozen=True)
class _Classifier:
    """ClassifierResults as the JSON has them."""

    accuracy: float | None
    interval: tuple[float | None, float | None]
    classes: int
    architecture: str
    settings: dict[str, Any]
    accuracies: list[float | None] | None = None


@dataclass(frozen=True)
class _Method:
    """What the JSON has of MethodResults beside the tree of figures."""

    ranks: list[dict[str, Any]]
    intervals: dict[str, Any]
    tube_lengths: list[int]
    clips: list[dict[str, Any]] | None


def _figures(means: Mapping[str, Any], spans: Mapping[str, Any]) -> dict[str, Figure]:
    return {path: _figure(mean, spans.get(path), path) for path, mean in means.items()}


def _curve(means: Any, spans: Any, path: str) -> list[Figure]:
    points, around = build(list[Any], means, path), build(list[Any], spans, f"intervals.{path}")
    if len(points) != len(around):
        raise fail(f"intervals.{path}", f"one for each of {len(points)} points", f"{len(around)}")
    return [_figure(mean, span, f"{path}[{at}]") for at, (mean, span) in enumerate(zip(points, around, strict=True))]


def _figure(mean: Any, span: Any, path: str) -> Figure:
    low, high = build(tuple[float | None, float | None], span, f"intervals.{path}")
    return build(Figure, {"mean": mean, "low": low, "high": high}, path)


def _means(figures: Mapping[str, Figure]) -> dict[str, Any]:
    return {path: figure.mean for path, figure in figures.items()}


def _spans(figures: Mapping[str, Figure]) -> dict[str, Any]:
    return {path: [figure.low, figure.high] for path, figure in figures.items()}


def nested(flat_tree: Mapping[str, Any]) -> dict[str, Any]:
    """Turn {"a.b": 1} into {"a": {"b": 1}}."""
    tree: dict[str, Any] = {}
    for path, value in flat_tree.items():
        *parts, leaf = path.split(".")
        place = tree
        for part in parts:
            place = place.setdefault(part, {})
        place[leaf] = value
    return tree


def flat(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Turn {"a": {"b": 1}} into {"a.b": 1}."""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        inside = flat(value) if isinstance(value, dict) else {"": value}
        found |= {f"{key}.{path}".removesuffix("."): leaf for path, leaf in inside.items()}
    return found
