"""One picture of an overlay: the frame, tubes with their words, the question above and the tubes' times below."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from whytube.report.draw import BLACK, WHITE, Colour, chip_size, draw_box, draw_chip, draw_text, fill_box, reason_colour
from whytube.report.font import HEIGHT, fitted, readable, text_width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from whytube.explanation import Explanation
    from whytube.tubes import Tube

GROUND = Colour(17, 20, 28)
QUIET = Colour(150, 158, 175)
TRACK = Colour(52, 58, 72)


@dataclass(frozen=True)
class Canvas:
    """Draws one explanation on pictures of `size` (height, width), which show the whole frame of the video."""

    explanation: Explanation
    size: tuple[int, int]

    @property
    def text(self) -> int:
        """Size of the font."""
        return max(2, round(min(self.size) / 240))

    def boxes(self, indices: ArrayLike) -> NDArray[np.float64]:
        """Boxes of the N reasons at F source frames, in pixels of the picture, (N, F, 4); zeros where there is none."""
        wanted = np.asarray(indices, dtype=np.int64)
        height, width = self.explanation.size
        scale = np.array([self.size[1] / width, self.size[0] / height] * 2)
        tubes = [reason.tube for reason in self.explanation.reasons]
        rows = [boxes_between(tube, wanted, sampled=self.explanation.frames) * scale for tube in tubes]
        return np.stack(rows) if rows else np.zeros((0, len(wanted), 4))

    def draw_tubes(self, picture: NDArray[np.uint8], boxes: NDArray[np.float64]) -> None:
        """Outline the boxes (N, 4) of one frame and write their words beside them, in place.

        Reasons that the classifier did not confirm get a thin line.
        """
        reasons, telling = self.explanation.reasons, self.explanation.telling
        shown = [i for i, (x1, y1, x2, y2) in enumerate(boxes.tolist()) if x2 > x1 and y2 > y1]
        for i in reversed(shown):
            thickness = 1.5 * self.text if reasons[i] in telling else 0.75 * self.text
            # Tubes of several words in one place are nested, the best one innermost.
            inner = sum(bool(np.abs(boxes[i] - boxes[j]).max() < 2 * thickness) for j in shown if j < i)
            outward = inner * (thickness + 1) * np.array([-1, -1, 1, 1])
            draw_box(picture, boxes[i] + outward, reason_colour(i), thickness=thickness)
        taken: list[NDArray[np.float64]] = []
        for i in shown:
            word = fitted(reasons[i].attribute or "region", self.size[1] - 8 * self.text, self.text)
            spot = _place(boxes[i], chip_size(word, self.text), self.size, taken)
            taken.append(spot)
            draw_chip(picture, word, (int(spot[0]), int(spot[1])), reason_colour(i), scale=self.text)

    def framed(
        self, picture: NDArray[np.uint8], *, spans: Sequence[tuple[float, float]] = (), now: float | None = None
    ) -> NDArray[np.uint8]:
        """Put "A, not B" above a picture (H, W, 3), and below it where in the video each tube is.

        spans: for each reason the part of the video it covers, as fractions. now: how far the video is, in [0, 1].
        """
        height, width = picture.shape[:2]
        above, below = self._header(width), self._footer(width, spans, now)
        return np.concatenate([above, picture, below])[: (height + len(above) + len(below)) // 2 * 2]

    @cached_property
    def _question(self) -> tuple[tuple[str, Colour], ...]:
        e = self.explanation
        return (readable(e.positive), WHITE), (", not ", QUIET), (readable(e.negative), WHITE)

    def _header(self, width: int) -> NDArray[np.uint8]:
        """Write the question on one line, a little larger than words if it fits, or else on two lines."""
        margin = 4 * self.text
        (a, _), (between, _), (b, _) = self._question
        fits = (s for s in (self.text + 1, self.text) if text_width(a + between + b, s) <= width - 2 * margin)
        scale = next(fits, None)
        lines = [self._question] if scale else [self._question[:1], (("not ", QUIET), self._question[2])]
        scale = scale or self.text
        step = (HEIGHT + 3) * scale
        bar = _blank(len(lines) * step + 3 * scale, width)
        for row, line in enumerate(lines):
            x = margin
            for text, colour in line:
                part = fitted(text, width - margin - x, scale)
                x = draw_text(bar, part, (x, row * step + 3 * scale), colour, scale=scale) + scale
        return bar

    def _footer(self, width: int, spans: Sequence[tuple[float, float]], now: float | None) -> NDArray[np.uint8]:
        """Draw one track per reason, bright where its tube is, and a line that moves along."""
        if not spans:
            return _blank(0, width)
        unit, margin = self.text, 4 * self.text
        bar = _blank((3 * len(spans) + 5) * unit, width)
        length = width - 2 * margin
        for row, (start, end) in enumerate(spans):
            y = (3 + 3 * row) * unit
            fill_box(bar, (margin, y, margin + length, y + 2 * unit), TRACK, radius=unit)
            colour = reason_colour(row)
            fill_box(bar, (margin + start * length, y, margin + end * length, y + 2 * unit), colour, radius=unit)
        if now is not None:
            x = margin + now * length
            fill_box(bar, (x - unit, unit, x + unit, len(bar) - unit), BLACK, radius=unit)
            fill_box(bar, (x - unit / 2, unit, x + unit / 2, len(bar) - unit), WHITE, radius=unit / 2)
        return bar


def boxes_between(tube: Tube, wanted: ArrayLike, *, sampled: ArrayLike) -> NDArray[np.float64]:
    """Boxes (F, 4) at any frames of the video, for a tube whose boxes lie on sampled frames; zeros where it is not.

    A frame belongs to the tube if the sampled frame nearest to it does; its box is interpolated, and held at the ends.
    """
    frames = np.asarray(wanted, dtype=np.int64)
    known = np.unique(np.asarray(sampled, dtype=np.int64)) if np.size(sampled) else tube.frames
    if not len(tube) or not len(known):
        return np.zeros((len(frames), 4))
    nearest = known[np.searchsorted((known[1:] + known[:-1]) / 2, frames)]
    reach = np.diff(known).max(initial=1) / 2
    there = np.isin(nearest, tube.frames) & (np.abs(nearest - frames) <= reach)
    boxes = np.stack([np.interp(frames, tube.frames, column) for column in tube.boxes.T], axis=1)
    return np.where(there[:, None], boxes, 0.0)


def _place(
    box: NDArray[np.float64], chip: tuple[int, int], size: tuple[int, int], taken: list[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Find a place x1 y1 x2 y2 for a label: above its box, below, or inside, and not on another label."""
    height, width = chip
    x = min(max(round(box[0]), 0), max(size[1] - width, 0))
    rows = (box[1] - height - 2, box[3] + 2, box[1] + 4, box[3] - height - 4)
    steps = [row + step * (height + 2) for step in (0, -1, 1, -2, 2) for row in rows]
    spots = [np.array([x, round(y), x + width, round(y) + height], dtype=np.float64) for y in steps]
    inside = [spot for spot in spots if spot[1] >= 0 and spot[3] <= size[0]]
    free = (spot for spot in inside if not any(_touch(spot, other) for other in taken))
    lowest = np.array([x, 0, x + width, height], dtype=np.float64)
    return next(free, inside[0] if inside else lowest)


def _touch(a: NDArray[np.float64], b: NDArray[np.float64]) -> bool:
    return bool((a[:2] < b[2:]).all() and (b[:2] < a[2:]).all())


def _blank(height: int, width: int) -> NDArray[np.uint8]:
    return np.full((height, width, 3), GROUND, dtype=np.uint8)
