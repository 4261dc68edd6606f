"""Annotations: what people drew and marked in one video. Every format of `whytube.data.formats` reads and writes it.

**Frames** are 0-based frame indices of the video itself. **Corners** x1 y1 x2 y2 are pixels of the video's own frames
as displayed, x right and y down from the upper left corner, x2 and y2 exclusive. They may reach out of the frame. They
are rounded to 1e-6 pixel when a Box is made: a file that writes width and height, or per cent, then gives back the
same floats.

**Between key frames** each corner moves on a straight line from one key frame to the next. Before the first key frame
there is no box. After the last one the box stays where it is to the end of the video. A key frame that is `outside`
hides the box from its frame up to the next key frame; its corners still say where the box moved to until then. This is
what CVAT does (early versions kept the box still up to a hidden key frame). `Track.boxes` alone computes it.

**One form for one meaning**, so that what is equal compares equal: key frames that change nothing are left out (hidden
ones at the start, or after another hidden one), a hidden box right after its last frame has that frame's corners, and
key frames beyond the end of the video are cut off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from operator import index
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from whytube.checks import LONGEST, check_finite, check_int, check_size, fail
from whytube.tubes import Tube, enclosing_tube

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

PLACES = 6
"""Decimals of a pixel that corners keep."""
FARTHEST = 1_000_000
"""Pixels that a corner may have, in either direction."""
LONGEST_NAME, LONGEST_PATH = 255, 4096
"""Letters of an attribute or annotator, and of a video, which may be a path."""
LAST_FRAME = 2**31 - 1
"""The largest frame index, as in boxes.csv."""


@dataclass(frozen=True, slots=True)
class Box:
    """A box at a key frame: corners in pixels (see above), with x1 < x2 and y1 < y2.

    outside: the thing is not seen from this frame up to the next key frame.
    occluded: it is partly hidden, from this frame up to the next key frame.
    """

    x1: float
    y1: float
    x2: float
    y2: float
    _: KW_ONLY
    outside: bool = False
    occluded: bool = False

    def __post_init__(self) -> None:
        for name in ("x1", "y1", "x2", "y2"):
            corner = round(check_finite(getattr(self, name), name), PLACES) + 0.0  # no -0.0
            if abs(corner) > FARTHEST:
                raise fail(name, f"from {-FARTHEST} to {FARTHEST} pixels", f"{corner:g}")
            object.__setattr__(self, name, corner)
        if self.x2 <= self.x1 or self.y2 <= self.y1:
            told = ",".join(format(corner, "g") for corner in self.corners)
            raise fail("box", "x1,y1,x2,y2 with x1 < x2 and y1 < y2", told)
        for name in ("outside", "occluded"):
            if not isinstance(getattr(self, name), bool):
                raise fail(name, "True or False", repr(getattr(self, name)))

    @property
    def corners(self) -> tuple[float, float, float, float]:
        """Return x1, y1, x2, y2."""
        return self.x1, self.y1, self.x2, self.y2

    def hidden(self) -> Box:
        """Return the same corners, outside."""
        return Box(*self.corners, outside=True)


@dataclass(frozen=True)
class Track:
    """One thing that shows an attribute, as one person drew it: key frames, see the top of the module.

    keyframes: frame -> Box, at least one of them seen; kept in order of frames. Do not change it: make a new Track.
    annotator: who drew it, "" where that is not known. One annotator may have several tracks of an attribute.
    """

    attribute: str
    keyframes: Mapping[int, Box]
    annotator: str = ""

    def __post_init__(self) -> None:
        check_text(self.attribute, "attribute")
        check_text(self.annotator, "annotator", empty=True)
        if not isinstance(self.keyframes, Mapping) or not self.keyframes:
            raise fail("keyframes", "frames with their boxes, at least one", repr(self.keyframes)[:LONGEST])
        found: dict[int, Box] = {}
        last, before = -1, None
        for frame in sorted(_frame(frame) for frame in self.keyframes):
            box = self.keyframes[frame]
            if not isinstance(box, Box):
                raise fail(f"keyframes[{frame}]", "a Box", repr(box)[:LONGEST])
            if box.outside:
                if before is None or before.outside:
                    continue
                box = (before if frame == last + 1 else box).hidden()
            found[frame] = before = box
            last = frame
        if not found:
            raise fail(
                "keyframes", "frames with their boxes, at least one not outside", f"{len(self.keyframes)} outside"
            )
        object.__setattr__(self, "keyframes", found)

    def boxes(self, frames: ArrayLike) -> NDArray[np.float64]:
        """Corners at given frames, in any order and with repeats; zeros where there is none: (T,) -> (T, 4)."""
        wanted = np.asarray(frames, dtype=np.int64).reshape(-1)
        keys, corners = np.array(list(self.keyframes)), np.array([box.corners for box in self.keyframes.values()])
        shown = np.array([not box.outside for box in self.keyframes.values()])
        before = np.searchsorted(keys, wanted, side="right") - 1
        after = np.minimum(before + 1, len(keys) - 1)
        span = np.maximum(keys[after] - keys[before], 1)
        share = np.clip((wanted - keys[before]) / span, 0, 1) * (after != before)
        found: NDArray[np.float64] = corners[before] + (corners[after] - corners[before]) * share[:, None]
        found[(before < 0) | ~shown[before]] = 0
        return found

    def tube(self, count: int) -> Tube:
        """Return the boxes that are seen in a video of `count` frames, one for each of those frames."""
        spans = [np.arange(start, stop) for start, stop, _ in self.spans(count)]
        frames = np.concatenate(spans) if spans else np.zeros(0, dtype=np.int64)
        return Tube(frames, self.boxes(frames))

    def spans(self, count: int) -> list[tuple[int, int, Box]]:
        """List first frame, one past the last, and key frame of every stretch in which the box is seen."""
        ends = [*list(self.keyframes)[1:], count]
        pairs = zip(self.keyframes.items(), ends, strict=True)
        return [(start, min(end, count), box) for (start, box), end in pairs if not box.outside and start < count]

    def cut(self, count: int) -> Track:
        """Leave out key frames beyond the end of a video of `count` frames; what is seen in it stays the same."""
        frames = list(self.keyframes)
        if frames[-1] < count:
            return self
        if frames[0] >= count:
            raise fail("keyframes", f"frames of the video, which has {count}", f"a track that starts at {frames[0]}")
        kept = {frame: box for frame, box in self.keyframes.items() if frame < count}
        last = max(kept)
        end = (
            Box(*self.boxes([count - 1])[0].tolist(), occluded=kept[last].occluded) if not kept[last].outside else None
        )
        if end not in (None, kept[last]):
            kept[count - 1] = end
        return replace(self, keyframes=kept)

    @classmethod
    def from_boxes(cls, attribute: str, boxes: Mapping[int, Box], annotator: str = "") -> Track:
        """Make a track that is seen at the given frames and at no others: nothing is made up between them."""
        found = dict(boxes)
        for frame, box in boxes.items():
            if not box.outside:
                found.setdefault(frame + 1, box.hidden())
        return cls(attribute, found, annotator)

    @classmethod
    def from_tube(cls, attribute: str, tube: Tube, annotator: str = "") -> Track:
        """Make a track that is seen at the frames of a tube, of which at least one must have a box with area."""
        rows = zip(tube.frames.tolist(), tube.boxes.tolist(), tube.areas.tolist(), strict=True)
        return cls.from_boxes(attribute, {frame: Box(*box) for frame, box, area in rows if area > 0}, annotator)


@dataclass(frozen=True, order=True)
class Mark:
    """An annotator's word that a video has an attribute, or has it not; where it is seen is what tracks say."""

    attribute: str
    present: bool = True
    annotator: str = ""

    def __post_init__(self) -> None:
        check_text(self.attribute, "attribute")
        check_text(self.annotator, "annotator", empty=True)
        if not isinstance(self.present, bool):
            raise fail("present", "True or False", repr(self.present))


