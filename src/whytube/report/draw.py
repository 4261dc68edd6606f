"""Draws on one picture of an overlay: boxes of tubes with labels, the question above, the tubes' times below.

Pictures are RGB images of Pillow, changed in place. Coordinates are x, y in pixels and may lie outside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from whytube.explanation import MUCH
from whytube.report.font import ABOVE, CAPITAL, fitted, text_picture, text_width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from whytube.explanation import Explanation, Reason
    from whytube.tubes import Tube


class Colour(NamedTuple):
    """Red, green and blue, 0 to 255."""

    red: int
    green: int
    blue: int

    @property
    def css(self) -> str:
        """The colour as CSS writes it."""
        return f"#{self.red:02x}{self.green:02x}{self.blue:02x}"

    @property
    def ink(self) -> Colour:
        """Black or white, whichever is easier to read on this colour (WCAG contrast)."""
        parts = (v / 255 for v in self)
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return BLACK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else WHITE


BLACK, WHITE = Colour(0, 0, 0), Colour(255, 255, 255)
GROUND, QUIET, TRACK = Colour(17, 20, 28), Colour(150, 158, 175), Colour(52, 58, 72)
# One colour per reason, in their order, brightest first: those of Okabe and Ito, which colour-blind people tell apart.
PALETTE = (
    Colour(240, 165, 0),
    Colour(86, 180, 233),
    Colour(0, 178, 130),
    Colour(222, 128, 178),
    Colour(240, 228, 66),
    Colour(222, 94, 0),
)
HOT, COLD = Colour(230, 60, 20), Colour(40, 90, 230)
"""Where masking takes the decision away from A, and where it helps A."""
HEAT_ALPHA = 0.65
"""How much of a pixel the strongest heat covers."""
# Shapes are drawn this many times larger and then averaged, for smooth edges.
FINE = 4


def reason_colour(rank: int) -> Colour:
    """Colour of the reason at a rank from 0; colours repeat after the last."""
    return PALETTE[rank % len(PALETTE)]


def draw_box(picture: Image.Image, box: Sequence[float], colour: Colour, *, thickness: float = 3.0) -> None:
    """Outline a box x1 y1 x2 y2 inside its edges, with rounded corners and a dark line on either side."""
    x1, y1, x2, y2 = box
    radius = 2.5 * thickness
    fill_box(picture, (x1 - 1, y1 - 1, x2 + 1, y2 + 1), BLACK, radius=radius + 1, alpha=0.55, thickness=thickness + 2)
    fill_box(picture, box, colour, radius=radius, thickness=thickness)


def fill_box(
    picture: Image.Image,
    box: Sequence[float],
    colour: Colour,
    *,
    radius: float = 0.0,
    alpha: float = 1.0,
    thickness: float = math.inf,
) -> None:
    """Fill a box x1 y1 x2 y2 with rounded corners, or only its rim of a thickness."""
    x1, y1, x2, y2 = box
    left, top = max(math.floor(x1), 0), max(math.floor(y1), 0)
    right, bottom = min(math.ceil(x2), picture.width), min(math.ceil(y2), picture.height)
    if left >= right or top >= bottom:
        return
    fine = [round(FINE * v) for v in (x1 - left, y1 - top, x2 - left, y2 - top)]
    mask = _mask((right - left, bottom - top), tuple(fine), FINE * radius, FINE * thickness, round(255 * alpha))
    picture.paste(colour, (left, top), mask)


@lru_cache(maxsize=32)
def _mask(size: tuple[int, int], box: tuple[int, ...], radius: float, thickness: float, level: int) -> Image.Image:
    """How much a box covers each pixel; `box`, `radius` and `thickness` are in pixels / FINE."""
    mask = Image.new("L", (FINE * size[0], FINE * size[1]))
    for inset, value in ((0, level), (thickness, 0)):
        x1, y1, x2, y2 = box[0] + inset, box[1] + inset, box[2] - inset - 1, box[3] - inset - 1
        if x1 <= x2 and y1 <= y2:
            ImageDraw.Draw(mask).rounded_rectangle((x1, y1, x2, y2), max(radius - inset, 0), fill=value)
    return mask.reduce(FINE)


def draw_text(picture: Image.Image, text: str, at: tuple[int, int], colour: Colour, *, scale: int = 2) -> int:
    """Write a line whose capital letters have their upper left corner at (x, y); return the x where it ends."""
    line = text_picture(text, colour, scale)
    picture.paste(line, (at[0], at[1] - (ABOVE - CAPITAL) * scale), line)
    return at[0] + line.width


def chip_size(text: str, scale: int = 2) -> tuple[int, int]:
    """Height and width of a label."""
    return 12 * scale, text_width(text, scale) + 6 * scale


def draw_chip(picture: Image.Image, text: str, at: tuple[int, int], colour: Colour, *, scale: int = 2) -> None:
    """Write a label in black or white on a chip of the colour, with its upper left corner at (x, y)."""
    height, width = chip_size(text, scale)
    x, y = at
    fill_box(picture, (x - 1, y - 1, x + width + 1, y + height + 1), BLACK, radius=2.5 * scale + 1, alpha=0.45)
    fill_box(picture, (x, y, x + width, y + height), colour, radius=2.5 * scale)
    draw_text(picture, text, (x + 3 * scale, y + (height - CAPITAL * scale) // 2), colour.ink, scale=scale)


@dataclass(frozen=True)
class Canvas:
    """Draws one explanation on pictures of `size` (height, width), each a whole frame of the video.

    Only the reasons that the sentence names are drawn. Where it says that no region explains the answer, the line above
    the picture says so, and nothing is drawn on it. note: a further line above the picture.
    """

    explanation: Explanation
    size: tuple[int, int]
    note: str = ""

    @property
    def ranks(self) -> list[int]:
        """Ranks of the N reasons that are drawn, among all of the explanation."""
        telling = self.explanation.telling
        return [rank for rank, reason in enumerate(self.explanation.reasons) if reason in telling]

    @property
    def text(self) -> int:
        """Scale of the text, and the unit in pixels of all distances."""
        return max(2, round(min(self.size) / 240))

    def boxes(self, indices: ArrayLike) -> NDArray[np.float64]:
        """Boxes of the N reasons at F frames of the video, in pixels of the picture, (N, F, 4); zeros where absent."""
        wanted = np.asarray(indices, dtype=np.int64)
        height, width = self.explanation.size
        scale = np.array([self.size[1] / width, self.size[0] / height] * 2)
        tubes = [self.explanation.reasons[rank].tube for rank in self.ranks]
        rows = [boxes_between(tube, wanted, sampled=self.explanation.frames) * scale for tube in tubes]
        return np.stack(rows) if rows else np.zeros((0, len(wanted), 4))

    def draw_tubes(self, picture: Image.Image, boxes: NDArray[np.float64]) -> None:
        """Outline the boxes (N, 4) of one frame and label them with their attributes, in place."""
        reasons, ranks, thickness = self.explanation.reasons, self.ranks, 1.5 * self.text
        shown = [i for i, (x1, y1, x2, y2) in enumerate(boxes.tolist()) if x2 > x1 and y2 > y1]
        for i in reversed(shown):
            # Boxes in the same place are nested, the best reason's innermost.
            inner = sum(bool(np.abs(boxes[i] - boxes[j]).max() < 2 * thickness) for j in shown if j < i)
            outward = inner * (thickness + 1) * np.array([-1, -1, 1, 1])
            draw_box(picture, (boxes[i] + outward).tolist(), reason_colour(ranks[i]), thickness=thickness)
        taken: list[tuple[int, int, int, int]] = []
        for i in shown:
            label = fitted(_label(reasons[ranks[i]]), self.size[1] - 8 * self.text, self.text)
            taken.append(_place(boxes[i].tolist(), chip_size(label, self.text), self.size, taken))
            draw_chip(picture, label, taken[-1][:2], reason_colour(ranks[i]), scale=self.text)

    def draw_heat(self, picture: Image.Image, heat: NDArray[np.float32]) -> None:
        """Tint a picture by heat (h, w), in place: red where masking takes the decision from A, blue where it helps A.

        A fall of MUCH or more is the strongest tint, whatever else is in the video.
        """
        strength = np.clip(np.abs(heat) / MUCH, 0, 1) * HEAT_ALPHA * 255
        for colour, there in ((HOT, heat > 0), (COLD, heat < 0)):
            mask = Image.fromarray(np.where(there, strength, 0).round().astype(np.uint8))
            picture.paste(colour, (0, 0), mask.resize(picture.size, Image.Resampling.BILINEAR))

    def framed(
        self, picture: Image.Image, *, spans: Sequence[tuple[float, float]] = (), now: float | None = None
    ) -> NDArray[np.uint8]:
        """Put "A, not B" above a picture, and below it where in the video each tube is; (H, W, 3), H even.

        spans: for each reason that is drawn the part of the video it covers, as fractions. now: position in the video,
        in [0, 1].
        """
        parts = [self._header(picture.width), picture]
        if spans:
            parts.append(self._footer(picture.width, spans, now))
        sheet = np.concatenate([np.asarray(part) for part in parts])
        return sheet[: len(sheet) // 2 * 2]

    def _header(self, width: int) -> Image.Image:
        """Write the question on one line, a little larger than the labels if it fits, or else on two lines.

        A guess is called one, and further lines say what limits the answer, what the colours are, and what masking each
        tube did.
        """
        margin = 4 * self.text
        a, b = (self.explanation.positive, WHITE), (self.explanation.negative, WHITE)
        guess = self.explanation.guessed and self.explanation.said == self.explanation.positive
        first = [("guess: ", QUIET), a] if guess else [a]
        whole = "".join(text for text, _ in [*first, (", not ", QUIET), b])
        fits = [s for s in (self.text + 1, self.text) if text_width(whole, s) <= width - 2 * margin]
        lines = [[*first, (", not ", QUIET), b]] if fits else [first, [("not ", QUIET), b]]
        scale = fits[0] if fits else self.text
        lines += [[(remark, QUIET)] for remark in (*self.explanation.remarks, self.note) if remark]
        effects = [_effect(self.explanation.reasons[rank], self.explanation.positive) for rank in self.ranks]
        lines += [[(effect, QUIET)] for effect in effects if effect]
        bar = Image.new("RGB", (width, (12 * len(lines) + 3) * scale), GROUND)
        for row, line in enumerate(lines):
            x, y = margin, (12 * row + 4) * scale
            for text, colour in line:
                x = draw_text(bar, fitted(text, width - margin - x, scale), (x, y), colour, scale=scale)
        return bar

    def _footer(self, width: int, spans: Sequence[tuple[float, float]], now: float | None) -> Image.Image:
        """Draw one track per reason, bright where its tube is, and a line that moves along."""
        unit, margin = self.text, 4 * self.text
        bar = Image.new("RGB", (width, (3 * len(spans) + 5) * unit), GROUND)
        length = width - 2 * margin
        for row, span in enumerate(spans):
            y = (3 + 3 * row) * unit
            for (start, end), colour in (((0, 1), TRACK), (span, reason_colour(self.ranks[row]))):
                fill_box(bar, (margin + start * length, y, margin + end * length, y + 2 * unit), colour, radius=unit)
        if now is not None:
            x = margin + now * length
            for half, colour in ((unit, BLACK), (unit / 2, WHITE)):
                fill_box(bar, (x - half, unit, x + half, bar.height - unit), colour, radius=half)
        return bar


def _label(reason: Reason) -> str:
    """Write what stands on a box: the word, and how well it fits."""
    name = reason.attribute or "region"
    return name if reason.fit is None else f"{name} (fits {100 * reason.fit:.0f} %)"


def _effect(reason: Reason, positive: str) -> str:
    """Write what masking did to A, the mean over fills; "" where nothing was measured."""
    if not reason.evidence:
        return ""
    before, after = (
        100 * sum(chances) / len(reason.evidence)
        for chances in zip(*((e.positive_before, e.positive_after) for e in reason.evidence), strict=True)
    )
    return f"{reason.attribute or 'region'} masked: {positive} {before:.0f} to {after:.0f} %"


def boxes_between(tube: Tube, wanted: ArrayLike, *, sampled: ArrayLike) -> NDArray[np.float64]:
    """Boxes (F, 4) of a tube at any frames of the video, of which the classifier saw `sampled`; zeros where absent.

    A frame belongs to the tube if the nearest sampled frame does. Boxes are interpolated, and constant past the ends.
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
    box: Sequence[float], chip: tuple[int, int], size: tuple[int, int], taken: Sequence[tuple[int, int, int, int]]
) -> tuple[int, int, int, int]:
    """Find a place x1 y1 x2 y2 for a label: above its box, below or inside it, and not on another label."""
    height, width = chip
    x = min(max(round(box[0]), 0), max(size[1] - width, 0))
    rows = (box[1] - height - 2, box[3] + 2, box[1] + 4, box[3] - height - 4)
    tops = [round(row + step * (height + 2)) for step in (0, -1, 1, -2, 2) for row in rows]
    inside = [y for y in tops if 0 <= y <= size[0] - height] or [0]
    free = (y for y in inside if all(x + width <= a or c <= x or y + height <= b or d <= y for a, b, c, d in taken))
    y = next(free, inside[0])
    return x, y, x + width, y + height
