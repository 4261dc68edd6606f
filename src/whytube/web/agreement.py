"""How far annotators agree: overlap of their boxes, and kappa of their marks.

Boxes. For every pair of annotators, and every video and attribute that both drew: on the frames that both looked at
(from the first to the last key of each), the IoU of their boxes; 0 where one has a box and the other says outside;
frames without a box of either are passed over. Several tracks of one attribute count as the box around them. The mean
over frames is the agreement of that video and attribute, and the mean of those is the pair's.

Marks. Over all videos and attributes of which both say whether it is there (a box says it is): the share that agrees,
and Cohen's kappa, (share - chance) / (1 - chance), where chance is the share that two people would agree by guessing
with their own shares of "has". Kappa is not defined where both always say the same one thing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from whytube.web.annotation_state import Corners, State, Track


@dataclass(frozen=True)
class PairAgreement:
    """Of two annotators; None where there is nothing to compare.

    iou: mean over `tracks` videos and attributes, on `frames` frames in all. agree, kappa: of `marks` marks.
    """

    annotators: tuple[str, str]
    iou: float | None
    tracks: int
    frames: int
    agree: float | None
    kappa: float | None
    marks: int


def agreement(states: Mapping[str, State]) -> list[PairAgreement]:
    """Compare every pair of annotators over the states of all videos; sorted by name."""
    names = sorted({name for state in states.values() for name in state.annotators})
    return [compare(states.values(), a, b) for a, b in combinations(names, 2)]


def compare(states: Iterable[State], a: str, b: str) -> PairAgreement:
    """Compare two annotators."""
    means: list[float] = []
    frames = 0
    pairs: list[tuple[bool, bool]] = []
    for state in states:
        for one, other in _shared_tracks(state, a, b):
            values = track_ious(one, other)
            if values:
                means.append(sum(values) / len(values))
                frames += len(values)
        present = state.present
        both = sorted({word for who, word in present if who == a} & {word for who, word in present if who == b})
        pairs += [(present[a, word] == "has", present[b, word] == "has") for word in both]
    share, kappa = cohens_kappa(pairs)
    iou = sum(means) / len(means) if means else None
    return PairAgreement((a, b), iou, len(means), frames, share, kappa, len(pairs))


def track_ious(one: Sequence[Track], other: Sequence[Track]) -> list[float]:
    """IoUs of the boxes of an attribute by two annotators, on the frames that both looked at."""
    spans = [range(min(t.span.start for t in tracks), max(t.span.stop for t in tracks)) for tracks in (one, other)]
    values = []
    for frame in range(max(span.start for span in spans), min(span.stop for span in spans)):
        left, right = around(one, frame), around(other, frame)
        if left is not None or right is not None:
            values.append(0.0 if left is None or right is None else box_iou(left, right))
    return values


def around(tracks: Sequence[Track], frame: int) -> Corners | None:
    """Return the box around those of several tracks at a frame, where it lies in their spans; None for none."""
    boxes = [box for track in tracks if frame in track.span and (box := track.at(frame)) is not None]
    if not boxes:
        return None
    low, high = zip(*((box[:2], box[2:]) for box in boxes), strict=True)
    (x1, y1), (x2, y2) = (map(min, zip(*low, strict=True)), map(max, zip(*high, strict=True)))
    return x1, y1, x2, y2


def box_iou(a: Corners, b: Corners) -> float:
    """IoU of two boxes with area."""
    wide = min(a[2], b[2]) - max(a[0], b[0])
    high = min(a[3], b[3]) - max(a[1], b[1])
    shared = max(wide, 0.0) * max(high, 0.0)
    union = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)) - shared
    return shared / union if union > 0 else 0.0


def cohens_kappa(pairs: Sequence[tuple[bool, bool]]) -> tuple[float | None, float | None]:
    """Return the share of pairs that agree, and kappa; None where not defined."""
    if not pairs:
        return None, None
    share = sum(a == b for a, b in pairs) / len(pairs)
    first, second = (sum(pair[i] for pair in pairs) / len(pairs) for i in (0, 1))
    chance = first * second + (1 - first) * (1 - second)
    return share, None if chance == 1 else (share - chance) / (1 - chance)


def _shared_tracks(state: State, a: str, b: str) -> list[tuple[list[Track], list[Track]]]:
    """Return the tracks of each attribute that both drew."""
    by: dict[tuple[str, str], list[Track]] = {}
    for track in state.tracks.values():
        by.setdefault((track.annotator, track.attribute), []).append(track)
    words = sorted({word for who, word in by if who == a} & {word for who, word in by if who == b})
    return [(by[a, word], by[b, word]) for word in words]