@dataclass(frozen=True)
class Annotations:
    """All that was drawn and marked in one video.

    video: its name, usually as the CSV files of its data write it. size: (height, width) of its own frames.
    frames: how many it has. fps: frames per second, None where that is not known.
    tracks, marks: in any order; both are kept sorted, so that two equal ones compare equal. At most one mark per
    attribute and annotator. A track must start before the last frame.
    """

    video: str
    size: tuple[int, int]
    frames: int
    fps: float | None = None
    tracks: tuple[Track, ...] = ()
    marks: tuple[Mark, ...] = ()

    def __post_init__(self) -> None:
        check_text(self.video, "video", longest=LONGEST_PATH)
        object.__setattr__(self, "size", check_size(self.size))
        check_int(self.frames, "frames", 1, LAST_FRAME)
        if self.fps is not None:
            fps = check_finite(self.fps, "fps")
            if not 1e-3 <= fps <= 1e6:
                raise fail("fps", "from 0.001 to 1000000 frames per second, or None", f"{fps:g}")
            object.__setattr__(self, "fps", fps)
        for name, kind in (("tracks", Track), ("marks", Mark)):
            given = tuple(getattr(self, name))
            if not all(isinstance(one, kind) for one in given):
                raise fail(name, f"a list of {kind.__name__}", repr(given)[:LONGEST])
            object.__setattr__(self, name, given)
        object.__setattr__(self, "tracks", tuple(sorted((t.cut(self.frames) for t in self.tracks), key=_order)))
        object.__setattr__(self, "marks", tuple(sorted(self.marks)))
        said = Counter((mark.attribute, mark.annotator) for mark in self.marks)
        for (attribute, annotator), count in said.items():
            if count > 1:
                raise fail("marks", "one per attribute and annotator", f"{count} of {attribute!r} by {annotator!r}")

    @property
    def annotators(self) -> tuple[str, ...]:
        """Who drew or marked anything, sorted; "" among them where that is not known."""
        return tuple(sorted({track.annotator for track in self.tracks} | {mark.annotator for mark in self.marks}))

    @property
    def present(self) -> dict[str, bool]:
        """Attributes that were marked or drawn: whether the video has them, by most of the annotators who say.

        Who draws an attribute says that it is there, unless that annotator marked it absent. A tie counts as present.
        """
        said = {(track.attribute, track.annotator): True for track in self.tracks}
        said |= {(mark.attribute, mark.annotator): mark.present for mark in self.marks}
        votes: dict[str, list[bool]] = {}
        for (attribute, _), present in sorted(said.items()):
            votes.setdefault(attribute, []).append(present)
        return {attribute: 2 * sum(given) >= len(given) for attribute, given in votes.items()}

    def of(self, annotator: str) -> Annotations:
        """Return what one annotator drew and marked."""
        tracks = tuple(track for track in self.tracks if track.annotator == annotator)
        return replace(self, tracks=tracks, marks=tuple(mark for mark in self.marks if mark.annotator == annotator))

    def tubes(self) -> dict[str, Tube]:
        """One tube per attribute, as boxes.csv has them; an attribute that is nowhere seen has none.

        Per annotator and frame the box goes around all that shows the attribute. Where several annotators have a box,
        it is the mean of theirs.
        """
        found = {}
        for attribute in dict.fromkeys(track.attribute for track in self.tracks):
            own = []
            for annotator in self.annotators:
                tubes = [t.tube(self.frames) for t in self.of(annotator).tracks if t.attribute == attribute]
                parts = [tube for tube in tubes if len(tube)]
                if parts:
                    frames = np.concatenate([tube.frames for tube in parts])
                    own.append(enclosing_tube(frames, np.concatenate([tube.boxes for tube in parts])))
            if own:
                found[attribute] = _mean(own)
        return found


