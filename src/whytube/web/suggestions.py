"""Which boxes would help most: words with the fewest drawn videos first, and where the model is least sure.

A word is proposed for a video that has it, by a mark or, where nobody marked it, by the class, and where nobody drew it
yet. Of a word the video with the lowest fit of the model's own tube comes first; an unknown fit counts as the lowest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whytube.web.annotation_state import State

COUNT = 6
PER_VIDEO = 2
ENOUGH = 10
"""Videos with boxes of a word from which on it is not proposed."""


@dataclass(frozen=True)
class Helpful:
    """A video and an attribute. boxes: videos with boxes of the attribute so far. fit: None where it is not known."""

    video: str
    attribute: str
    boxes: int
    fit: float | None
    why: str


def drawn_videos(states: Mapping[str, State]) -> dict[str, int]:
    """Count the videos with boxes of each attribute."""
    counts: dict[str, int] = {}
    for state in states.values():
        for attribute in {track.attribute for track in state.tracks.values() if track.boxes}:
            counts[attribute] = counts.get(attribute, 0) + 1
    return counts


def suggest(
    videos: Sequence[str], states: Mapping[str, State], drafts: Mapping[str, tuple[str, Sequence[Mapping[str, Any]]]]
) -> list[Helpful]:
    """Propose at most COUNT pairs, a different word each, and at most PER_VIDEO of one video."""
    counts = drawn_videos(states)
    found = []
    for order, video in enumerate(videos):
        proposed = {row["attribute"]: row for row in drafts.get(video, ("", ()))[1]}
        said = _said(states.get(video))
        drawn = _drawn(states.get(video))
        likely = {word for word, row in proposed.items() if row["likely"]} | {w for w, has in said.items() if has}
        for word in sorted(likely - drawn):
            if said.get(word, True) and counts.get(word, 0) < ENOUGH:
                fit = proposed[word]["fit"] if word in proposed else None
                found.append((counts.get(word, 0), -1.0 if fit is None else fit, order, word, video, fit))
    chosen: list[Helpful] = []
    for count, _, _, word, video, fit in sorted(found):
        taken = [one for one in chosen if one.video == video]
        if len(chosen) < COUNT and len(taken) < PER_VIDEO and all(one.attribute != word for one in chosen):
            chosen.append(Helpful(video, word, count, fit, _why(count, fit)))
    return chosen


def _said(state: State | None) -> dict[str, bool]:
    """Whether most annotators who say anything of an attribute say that it is there; a tie counts as there."""
    votes: dict[str, list[bool]] = {}
    for (_, word), value in ({} if state is None else state.present).items():
        votes.setdefault(word, []).append(value == "has")
    return {word: 2 * sum(given) >= len(given) for word, given in votes.items()}


def _drawn(state: State | None) -> set[str]:
    return set() if state is None else {track.attribute for track in state.tracks.values() if track.boxes}


def _why(count: int, fit: float | None) -> str:
    drawn = "no box of it yet" if count == 0 else f"drawn in {count} video{'s' * (count > 1)} so far"
    return f"{drawn}, and the model {'has no idea' if fit is None else f'is {fit:.0%} sure'} where it is"
