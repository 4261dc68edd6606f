"""Annotations for tests of the formats: drawn by hypothesis, and one by hand."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from whytube.data.formats import FORMATS, Annotations, Box, Facts, Mark, Track

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=12)
WORDS = st.one_of(NAMES, st.sampled_from(["with ball", "<b>&amp;\"'", "in, out", "=1+1", "ランニング"]))
ANNOTATORS = st.one_of(st.just(""), WORDS)
COORDINATES = st.floats(-2000, 9000, allow_nan=False).map(lambda x: round(x, 6))


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    sides = st.floats(1e-3, 5000)
    x, y = draw(COORDINATES), draw(COORDINATES)
    return Box(
        x, y, x + draw(sides), y + draw(sides), outside=draw(st.booleans()), occluded=draw(st.integers(0, 3)) == 0
    )


@st.composite
def tracks(draw: st.DrawFn, frames: int) -> Track:
    keys = draw(st.dictionaries(st.integers(0, frames - 1), boxes(), min_size=1, max_size=5))
    first = min(keys)
    keys[first] = Box(*keys[first].corners, occluded=keys[first].occluded)
    return Track(draw(WORDS), keys, draw(ANNOTATORS))


@st.composite
def annotations(draw: st.DrawFn) -> Annotations:
    frames = draw(st.integers(1, 60))
    size = draw(st.integers(1, 4000)), draw(st.integers(1, 4000))
    fps = draw(st.one_of(st.none(), st.sampled_from([24.0, 25.0, 30000 / 1001, 60.0]), st.floats(0.5, 1000)))
    said = st.builds(Mark, WORDS, st.booleans(), ANNOTATORS)
    marks = draw(st.lists(said, max_size=3, unique_by=lambda mark: (mark.attribute, mark.annotator)))
    video = "/".join(draw(st.lists(NAMES.filter(lambda n: n not in (".", "..")), min_size=1, max_size=2)))
    return Annotations(video, size, frames, fps, tuple(draw(st.lists(tracks(frames), max_size=4))), tuple(marks))


def there_and_back(name: str, *given: Annotations) -> list[Annotations]:
    """Write and read again, as bytes of a file."""
    return FORMATS[name].read(FORMATS[name].write(given).encode(), None)


def example() -> Annotations:
    """Two annotators, a pause, an occlusion, a mark of each kind."""
    ball = {
        2: Box(10, 20, 30.5, 44.25),
        8: Box(16, 20, 40, 44.25, occluded=True),
        12: Box(20, 20, 44, 44, outside=True),
    }
    ball[20] = Box(100, 50, 120, 70)
    board = {0: Box(1.123456, 2, 3, 4)}
    tracks = (Track("with ball", ball, "ann"), Track("with board", board, "bob"), Track("with ball", board))
    marks = (Mark("jumping", True, "ann"), Mark("on water", False, "bob"))
    return Annotations("videos/Dunk/g01.avi", (240, 320), 40, 25.0, tracks, marks)


def facts(video: str = "g01.avi", size: tuple[int, int] = (240, 320), frames: int = 40, fps: float | None = 25.0):
    """Describe one video, whatever it is called."""
    return lambda name: Facts(video, size, frames, fps)


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()
