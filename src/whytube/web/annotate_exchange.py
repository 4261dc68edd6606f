"""What is exchanged with other tools, on the server's side: states as plain videos for exchange.py, and imports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whytube.web.annotation_actions import MOST_TRACKS, Batch, Key, Mark, SetTrack

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from whytube.web.annotation_actions import Present, Simple
    from whytube.web.annotation_state import State
    from whytube.web.annotations import Annotations
    from whytube.web.messages import Video


def plain_videos(
    videos: Iterable[Video], annotations: Annotations, *, annotator: str | None = None
) -> list[dict[str, Any]]:
    """List videos with what was drawn and marked, by all or by one annotator; those without anything are left out.

    Videos that share their name have a part of their id behind it.
    """
    chosen = [(video, annotations.state(video.id)) for video in videos]
    names = [video.name for video, _ in chosen]
    found = []
    for video, state in chosen:
        told = _told(state, annotator)
        if told["tracks"] or told["marks"]:
            name = video.name if names.count(video.name) == 1 else f"{video.name} {video.id[:8]}"
            found.append({**facts(video), "name": name.strip(), **told})
    return found


def facts(video: Video) -> dict[str, Any]:
    """Say what a file may need to know of a video."""
    return {name: getattr(video, name) for name in ("id", "name", "width", "height", "frames", "fps")}


def _told(state: State, annotator: str | None) -> dict[str, Any]:
    tracks = [
        {
            "annotator": track.annotator,
            "attribute": track.attribute,
            "keys": [track.keys[frame].model_dump() for frame in track.frames],
        }
        for track in state.tracks.values()
        if annotator in (None, track.annotator) and track.boxes  # one that is nowhere seen is none to other tools
    ]
    marks = [
        {"annotator": who, "attribute": word, "present": value == "has"}
        for (who, word), value in state.marks.items()
        if annotator in (None, who)
    ]
    return {"tracks": tracks, "marks": marks}


def bring(annotations: Annotations, videos: Sequence[dict[str, Any]], *, annotator: str) -> tuple[dict[str, int], int]:
    """Add what a file said to the logs, as one action per video and annotator.

    Tracks that are there stay, and one that is there already is not added again. A mark takes the place of another.
    annotator: who drew what the file says nobody's name of. Returns new tracks and marks per video, and how many were
    there already.
    """
    added: dict[str, int] = {}
    same = 0
    for video in videos:
        for who in sorted({part["annotator"] for part in (*video["tracks"], *video["marks"])}):
            actions, there = _new(annotations.state(video["id"]), video, who, who or annotator)
            same += there
            for start in range(0, len(actions), MOST_TRACKS):
                batch = Batch(type="batch", actions=actions[start : start + MOST_TRACKS])
                annotations.append(video["id"], who or annotator, batch, version=None)
            added[video["id"]] = added.get(video["id"], 0) + len(actions)
    return added, same


def _new(state: State, video: dict[str, Any], who: str, name: str) -> tuple[list[Simple], int]:
    """Return what of a file's annotator is not there yet, under the name it will have, and how much is."""
    found: list[Simple] = []
    same = 0
    taken: dict[str, list[int]] = {}
    there: dict[str, list[list[Key]]] = {}
    for track in state.tracks.values():
        if track.annotator == name:
            taken.setdefault(track.attribute, []).append(track.number)
            there.setdefault(track.attribute, []).append(seen_keys(track.keys[frame] for frame in track.frames))
    for given in video["tracks"]:
        if given["annotator"] != who:
            continue
        word, keys = given["attribute"], [Key(**key) for key in given["keys"]]
        if seen_keys(keys) in there.get(word, []):
            there[word].remove(seen_keys(keys))
            same += 1
            continue
        numbers = taken.setdefault(word, [])
        number = next(n for n in range(1, len(numbers) + 2) if n not in numbers)
        numbers.append(number)
        found.append(SetTrack(type="set_track", attribute=word, track=number, keys=keys, origin="import"))
    for given in video["marks"]:
        if given["annotator"] == who:
            value: Present = "has" if given["present"] else "has_not"
            if state.marks.get((name, given["attribute"])) == value:
                same += 1
            else:
                found.append(Mark(type="mark", attribute=given["attribute"], value=value))
    return found, same


def seen_keys(keys: Iterable[Key]) -> list[Key]:
    """Leave out what cannot be seen of keys in their order, as files do: two tracks that look alike are then equal.

    These are keys outside before the first box or after another one outside, and where a box goes to between two
    neighbouring frames.
    """
    found: list[Key] = []
    for key in keys:
        if not key.outside:
            found.append(key)
        elif found and not found[-1].outside:
            box = found[-1].box if key.frame == found[-1].frame + 1 else key.box
            found.append(Key(frame=key.frame, box=box, outside=True))
    return found
