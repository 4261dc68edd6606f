"""Tracks: tubes that can be moved, resized, bent, shortened and lengthened; random ones, and changes of given ones.

A track has a box on every frame of the clip and a span of frames in which it counts, so that a tube can be lengthened
again after it was shortened. Arrays of M tracks: boxes (M, T, 4), start and stop (M,).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

STEP = 1 / 12
"""Deviation of a move and of a bend, as a fraction of the frame's height and width."""
RESIZE = 0.3
"""Deviation of the logarithm of a change of a side."""
SHIFT = 1 / 4
"""Largest change of the first or last frame, as a fraction of the clip."""
SMALLEST = 0.3
"""Volume of the smallest random tube, as a fraction of the largest."""
SIDE = 0.05
"""Smallest side of a box, as a fraction of the frame's."""


@dataclass(frozen=True, eq=False)
class Tracks:
    """M tracks.

    boxes: (M, T, 4) in fractions of the frame's width and height, also outside the span. start, stop: (M,) the span.
    """

    boxes: NDArray[np.float64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.boxes)

    def __getitem__(self, rows: NDArray[np.int64] | NDArray[np.bool_] | slice) -> Tracks:
        return Tracks(self.boxes[rows], self.start[rows], self.stop[rows])

    def tubes(self, size: tuple[int, int]) -> NDArray[np.float32]:
        """Boxes (M, T, 4) in pixels of frames of `size` (height, width), zeros outside the span."""
        frame = np.arange(self.boxes.shape[1])
        there = (frame >= self.start[:, None]) & (frame < self.stop[:, None])
        height, width = size
        pixels = self.boxes * np.array([width, height, width, height])
        return np.where(there[..., None], pixels, 0).astype(np.float32)

    def within(self, area: float) -> Tracks:
        """Shrink boxes about their centres until no tube's volume exceeds `area`, a fraction of the clip's."""
        sides = self.boxes[..., 2:] - self.boxes[..., :2]
        frame = np.arange(self.boxes.shape[1])
        there = (frame >= self.start[:, None]) & (frame < self.stop[:, None])
        volume = (sides.prod(-1) * there).mean(1)
        share = np.sqrt(np.minimum(1, area / np.maximum(volume, 1e-9)))[:, None, None]
        centres = (self.boxes[..., :2] + self.boxes[..., 2:]) / 2
        return Tracks(_boxes(centres, sides * share), self.start, self.stop)


def joined(parts: Sequence[Tracks]) -> Tracks:
    """Put tracks one after the other."""
    return Tracks(
        np.concatenate([part.boxes for part in parts]),
        np.concatenate([part.start for part in parts]),
        np.concatenate([part.stop for part in parts]),
    )


def tracks_of(tubes: NDArray[np.float32], size: tuple[int, int]) -> Tracks:
    """Make tracks of tubes (M, T, 4) in pixels; before and after its span a track stays where it was. None is empty."""
    there = (tubes[..., 2] > tubes[..., 0]) & (tubes[..., 3] > tubes[..., 1])
    frames = there.shape[1]
    start = there.argmax(1)
    stop = frames - there[:, ::-1].argmax(1)
    nearest = np.clip(np.arange(frames), start[:, None], stop[:, None] - 1)
    height, width = size
    boxes = np.take_along_axis(tubes.astype(np.float64), nearest[..., None], 1)
    return Tracks(boxes / np.array([width, height, width, height]), start, stop)


def random_tracks(rng: np.random.Generator, count: int, *, frames: int, area: float) -> Tracks:
    """Draw tracks with volumes up to `area`: a box of random size and shape on a straight way through random frames."""
    length = rng.integers(max(1, frames // 4), frames + 1, size=count)
    start = (rng.random(count) * (frames - length + 1)).astype(np.int64)
    volume = area * np.exp(rng.uniform(np.log(SMALLEST), 0, size=count))
    stretch = np.exp(rng.normal(0, RESIZE, size=count))
    side = np.sqrt(volume * frames / length)
    sides = np.stack([side / stretch, side * stretch], 1).clip(SIDE, 1)  # width, height
    centre = sides / 2 + rng.random((count, 2)) * (1 - sides)
    along = (np.arange(frames) / max(frames - 1, 1) - 0.5)[:, None]
    centres = centre[:, None] + rng.normal(0, STEP, size=(count, 1, 2)) * along
    return Tracks(_boxes(centres, sides[:, None]), start, start + length).within(area)


def changed(tracks: Tracks, rng: np.random.Generator, *, area: float) -> Tracks:
    """Change each track in one to three ways: move, resize, bend, other first or last frame; then shrink to `area`."""
    count, frames = len(tracks), tracks.boxes.shape[1]
    ways = rng.random((count, 4)).argsort(1) < rng.integers(1, 4, size=count)[:, None]  # move, resize, bend, span
    centres = (tracks.boxes[..., :2] + tracks.boxes[..., 2:]) / 2
    sides = tracks.boxes[..., 2:] - tracks.boxes[..., :2]
    along = 2 * (np.arange(frames) / max(frames - 1, 1) - 0.5)[:, None]
    move, bend = (rng.normal(0, STEP, size=(count, 1, 2)) for _ in range(2))
    centres = centres + np.where(ways[:, 0, None, None], move, 0) + np.where(ways[:, 2, None, None], bend, 0) * along
    sides = sides * np.where(ways[:, 1, None, None], np.exp(rng.normal(0, RESIZE, size=(count, 1, 2))), 1)
    reach = max(1, round(SHIFT * frames))
    shift = np.where(ways[:, 3], rng.integers(-reach, reach + 1, size=(2, count)), 0)
    start = (tracks.start + shift[0]).clip(0, frames - 1)
    stop = np.maximum((tracks.stop + shift[1]).clip(1, frames), start + 1)
    return Tracks(_boxes(centres, sides.clip(SIDE, 1)), start, stop).within(area)


def _boxes(centres: NDArray[np.float64], sides: NDArray[np.float64]) -> NDArray[np.float64]:
    """Boxes (M, T, 4) around centres (M, T, 2), moved into the frame."""
    sides = np.broadcast_to(sides, centres.shape)
    low = (centres - sides / 2).clip(0, 1 - sides)
    return np.concatenate([low, low + sides], -1)
