"""Explanation: why A, not B, as words with tubes, what really happened when each tube was masked, and a sentence."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whytube.checks import check_finite, check_int, check_probability, fail
from whytube.errors import ArgumentError, ExplanationError
from whytube.files import write_whole
from whytube.reason import Reason

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    Markup = Callable[[str], str]

SCHEMA = 1
KIND = "explanation"
MARKDOWN = str.maketrans({c: f"\\{c}" for c in r"\`*_{}[]()<>#+!|~"})


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a clip was classified as `positive`, not as `negative`.

    source: where the clip comes from, usually a path. size: (height, width) of the video's own frames.
    frames: the T sampled 0-based frame indices of the source. times: their seconds, or None where not known.
    positive, negative: class names A and B. probabilities: p(c|x) of all classes or the most probable ones.
    reasons: best first. settings, versions: how it was made, as JSON can hold it. timings: seconds per stage.
    fps, duration: of the source; None where a clip was given, not a file, or PyAV is missing.
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

    @property
    def markdown(self) -> str:
        """Say it in Markdown, with class names and words in italics."""
        return self.say(word=_italic, positive=_italic, negative=_italic)

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
        if not hasattr(data, "get") or data.get("kind") != KIND or "schema" not in data:
            raise fail("data", "an explanation, with a schema", "something else")
        if data["schema"] != SCHEMA:
            raise fail("schema", f"{SCHEMA}, the one this whytube knows", f"{data['schema']!r}. Update whytube")
        derived = {"schema", "kind", "sentence", "reasons"}
        try:
            reasons = tuple(Reason.from_dict(reason) for reason in data["reasons"])
            return cls(**{key: value for key, value in data.items() if key not in derived}, reasons=reasons)
        except ArgumentError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"no {error}" if isinstance(error, KeyError) else error
            raise fail("data", f"an explanation of schema {SCHEMA}", f"one that is damaged: {what}") from error

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
            return cls.from_dict(json.loads(source.read_text(encoding="utf-8")))
        except OSError as error:
            raise ExplanationError(f"cannot read {source}: {error.strerror or error}") from error
        except ArgumentError as error:
            raise ExplanationError(f"cannot read {source}: {error}") from error
        except ValueError as error:
            raise ExplanationError(f"cannot read {source}: cut off, or not JSON ({error})") from error


def _listed(words: Sequence[str]) -> str:
    """Write a, b and c."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


def _italic(text: str) -> str:
    return f"*{' '.join(text.split()).translate(MARKDOWN)}*"


def _plain(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Copy a mapping as JSON would give it back."""
    try:
        return dict(json.loads(json.dumps(dict(value), allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise fail(name, "a mapping of values that JSON can hold", error) from error
