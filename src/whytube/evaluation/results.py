"""Results: what an evaluation found. The suite writes them; the report, the tables and the studies read them.

A figure is named by its path in the JSON tree: "positive_drop", "negative_class_accuracy.top1",
"log_probability.negative_class_accuracy.top3", "concept_accuracy.top5", "fills.blur.positive_drop", "tube_area" ...
Every figure has its 95 % interval, which the JSON keeps in a second tree, `intervals`, of the same form.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whytube.errors import DataError
from whytube.files import write_whole

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

ALWAYS = ("negative_class_accuracy.top1", "negative_class_accuracy.top3", "positive_drop", "curve.top1", "curve.top3")
"""Figures that every version measured and that every answer defines; any other may be missing from a file."""


@dataclass(frozen=True)
class Figure:
    """A mean over cases and its 95 % interval; all None where no case defines it."""

    mean: float | None = None
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        for value in (self.mean, self.low, self.high):
            if value is not None and not (isinstance(value, (int, float)) and math.isfinite(value)):
                raise DataError(f"a figure must be a finite number or None, got {value!r}")


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
        accuracy = Figure(plain["accuracy"], *plain["interval"])
        return cls(accuracy, plain["classes"], plain["architecture"], plain["settings"], plain.get("accuracies"))


@dataclass(frozen=True)
class MethodResults:
    """What was found about one method.

    Attributes:
        figures: of the best region, by path.
        curves: by path, "curve.top1" and so on; entry n-1 is the accuracy over the n most probable negatives.
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
        apart = ("ranks", "intervals", "tube_lengths", "clips")
        means, spans = flat({key: plain[key] for key in plain if key not in apart}), flat(plain["intervals"])
        if any(means.get(path) is None for path in ALWAYS):
            raise DataError(f"a method must have {', '.join(ALWAYS)}")
        curves = [path for path, mean in means.items() if isinstance(mean, list)]
        ranks = [flat(rank) for rank in plain["ranks"]]
        unknown = [dict.fromkeys(rank, (None, None)) for rank in ranks]  # earlier versions wrote no intervals of ranks
        around = [flat(rank) for rank in spans.get("ranks", unknown)]
        return cls(
            {path: Figure(mean, *spans[path]) for path, mean in means.items() if path not in curves},
            {path: [Figure(y, *span) for y, span in zip(means[path], spans[path], strict=True)] for path in curves},
            [
                {path: Figure(rank[path], *span[path]) for path in rank}
                for rank, span in zip(ranks, around, strict=True)
            ],
            [int(count) for count in plain["tube_lengths"]],
            plain["clips"],
        )


@dataclass(frozen=True)
class Results:
    """What `evaluate` found: about the classifier, about every method by its name, and where the numbers come from."""

    classifier: ClassifierResults
    methods: Mapping[str, MethodResults]
    provenance: Mapping[str, Any]

    @property
    def notes(self) -> Sequence[str]:
        """What a reader must know beside the figures, one sentence each; earlier versions wrote none."""
        notes = self.provenance.get("notes")
        return [str(note) for note in notes] if isinstance(notes, list) else []

    def with_provenance(self, **entries: Any) -> Results:
        """Return the same results with further entries on where they come from."""
        return replace(self, provenance={**self.provenance, **entries})

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: {"classifier", "methods": {name: ...}, "provenance"}."""
        methods = {name: method.to_dict() for name, method in self.methods.items()}
        return {"classifier": self.classifier.to_dict(), "methods": methods, "provenance": dict(self.provenance)}

    @classmethod
    def from_dict(cls, plain: Any, *, name: str = "this") -> Results:
        """Read what `to_dict` wrote, by this or an earlier version; name: what an error calls it."""
        what = "not results of an evaluation. Give a file that `whytube evaluate --out FILE.json` wrote"
        if not isinstance(plain, dict) or not {"classifier", "methods", "provenance"} <= plain.keys():
            raise DataError(f"{name} is {what}")
        try:
            methods = {method: MethodResults.from_dict(found) for method, found in plain["methods"].items()}
            return cls(ClassifierResults.from_dict(plain["classifier"]), methods, plain["provenance"])
        except (AttributeError, DataError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{name} is damaged, or {what} ({type(error).__name__}: {error})") from error

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a JSON file; an existing one is replaced."""
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"
        return write_whole(path, text, error=DataError)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Results:
        """Read a JSON file that `save` wrote."""
        return cls.from_dict(read_json(path), name=str(path))


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file, or say which file cannot be read."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}") from error


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
