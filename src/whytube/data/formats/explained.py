"""An explanation's tubes as Annotations, to look at and correct in an annotation tool."""

from __future__ import annotations

from itertools import pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING

from whytube.data.formats.track import Annotations, Box, Track
from whytube.errors import printable

if TYPE_CHECKING:
    from whytube.explanation import Explanation, Reason

ANNOTATOR = "whytube"


def explained(explanation: Explanation) -> Annotations:
    """Return one track for every reason that the sentence names; its annotator is "whytube".

    Boxes at the sampled frames are key frames. The box moves between two of them, and stays for half a step at the ends
    of the tube, as overlays draw it. A region without a word is called "region". The video is called by the name of its
    file; its length is that of its duration, and at least up to the last sampled frame.
    """
    told = [_track(reason, explanation) for reason in explanation.telling if reason.tube.volume]
    frames = max(explanation.frames, default=0) + 1
    if explanation.fps and explanation.duration:
        frames = max(frames, round(explanation.fps * explanation.duration))
    name = printable(PurePath(explanation.source).name).strip() or "video"
    return Annotations(name, explanation.size, frames, explanation.fps, tuple(told))


def _track(reason: Reason, explanation: Explanation) -> Track:
    places = zip(reason.tube.frames.tolist(), reason.tube.boxes.tolist(), reason.tube.areas.tolist(), strict=True)
    boxes = {frame: Box(*box) for frame, box, area in places if area > 0}
    sampled = sorted({*explanation.frames, *boxes})
    reach = max((b - a for a, b in pairwise(sampled)), default=1) // 2
    edges = [sampled[0] - reach - 1, *((a + b) // 2 for a, b in pairwise(sampled)), sampled[-1] + reach]
    keys = dict(boxes)
    for at, frame in enumerate(sampled):
        if frame in boxes:
            before, after = (sampled[other] if 0 <= other < len(sampled) else None for other in (at - 1, at + 1))
            if before not in boxes:  # it is seen from half a step before
                keys.setdefault(max(edges[at] + 1, 0), boxes[frame])
            if after not in boxes:
                keys.setdefault(edges[at + 1] + 1, boxes[frame].hidden())
    return Track(reason.attribute or "region", keys, ANNOTATOR)
