"""Text for pictures: Pillow's own font for plain Latin, the system's fonts for all other scripts."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import unicodedata
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from PIL import Image, ImageDraw, ImageFont

if TYPE_CHECKING:
    from collections.abc import Iterable

# At scale 1, in pixels: the font's size, the height of capital letters, and of a line above and below its baseline.
EM, CAPITAL, ABOVE, BELOW = 10, 7, 11, 4
# Where Linux, macOS and Windows keep fonts.
FOLDERS = (
    *("~/.fonts", "~/.local/share/fonts", "/usr/local/share/fonts", "/usr/share/fonts"),
    *("~/Library/Fonts", "/Library/Fonts", "/System/Library/Fonts"),
    *("%LOCALAPPDATA%/Microsoft/Windows/Fonts", "%WINDIR%/Fonts"),
)
# Fonts of coloured emoji hold pictures of one or a few sizes only; these are the usual ones.
PICTURE_SIZES = (109, 136, 128, 160, 96, 64)
# A font file and which of its fonts; BUILT_IN is Pillow's own.
Face = tuple[str, int]
BUILT_IN: Face = ("", 0)


@lru_cache(maxsize=1024)
def text_picture(text: str, colour: tuple[int, int, int], scale: int = 2) -> Image.Image:
    """Write one line on a transparent RGBA picture, (ABOVE + BELOW) * scale pixels high and as wide as the text."""
    height = (ABOVE + BELOW) * scale
    pieces = []
    for part, face in _runs(text):
        font = _font(face, EM * scale)
        zoom = font.size / (EM * scale)
        piece = Image.new("RGBA", (math.ceil(font.getlength(part)), math.ceil(height * zoom)), (*colour, 0))
        pen = ImageDraw.Draw(piece)
        pen.text((0, ABOVE * scale * zoom), part, fill=colour, font=font, anchor="ls", embedded_color=True)
        if zoom != 1:
            piece = piece.resize((math.ceil(piece.width / zoom), height), Image.Resampling.BILINEAR)
        pieces.append(piece)
    return Image.fromarray(np.concatenate([np.asarray(piece) for piece in pieces], axis=1))


def text_width(text: str, scale: int = 2) -> int:
    """Width of a line of text in pixels."""
    return text_picture(text, (0, 0, 0), scale).width


def fitted(text: str, width: int, scale: int = 2) -> str:
    """Cut a text so that it is no wider than `width` pixels, with an ellipsis where it was cut."""
    text = readable(text)
    if text_width(text, scale) <= width:
        return text
    while text and text_width(text + "...", scale) > width:
        text = text[:-1].rstrip()
    return text + "..." if text else ""


def readable(text: str) -> str:
    """Replace the characters that no font has: by letters without accents, or by "?"."""
    return "".join(_nearest(c) for c in unicodedata.normalize("NFC", re.sub(r"\s+", " ", text)))


@cache
def _nearest(character: str) -> str:
    if _face(frozenset(character)):
        return character
    base = "".join(c for c in unicodedata.normalize("NFKD", character) if unicodedata.category(c)[0] != "M")
    return base if _face(frozenset(base)) else "?"


def _runs(text: str) -> list[tuple[str, Face]]:
    """Cut a text into parts with a font each; into one part if some font has all of it."""
    text = readable(text)
    if face := _face(frozenset(text)):
        return [(text, face)]
    runs: list[tuple[str, Face]] = []
    for character in text:
        if runs and _has(runs[-1][1], character):
            runs[-1] = runs[-1][0] + character, runs[-1][1]
        else:
            runs.append((character, _face(frozenset(character)) or BUILT_IN))
    return runs


@cache
def _face(characters: frozenset[str]) -> Face | None:
    """Find a font that has all the characters."""
    faces = chain([BUILT_IN], _system_faces(characters))
    return next((face for face in faces if all(_has(face, c) for c in characters)), None)


def _system_faces(characters: frozenset[str]) -> Iterable[Face]:
    """Fonts that may have the characters: fontconfig's best match, or without fontconfig all fonts."""
    if matcher := shutil.which("fc-match"):
        codes = " ".join(f"{ord(c):x}" for c in sorted(characters))
        call = [matcher, "--format", "%{file}\n%{index}", f"sans:charset={codes}"]
        path, _, index = subprocess.run(call, capture_output=True, text=True, check=False).stdout.rpartition("\n")
        yield from [(path, int(index))] if path else []
    else:
        yield from _all_faces()


@cache
def _all_faces() -> list[Face]:
    """All font files of the system, the plain ones first."""
    folders = (Path(os.path.expandvars(folder)).expanduser() for folder in FOLDERS)
    files = [p for folder in folders for p in folder.rglob("*") if p.suffix.lower() in (".ttf", ".ttc", ".otf")]
    fancy = re.compile("bold|italic|oblique|mono|serif|light|thin|black|condensed", re.IGNORECASE)
    return [(str(file), 0) for file in sorted(files, key=lambda p: (len(fancy.findall(p.name)), p))]


@cache
def _has(face: Face, character: str) -> bool:
    """Whether a font has a character, that is draws it unlike U+FFFF, which no font has."""
    if character.isspace() or unicodedata.category(character) == "Cf" or "\ufe00" <= character <= "\ufe0f":
        return True
    try:
        # With basic layout, as the other would put a missing accent on a dotted circle.
        font = _font(face, 4 * EM, ImageFont.Layout.BASIC)
        return list(font.getmask(character, "RGBA")) != list(font.getmask("\uffff", "RGBA"))
    except (OSError, ValueError):  # ValueError for half of a surrogate pair
        return False


@cache
def _font(face: Face, size: int, layout: ImageFont.Layout | None = None) -> ImageFont.FreeTypeFont:
    """Open a font at a size in pixels, or if it has only pictures at one of their sizes."""
    if face == BUILT_IN:
        return cast("ImageFont.FreeTypeFont", ImageFont.load_default(size))
    for at in (size, *PICTURE_SIZES):
        try:
            return ImageFont.truetype(face[0], at, index=face[1], layout_engine=layout)
        except OSError as error:
            failure = error
    raise failure