def check_text(text: object, name: str, *, empty: bool = False, longest: int = LONGEST_NAME) -> str:
    """Require a name that every format can hold: printable, without blanks around it."""
    if not isinstance(text, str):
        raise fail(name, "text", repr(text)[:LONGEST])
    if not (text or empty) or text != text.strip() or not text.isprintable() or len(text) > longest:
        expected = f"text of at most {longest} printable letters, without blanks around it"
        raise fail(name, f"{expected}{', or empty' if empty else ''}", repr(text[:LONGEST]))
    return text


def _frame(frame: SupportsIndex) -> int:
    if isinstance(frame, bool) or not hasattr(frame, "__index__"):
        raise fail("keyframes", "frames counted from 0", repr(frame)[:LONGEST])
    return check_int(index(frame), "keyframes", 0, LAST_FRAME)


def _order(track: Track) -> tuple[object, ...]:
    rows = tuple((frame, *box.corners, box.outside, box.occluded) for frame, box in track.keyframes.items())
    return track.attribute, track.annotator, rows


def _mean(tubes: Iterable[Tube]) -> Tube:
    """Average the boxes of each frame over the tubes that have one there."""
    parts = list(tubes)
    frames, place, count = np.unique(
        np.concatenate([tube.frames for tube in parts]), return_inverse=True, return_counts=True
    )
    total = np.zeros((len(frames), 4))
    np.add.at(total, place, np.concatenate([tube.boxes for tube in parts]))
    return Tube(frames, total / count[:, None])
