"""The annotation of a video: what its log of actions folds to, and boxes between key frames.

A box moves on a straight line from key to key, and stays as it is after the last, as in CVAT (data/formats/track.py,
which would load torch). What merely stays is shown, but neither taught nor compared: nobody looked at it.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from whytube.web.annotation_actions import (
    Batch,
    DeleteKey,
    DeleteTrack,
    Key,
    Label,
    Mark,
    Redo,
    SetKey,
    SetTrack,
    Undo,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from whytube.web.annotation_actions import Action, Origin, Present, Simple

    Corners = tuple[float, float, float, float]


@dataclass(frozen=True)
class Entry:
    """A line of the log: the version that the action led to, who did it, and when (seconds since 1970)."""

    version: int
    annotator: str
    at: float
    action: Action


@dataclass
class Track:
    """Boxes of an attribute by one annotator; keys: by frame."""

    annotator: str
    attribute: str
    number: int
    keys: dict[int, Key]
    origin: Origin = "drawn"

    @property
    def frames(self) -> list[int]:
        """Key frames, sorted."""
        return sorted(self.keys)

    @property
    def boxes(self) -> int:
        """How many keys show a box."""
        return sum(not key.outside for key in self.keys.values())

    @property
    def span(self) -> range:
        """Frames from the first to the last key: what a person has looked at."""
        frames = self.frames
        return range(frames[0], frames[-1] + 1) if frames else range(0)

    def at(self, frame: int) -> Corners | None:
        """Return the box at a frame: of a key, between two, or the last one held."""
        frames = self.frames
        place = bisect_right(frames, frame) - 1
        if place < 0:
            return None
        before, after = self.keys[frames[place]], self.keys[frames[min(place + 1, len(frames) - 1)]]
        if before.outside:
            return None
        share = (frame - before.frame) / max(after.frame - before.frame, 1)
        x1, y1, x2, y2 = (a + share * (b - a) for a, b in zip(before.box, after.box, strict=True))
        return x1, y1, x2, y2


@dataclass
class State:
    """What is known of a video at a version of its log.

    tracks: by (annotator, attribute, number). marks: by (annotator, attribute). label: class and who said so.
    undoable, redoable: how many actions each annotator can take back, or do again.
    """

    version: int = 0
    updated: float | None = None
    tracks: dict[tuple[str, str, int], Track] = field(default_factory=dict)
    marks: dict[tuple[str, str], Present] = field(default_factory=dict)
    label: tuple[str, str] | None = None
    undoable: dict[str, int] = field(default_factory=dict)
    redoable: dict[str, int] = field(default_factory=dict)

    @property
    def annotators(self) -> list[str]:
        """Who drew or marked anything, sorted."""
        said = {track.annotator for track in self.tracks.values()} | {annotator for annotator, _ in self.marks}
        return sorted(said | ({self.label[1]} if self.label else set()))

    @property
    def present(self) -> dict[tuple[str, str], Present]:
        """What each annotator says of attributes: the marks, and "has" where there is a box and no mark."""
        drawn: dict[tuple[str, str], Present] = {
            (track.annotator, track.attribute): "has" for track in self.tracks.values() if track.boxes
        }
        return drawn | self.marks

    @property
    def boxes(self) -> int:
        """Boxes on key frames of all tracks."""
        return sum(track.boxes for track in self.tracks.values())

    def _apply(self, annotator: str, action: Simple) -> None:
        match action:
            case Mark(attribute=attribute, value=value):
                if value == "unknown":
                    self.marks.pop((annotator, attribute), None)
                else:
                    self.marks[annotator, attribute] = value
            case Label(label=label):
                self.label = None if label is None else (label, annotator)
            case SetTrack(attribute=attribute, track=number, keys=keys, origin=origin):
                by_frame = {key.frame: key for key in keys}
                self.tracks[annotator, attribute, number] = Track(annotator, attribute, number, by_frame, origin)
            case DeleteTrack(attribute=attribute, track=number):
                self.tracks.pop((annotator, attribute, number), None)
            case SetKey(attribute=attribute, track=number):
                place = annotator, attribute, number
                track = self.tracks.setdefault(place, Track(annotator, attribute, number, {}))
                key = Key(frame=action.frame, box=action.box, outside=action.outside, occluded=action.occluded)
                track.keys[key.frame] = key
            case DeleteKey(attribute=attribute, track=number, frame=frame):
                place = annotator, attribute, number
                if place in self.tracks:
                    self.tracks[place].keys.pop(frame, None)
                    if not self.tracks[place].keys:
                        del self.tracks[place]


def fold(log: Iterable[Entry]) -> State:
    """Return the state that a log leads to: all actions in order, without those that were taken back."""
    entries = list(log)
    done: dict[str, list[int]] = {}
    undone: dict[str, list[int]] = {}
    for entry in entries:
        own, taken = done.setdefault(entry.annotator, []), undone.setdefault(entry.annotator, [])
        match entry.action:
            case Undo():
                if own:
                    taken.append(own.pop())
            case Redo():
                if taken:
                    own.append(taken.pop())
            case _:
                own.append(entry.version)
                taken.clear()
    kept = {version for own in done.values() for version in own}
    state = State(
        version=entries[-1].version if entries else 0,
        updated=entries[-1].at if entries else None,
        undoable={annotator: len(own) for annotator, own in done.items()},
        redoable={annotator: len(taken) for annotator, taken in undone.items()},
    )
    for entry in entries:
        if entry.version in kept:
            for action in simple_actions(entry.action):
                state._apply(entry.annotator, action)
    return state


def simple_actions(action: Action) -> list[Simple]:
    """Return what an action consists of; nothing for undo and redo, which are about others."""
    match action:
        case Undo() | Redo():
            return []
        case Batch(actions=actions):
            return actions
        case _:
            return [action]


def changes_anything(state: State, annotator: str, action: Action) -> bool:
    """Whether an action is worth a line of the log: undo and redo with nothing to take back or do again are not."""
    counts: Mapping[type, dict[str, int]] = {Undo: state.undoable, Redo: state.redoable}
    return type(action) not in counts or counts[type(action)].get(annotator, 0) > 0
