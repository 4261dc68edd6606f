"""Explanation: why A, not B, as words with tubes, what really happened when each tube was masked, and a sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

from whytube.checks import check_finite, check_int, check_probability, fail
from whytube.documents import build
from whytube.errors import ArgumentError, ExplanationError
from whytube.files import read_json, write_whole
from whytube.tubes import Tube  # noqa: TC001 - `build` reads the annotations of Reason

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    Markup = Callable[[str], str]

SCHEMA = 1
KIND = "explanation"

# How far p(A) - p(B) must fall for the decision to be moved at all, and to be moved by more than a little.
MOVED, MUCH = 0.05, 0.25
RULE = (
    f"With a tube masked, the decision turns when B overtakes A, moves when p(A) - p(B) falls by {MUCH:g} or more, "
    f"moves a little when it falls by {MOVED:g} or more, each under most fills; else it stays."
)


@dataclass(frozen=True)
class Evidence:
    """What a tube really masked with `fill` did to the classifier, run again: p(A) and p(B), in [0, 1]."""

    fill: str
    positive_before: float
    positive_after: float
    negative_before: float
    negative_after: float

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if name != "fill":
                object.__setattr__(self, name, check_probability(value, name))

    @property
    def fall(self) -> float:
        """How much p(A) - p(B) fell."""
        return self.positive_before - self.negative_before - (self.positive_after - self.negative_after)

    @property
    def turned(self) -> bool:
        """Whether B overtook A."""
        return self.positive_after < self.negative_after and self.positive_before >= self.negative_before

    @property
    def moved(self) -> bool:
        """Whether masking moved the decision away from A towards B; see MOVED."""
        return self.turned or self.fall >= MOVED


@dataclass(frozen=True, eq=False)
class Reason:
    """A word, where it is seen, and whether the classifier agrees.

    attribute: the word; "" for a region without one. score: what reasons were ranked by, `Explanation.score_name` says
    what it is; comparable between the reasons of one explanation only, and no verdict: see `verdict`.
    evidence: one per fill that was tried; empty where the reason was not checked.
    """

    attribute: str
    score: float
    tube: Tube
    evidence: tuple[Evidence, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "score", check_finite(self.score, "score"))
        object.__setattr__(self, "evidence", tuple(self.evidence))

    @property
    def moved(self) -> bool | None:
        """Whether masking moved the decision under most fills; None where nothing was measured."""
        return self._mostly(e.moved for e in self.evidence) if self.evidence else None

    @property
    def moved_much(self) -> bool:
        """Whether masking turned the decision, or moved it by MUCH, under most fills."""
        return self._mostly(e.turned or e.fall >= MUCH for e in self.evidence)

    @property
    def verdict(self) -> str:
        """What the decision does once the tube is masked, in words; see RULE."""
        if self.moved is None:
            return "not checked"
        if self._mostly(e.turned for e in self.evidence):
            return "turns"
        if self.moved_much:
            return "moves"
        return "moves a little" if self.moved else "stays"

    def _mostly(self, flags: Iterable[bool]) -> bool:
        return 2 * sum(flags) > len(self.evidence)

    @property
    def word(self) -> str:
        """The attribute, or what to call a region without one."""
        return self.attribute or "a region without a word"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `moved` is for readers, and not read back."""
        return {
            "attribute": self.attribute,
            "score": self.score,
            "moved": self.moved,
            "tube": self.tube.to_dict(),
            "evidence": [asdict(e) for e in self.evidence],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Reason:
        """Read what `to_dict` wrote."""
        return build(cls, data)


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a clip was classified as `positive`, not as `negative`.

    source: where the clip comes from, usually a path. size: (height, width) of the video's own frames.
    frames: the T sampled 0-based frame indices of the source. times: their seconds, or None where not known.
    positive, negative: class names A and B. probabilities: p(c|x) of all classes or the most probable ones.
    reasons: best first. settings, versions: how it was made, as JSON can hold it. timings: seconds per stage.
    fps, duration: of the source; None where they are not known.
    """

    source: str
    size: tuple[int, int]
    frames: tuple[int, ...]
    positive: str
    negative: str
    probabilities: dict[str, float]
    reasons: tuple[Reason, ...]
    times: tuple[float, ...] | None = None
    fps: float | None = None
    duration: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.positive or not self.negative or self.positive == self.negative:
            raise fail("negative", "a class other than the positive one", (self.positive, self.negative))
        if len(self.size) != 2:
            raise fail("size", "(height, width)", self.size)
        checked = {
            "source": str(self.source),
            "size": tuple(check_int(int(n), "size", 1) for n in self.size),
            "frames": tuple(check_int(int(n), "frames", 0) for n in self.frames),
            "times": None if self.times is None else tuple(check_finite(t, "times") for t in self.times),
            "fps": None if self.fps is None else check_finite(self.fps, "fps"),
            "duration": None if self.duration is None else check_finite(self.duration, "duration"),
            "probabilities": {
                str(c): check_probability(p, f"probabilities[{c!r}]") for c, p in self.probabilities.items()
            },
            "reasons": tuple(self.reasons),
            **{name: _plain(getattr(self, name), name) for name in ("settings", "versions", "timings")},
        }
        if self.times is not None and len(self.times) != len(self.frames):
            raise fail("times", f"{len(self.frames)} seconds, one per frame", f"{len(self.times)} of them")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def telling(self) -> tuple[Reason, ...]:
        """The reasons that the sentence names: those that move the decision, or, where none was checked, all."""
        unchecked = all(reason.moved is None for reason in self.reasons)
        return tuple(reason for reason in self.reasons if reason.moved or unchecked)

    @property
    def sentence(self) -> str:
        """Say it in plain text: classified as dunk, not surf, because of "with ball" and "jumping"."""
        return self.say(word='"{}"'.format, positive=str, negative=str)

    def say(self, *, word: Markup, positive: Markup, negative: Markup) -> str:
        """Build the sentence, with functions that write the words and the two class names."""
        said = max(self.probabilities, key=self.probabilities.__getitem__, default=self.positive)
        if said == self.positive or self.positive not in self.probabilities:
            claim = f"classified as {positive(self.positive)}, not {negative(self.negative)}"
        else:
            asked = f"asked why {positive(self.positive)}, not {negative(self.negative)}"
            claim = f"classified as {positive(said)}; {asked}"
        words = [word(w) for w in dict.fromkeys(r.attribute for r in self.telling if r.attribute)]
        unnamed = sum(not r.attribute for r in self.telling)
        if unnamed:
            words.append("the marked region" if unnamed == 1 else f"the {unnamed} marked regions")
        if not words:
            return f"{claim}; no region explains this"
        if self.telling[0].moved is None:
            return f"{claim}, perhaps because of {_listed(words)} (not checked)"
        how = "because of" if any(reason.moved_much for reason in self.telling) else "in small part because of"
        return f"{claim}, {how} {_listed(words)}"

    @property
    def score_name(self) -> str:
        """What the scores of the reasons are; "score" where that was not noted."""
        return str(self.settings.get("score", "score"))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: every field, with `schema`, `kind` and the `sentence` for readers."""
        return {
            "schema": SCHEMA,
            "kind": KIND,
            "source": self.source,
            "positive": self.positive,
            "negative": self.negative,
            "sentence": self.sentence,
            "probabilities": dict(self.probabilities),
            "reasons": [reason.to_dict() for reason in self.reasons],
            "size": list(self.size),
            "frames": list(self.frames),
            "times": None if self.times is None else list(self.times),
            "fps": self.fps,
            "duration": self.duration,
            **{name: _plain(getattr(self, name), name) for name in ("settings", "versions", "timings")},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Explanation:
        """Read what `to_dict` wrote; ArgumentError says what is wrong with other data."""
        if not isinstance(data, Mapping) or data.get("kind") != KIND or "schema" not in data:
            raise fail("data", "an explanation, with a schema", "something else")
        if data["schema"] != SCHEMA:
            raise fail("schema", f"{SCHEMA}, the one this whytube knows", f"{short(data['schema'])}. Update whytube")
        return build(cls, {key: value for key, value in data.items() if key not in ("schema", "kind")})

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write it as JSON; the file appears under its name only once it is whole."""
        target = Path(path)
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        if target.exists() and not overwrite:
            raise ExplanationError(f"{target} exists already. Choose another name, or pass `overwrite=True`")
        return write_whole(target, text, error=ExplanationError)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Explanation:
        """Read what `save` wrote."""
        source = Path(path)
        try:
            return cls.from_dict(read_json(source, error=ExplanationError))
        except ArgumentError as error:
            raise ExplanationError(f"cannot read {source}: damaged: {error}") from error


def _listed(words: Sequence[str]) -> str:
    """Write a, b and c."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


def _plain(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Copy a mapping as JSON would give it back."""
    try:
        return dict(json.loads(json.dumps(dict(value), allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise fail(name, "a mapping of values that JSON can hold", error) from error
