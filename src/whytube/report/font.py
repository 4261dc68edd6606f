"""A bitmap font of our own, so that words look the same on every machine: text -> coverage."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Rows of a glyph: seven above the baseline, two below it.
HEIGHT = 9
ABOVE = 7
SPACE = 3


def text_mask(text: str, scale: int = 2) -> NDArray[np.float32]:
    """Draw one line of text: coverage in [0, 1], (HEIGHT * scale, W); (HEIGHT * scale, 0) for no text.

    Letters outside ASCII lose their accents, or become "?".
    """
    return _mask(readable(text), scale)


def text_width(text: str, scale: int = 2) -> int:
    """Width of a line of text in pixels."""
    return int(text_mask(text, scale).shape[1])


def fitted(text: str, width: int, scale: int = 2) -> str:
    """Cut a text so that it is no wider than `width` pixels, with an ellipsis where it was cut."""
    text = readable(text)
    if text_width(text, scale) <= width:
        return text
    while text and text_width(text + "...", scale) > width:
        text = text[:-1].rstrip()
    return text + "..." if text else ""


def readable(text: str) -> str:
    """Write a text with the characters of the font."""
    spread = unicodedata.normalize("NFKD", re.sub(r"\s+", " ", text))
    letters = (c for c in spread if not unicodedata.combining(c))
    return "".join(c if c == " " or c in _glyphs() else "?" for c in letters)


@lru_cache(maxsize=512)
def _mask(text: str, scale: int) -> NDArray[np.float32]:
    gap = np.zeros((HEIGHT, 1), dtype=bool)
    columns = [part for c in text for part in (_glyphs().get(c, np.zeros((HEIGHT, SPACE), dtype=bool)), gap)]
    ink = np.concatenate(columns[:-1], axis=1) if columns else gap[:, :0]
    # Corners rounded at four times the size, brought back to `scale` times it by averaging.
    fine = _rounded(_rounded(ink)).repeat(scale, axis=0).repeat(scale, axis=1)
    height, width = HEIGHT * scale, ink.shape[1] * scale
    mask: NDArray[np.float32] = fine.reshape(height, 4, width, 4).mean(axis=(1, 3), dtype=np.float32)
    mask.flags.writeable = False
    return mask


def _rounded(ink: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Double the size, and fill or cut corners where two neighbours agree against the other two (Scale2x)."""
    padded = np.pad(ink, 1)
    up, down, left, right = padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]
    apart = (up != down) & (left != right)
    large = np.empty((2 * ink.shape[0], 2 * ink.shape[1]), dtype=bool)
    for y, vertical in enumerate((up, down)):
        for x, horizontal in enumerate((left, right)):
            large[y::2, x::2] = np.where(apart & (vertical == horizontal), vertical, ink)
    return large


@cache
def _glyphs() -> dict[str, NDArray[np.bool_]]:
    """Character -> (HEIGHT, w) ink."""
    bands = files(__package__).joinpath("font.txt").read_text(encoding="ascii").split("\n\n")[1:]
    glyphs = {}
    for band in bands:
        head, *rows = band.strip("\n").split("\n")
        for character, *ink in zip(head.split(), *(row.split() for row in rows), strict=True):
            glyphs[character] = np.array([list(row) for row in ink]) == "#"
    return glyphs
