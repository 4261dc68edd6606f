"""Explanation: why A, not B, as words with tubes, what really happened when each tube was masked, and a sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

import numpy as np

from whytube.checks import check_finite, check_int, check_probability, fail
from whytube.documents import build
from whytube.errors import ArgumentError, ExplanationError
from whytube.files import read_json, write_whole
from whytube.tubes import Tube, coco, detections, tube_mask

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    Markup = Callable[[str], str]

SCHEMA = 1
KIND = "explanation"

# How far p(A) - p(B) must fall for the decision to be moved at all, and to be moved by more than a little.
MOVED, MUCH = 0.05, 0.25
RULE = (
    f"With a tube masked, the decision turns when B overtakes A, moves when p(A) - p(B) falls by {MUCH:g} or more, "
    f"moves a little when it falls by {MOVED:g} or more, each under most fills; else it stays."
)
# The likeliest class is no more than a guess below LIKELY, or when it leads the next class by less than CLEAR.
LIKELY, CLEAR = 0.3, 0.1
GUESS_RULE = (
    f'"Guessed" instead of "classified" means that the likeliest class has a probability below {LIKELY:g}, or leads '
    f"the next class by less than {CLEAR:g}."
)
FIT_RULE = (
    "How well a word fits is the chance that no other part of those that people drew in other clips overlaps the tube "
    "more than what the word names; a word that is too likely to be wrong is left out. Whether the tube matters is "
    "another question: that is what masking tells."
)
UNEXPLAINED = "no region explains this"
ONE_FRAME = "one frame alone, without any motion"


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


_CHANCES = ("positive_before", "positive_after", "negative_before", "negative_after")


@dataclass(frozen=True, eq=False)
class Reason:
    """A word, where it is seen, and whether the classifier agrees.

    attribute: the word; "" for a region without one. score: what reasons were ranked by, `Explanation.score_name` says
    what it is; comparable between the reasons of one explanation only, and no verdict: see `verdict`.
    evidence: one per fill that was tried; empty where the reason was not checked. fit: chance that the tube is where
    the word is, in [0, 1]; None where it is not known, or there is no word.
    """

    attribute: str
    score: float
    tube: Tube
    evidence: tuple[Evidence, ...] = ()
    fit: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "score", check_finite(self.score, "score"))
        object.__setattr__(self, "fit", None if self.fit is None else check_probability(self.fit, "fit"))
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
    def fall(self) -> float | None:
        """How much p(A) - p(B) fell when the tube was masked, the mean over fills; None where nothing was measured."""
        return sum(e.fall for e in self.evidence) / len(self.evidence) if self.evidence else None

    @property
    def word(self) -> str:
        """The attribute, or what to call a region without one."""
        return self.attribute or "a region without a word"

    @property
    def fit_text(self) -> str:
        """How well the word fits, for people: "the word fits: 83 %"; "" where that is not known."""
        return "" if self.fit is None else f"the word fits: {100 * self.fit:.0f} %"

    def told(self, positive: str, negative: str) -> str:
        """Say what hiding the tube does to p(A) and p(B), in the mean over fills; "" where nothing was measured."""
        if not self.evidence:
            return ""
        name = f'"{self.attribute}"' if self.attribute else "the region"
        fits = f" ({self.fit_text})" if self.fit_text else ""
        means = {key: sum(getattr(e, key) for e in self.evidence) / len(self.evidence) for key in _CHANCES}
        a = _change(positive, means["positive_before"], means["positive_after"])
        b = _change(negative, means["negative_before"], means["negative_after"])
        return f"Hide {name}{fits}: {a}, {b}."

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `moved` is for readers, and not read back."""
        return {
            "attribute": self.attribute,
            "fit": self.fit,
            "score": self.score,
            "moved": self.moved,
            "tube": self.tube.to_dict(),
            "evidence": [asdict(e) for e in self.evidence],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Reason:
        """Read what `to_dict` wrote."""
        return build(cls, data)


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why a clip was classified as `positive`, not as `negative`.

    source: where the clip comes from, usually an absolute path. size: (height, width) of the video's own frames.
    frames: the T sampled 0-based frame indices of the source. times: their seconds, or None where not known.
    positive, negative: class names A and B. probabilities: p(c|x) of all classes or the most probable ones.
    reasons: best first. settings, versions: how it was made, as JSON can hold it. timings: seconds per stage.
    fps, duration: of the source; None where they are not known.
    video_hash: SHA-256 of the source: of the file, of a folder's frames, or of the pixels that were given.
    model: name of the model. model_hash: SHA-256 of its classifier's weights. All three are "" where not known.
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
    video_hash: str = ""
    model: str = ""
    model_hash: str = ""

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

    def __repr__(self) -> str:
        return f"<Explanation of {self.source}: {self.sentence}>"

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
    def text(self) -> str:
        """The sentence, and for each of its reasons a line: how well the word fits, and what hiding the tube does."""
        told = (reason.told(self.positive, self.negative) for reason in self.telling)
        return "\n".join((self.sentence, *(line for line in told if line)))

    @property
    def explained(self) -> bool:
        """Whether there is a reason to show: one that moves the decision, or that nobody checked."""
        return bool(self.telling)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What limits the answer, in a few words each, for pictures that have no room for the sentence."""
        found = [] if self.explained else [UNEXPLAINED]
        if self.explained and not any(reason.moved_much for reason in self.telling):
            found.append("in small part" if any(reason.evidence for reason in self.telling) else "not checked")
        return (*found, ONE_FRAME) if self.one_frame else tuple(found)

    @property
    def said(self) -> str:
        """The most probable class, which need not be `positive`."""
        return self._likeliest[0]

    @property
    def guessed(self) -> bool:
        """Whether the classifier's answer is no more than a guess; see GUESS_RULE."""
        said, runner_up = self._likeliest
        known = self.probabilities.get(said)
        return known is not None and (known < LIKELY or known - self.probabilities.get(runner_up, -1.0) < CLEAR)

    @property
    def one_frame(self) -> bool:
        """Whether the video had a single frame, which the classifier saw again and again."""
        return len(self.frames) > 1 and len(set(self.frames)) == 1

    @property
    def _likeliest(self) -> tuple[str, str]:
        """The two most probable classes; "" for one that is not known."""
        ranked = sorted(self.probabilities, key=self.probabilities.__getitem__, reverse=True)
        said = self.positive if self.positive not in self.probabilities else ranked[0]
        return said, ranked[1] if len(ranked) > 1 and said == ranked[0] else ""

    def say(self, *, word: Markup, positive: Markup, negative: Markup, other: Markup = str) -> str:
        """Build the sentence, with functions that write the words, the two class names and any other class."""
        claim = self._claim({self.positive: positive, self.negative: negative}, other)
        tail = f" ({ONE_FRAME})" if self.one_frame else ""
        words = [word(w) for w in dict.fromkeys(r.attribute for r in self.telling if r.attribute)]
        unnamed = sum(not r.attribute for r in self.telling)
        if unnamed:
            words.append("the marked region" if unnamed == 1 else f"the {unnamed} marked regions")
        if not words:
            return f"{claim}; {UNEXPLAINED}{tail}"
        if self.telling[0].moved is None:
            return f"{claim}, perhaps because of {_listed(words)} (not checked){tail}"
        how = "because of" if any(reason.moved_much for reason in self.telling) else "in small part because of"
        return f"{claim}, {how} {_listed(words)}{tail}"

    def _claim(self, markups: Mapping[str, Markup], other: Markup) -> str:
        """Say what the classifier said, and what was asked where that is not the same; see GUESS_RULE."""

        def name(class_name: str) -> str:
            return markups.get(class_name, other)(class_name)

        said, runner_up = self._likeliest
        asked = f"{name(self.positive)}, not {name(self.negative)}"
        if not self.guessed:
            same = said == self.positive
            return f"classified as {asked}" if same else f"classified as {name(said)}; asked why {asked}"
        p, next_p = self.probabilities[said], self.probabilities.get(runner_up, -1.0)
        claim = f"guessed as {name(said)} ({100 * p:.0f} %)"
        if p - next_p < CLEAR:
            claim += f", hardly more than {name(runner_up)} ({100 * next_p:.0f} %)"
            told = (said, runner_up) == (self.positive, self.negative)
            return claim if told else f"{claim}; asked why {asked}"
        return f"{claim}, not {name(self.negative)}" if said == self.positive else f"{claim}; asked why {asked}"

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
            "video_hash": self.video_hash,
            "model": self.model,
            "model_hash": self.model_hash,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Explanation:
        """Read what `to_dict` wrote; ArgumentError says what is wrong with other data."""
        if not isinstance(data, Mapping) or data.get("kind") != KIND or "schema" not in data:
            raise fail("data", "an explanation, with a schema", "something else")
        if data["schema"] != SCHEMA:
            raise fail("schema", f"{SCHEMA}, the one this whytube knows", f"{short(data['schema'])}. Update whytube")
        return build(cls, {key: value for key, value in data.items() if key not in ("schema", "kind")})

    def heat(self, *reasons: Reason, size: tuple[int, int] | None = None) -> NDArray[np.float32]:
        """Spread the evidence over the clip: (T, H, W), the fall of p(A) - p(B) when what covers a pixel is masked.

        A pixel has the mean `Reason.fall` of the tubes that cover it, 0 where none does, and less than 0 where masking
        helped A. reasons: of this explanation; by default all that were checked. T: the sampled frames, `frames`.
        size: (H, W), by default that of the video's own frames.
        """
        shape = (len(self.frames), *(size or self.size))
        total, covered = np.zeros(shape, np.float32), np.zeros(shape, np.int32)
        for reason in reasons or self.reasons:
            if reason.fall is not None:
                mask = tube_mask([reason.tube], self.frames, self.size, resolution=(shape[1], shape[2]))[0].numpy()
                total += np.float32(reason.fall) * mask
                covered += mask
        return np.divide(total, np.maximum(covered, 1), dtype=np.float32)

    def to_coco(self) -> dict[str, Any]:
        """Tubes of the reasons that the sentence names, as COCO's JSON: images, annotations, categories."""
        tubes = [(reason.attribute or "region", reason.tube) for reason in self.telling]
        return coco(self.source, self.size, self.frames, tubes, sentence=self.sentence)

    def to_detections(self, frame: int) -> Any:
        """Boxes at a sampled frame of the video, as `supervision.Detections`, for its annotators.

        One row per reason that the sentence names: `class_id` is its rank, `tracker_id` its rank from 1, and
        `data["class_name"]` its word. Needs `pip install supervision`.
        """
        boxes = [reason.tube.at([frame])[0] for reason in self.telling]
        there = [rank for rank, box in enumerate(boxes) if box[2] > box[0] and box[3] > box[1]]
        words = [self.telling[rank].attribute or "region" for rank in there]
        return detections(
            [boxes[rank] for rank in there], there, data={"class_name": words, "frame": [frame] * len(there)}
        )

    def _repr_html_(self) -> str:
        """Show the clip with its tubes, the sentence and the evidence in a notebook."""
        # Pages are made above this module (docs/architecture.md), but notebooks look for this name here.
        return str(import_module("whytube.report").notebook_html(self))

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write it as JSON; the file appears under its name only once it is whole."""
        target = Path(path)
        odd = any("\ud800" <= letter <= "\udfff" for letter in self.source)  # a file name that is not UTF-8
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=odd, allow_nan=False) + "\n"
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


def _change(name: str, before: float, after: float) -> str:
    """Say where a chance goes, in whole percent."""
    first, last = round(100 * before), round(100 * after)
    if first == last:
        return f"{name} stays at {first} %"
    return f"{name} {'falls' if last < first else 'rises'} from {first} to {last} %"


def _listed(words: Sequence[str]) -> str:
    """Write a, b and c."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]


def _plain(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Copy a mapping as JSON would give it back."""
    try:
        return dict(json.loads(json.dumps(dict(value), allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise fail(name, "a mapping of values that JSON can hold", error) from error
