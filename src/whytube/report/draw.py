"""Draw on frames: (H, W, 3) uint8 RGB arrays, changed in place; coordinates are x, y in pixels and may lie outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from whytube.report.font import ABOVE, HEIGHT, text_mask, text_width

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Frame = NDArray[np.uint8]


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
        return BLACK if _luminance(self) > 0.179 else WHITE


BLACK, WHITE = Colour(0, 0, 0), Colour(255, 255, 255)
# One colour per reason, in their order: Okabe and Ito's, told apart by colour-blind people, the brightest first.
PALETTE = (
    Colour(240, 165, 0),
    Colour(86, 180, 233),
    Colour(0, 178, 130),
    Colour(222, 128, 178),
    Colour(240, 228, 66),
    Colour(222, 94, 0),
)


def reason_colour(rank: int) -> Colour:
    """Colour of the reason at a place in the ranking, from 0; they come again after the last."""
    return PALETTE[rank % len(PALETTE)]


def draw_box(frame: Frame, box: ArrayLike, colour: Colour, *, thickness: float = 3.0) -> None:
    """Outline a box x1 y1 x2 y2, with rounded corners, smooth edges and a dark line on either side."""
    x1, y1, x2, y2 = np.asarray(box, dtype=np.float64).tolist()
    inset = thickness / 2
    ring = (x1 + inset, y1 + inset, max(x2 - inset, x1 + inset), max(y2 - inset, y1 + inset))
    window = _window(frame, (x1 - 3, y1 - 3, x2 + 3, y2 + 3))
    distance = np.abs(_distance(window, ring, radius=2 * thickness))
    _blend(frame, window, (thickness / 2 + 1.5 - distance).clip(0, 1) * 0.55, BLACK)
    _blend(frame, window, (thickness / 2 + 0.5 - distance).clip(0, 1), colour)


def fill_box(frame: Frame, box: ArrayLike, colour: Colour, *, radius: float = 0.0, alpha: float = 1.0) -> None:
    """Fill a box x1 y1 x2 y2 with rounded corners."""
    corners = tuple(np.asarray(box, dtype=np.float64).tolist())
    window = _window(frame, corners)
    _blend(frame, window, (0.5 - _distance(window, corners, radius=radius)).clip(0, 1) * alpha, colour)


def draw_text(frame: Frame, text: str, at: tuple[int, int], colour: Colour, *, scale: int = 2) -> int:
    """Write a line with its upper left corner at (x, y); return where it ends."""
    mask = text_mask(text, scale)
    x, y = at
    height, width = mask.shape[0], int(mask.shape[1])
    window = _window(frame, (x, y, x + width, y + height))
    _blend(frame, window, mask[window.y1 - y : window.y2 - y, window.x1 - x : window.x2 - x], colour)
    return x + width


def chip_size(text: str, scale: int = 2) -> tuple[int, int]:
    """Height and width of a label."""
    return (HEIGHT + 3) * scale, text_width(text, scale) + 6 * scale


def draw_chip(frame: Frame, text: str, at: tuple[int, int], colour: Colour, *, scale: int = 2) -> None:
    """Write a label in black or white on a chip of the colour, with its upper left corner at (x, y)."""
    height, width = chip_size(text, scale)
    x, y = at
    fill_box(frame, (x - 1, y - 1, x + width + 1, y + height + 1), BLACK, radius=2.5 * scale + 1, alpha=0.45)
    fill_box(frame, (x, y, x + width, y + height), colour, radius=2.5 * scale)
    draw_text(frame, text, (x + 3 * scale, y + (height - ABOVE * scale) // 2), colour.ink, scale=scale)


class _Window(NamedTuple):
    """The part of a frame that a shape may touch, in whole pixels, ends exclusive."""

    x1: int
    y1: int
    x2: int
    y2: int


def _window(frame: Frame, box: tuple[float, ...]) -> _Window:
    height, width = frame.shape[:2]
    low = np.floor(box[:2]).clip(0, (width, height)).astype(int)
    high = np.ceil(box[2:]).clip(low, (width, height)).astype(int)
    return _Window(*low.tolist(), *high.tolist())


def _distance(window: _Window, box: tuple[float, ...], *, radius: float) -> NDArray[np.float64]:
    """Signed distance of pixel centres to the edge of a rounded box, negative inside."""
    x1, y1, x2, y2 = box
    radius = min(radius, (x2 - x1) / 2, (y2 - y1) / 2)
    x = np.abs(np.arange(window.x1, window.x2) + 0.5 - (x1 + x2) / 2) - (x2 - x1) / 2 + radius
    y = np.abs(np.arange(window.y1, window.y2)[:, None] + 0.5 - (y1 + y2) / 2) - (y2 - y1) / 2 + radius
    inside: NDArray[np.float64] = np.maximum(x, y).clip(max=0)
    distance: NDArray[np.float64] = np.hypot(x.clip(min=0), y.clip(min=0)) + inside - radius
    return distance


def _blend(frame: Frame, window: _Window, coverage: NDArray[np.floating], colour: Colour) -> None:
    view = frame[window.y1 : window.y2, window.x1 : window.x2]
    mixed = view + (np.array(colour) - view) * coverage[..., None]
    view[:] = np.rint(mixed).astype(np.uint8)


def _luminance(colour: Colour) -> float:
    """Relative luminance as WCAG defines it, from 0 (black) to 1 (white)."""
    parts = np.array(colour) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])
