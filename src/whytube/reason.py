"""Reason: a word with its tube, and what really happened when the tube was masked."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from whytube.checks import check_finite, check_probability
from whytube.tubes import Tube

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# How far p(A) - p(B) must fall for the decision to be moved at all, and to be moved by more than a little.
MOVED, MUCH = 0.05, 0.25
RULE = (
    f"With a tube masked, the decision turns when B overtakes A, moves when p(A) - p(B) falls by {MUCH:g} or more, "
    f"moves a little when it falls by {MOVED:g} or more, each under most fills; else it stays."
)
# Probabilities below this count as this much in odds, so that an odds ratio is always a number.
LEAST = 1e-7


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
    def odds_ratio(self) -> float:
        """Odds p(A) : p(B) after masking over those before; tells also where p(A) stays near 1."""
        after = max(self.positive_after, LEAST) / max(self.negative_after, LEAST)
        return after * max(self.negative_before, LEAST) / max(self.positive_before, LEAST)

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
        evidence = tuple(Evidence(**e) for e in data["evidence"])
        return cls(data["attribute"], data["score"], Tube.from_dict(data["tube"]), evidence)
