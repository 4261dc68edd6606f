"""Fonts made for tests, so that scripts can be tested for which this machine has no font."""

import struct
from io import BytesIO

from PIL import Image


def make_font(path, characters):
    """Write a TrueType font with the characters alone, each a bar of its own height."""
    glyphs = [_bar(50 * n, 900 - 100 * n) for n in range(len(characters) + 1)]
    offsets = [sum(len(g) for g in glyphs[:n]) for n in range(len(glyphs) + 1)]
    tables = {b"glyf": b"".join(glyphs), b"loca": struct.pack(f">{len(offsets)}I", *offsets)}
    return _write(path, characters, tables)


def make_picture_font(path, character, colour, size=109):
    """Write a font like those of coloured emoji: one picture, of one size, in a PNG file."""
    png = BytesIO()
    Image.new("RGB", (size, size), colour).save(png, "png")
    # Image format 17: height, width, bearings, advance, length of the PNG file.
    image = struct.pack(">BBbbBI", size, size, 0, size - 20, size, len(png.getvalue())) + png.getvalue()
    line = struct.pack(">bbBbbbbbbbbb", size - 20, -20, size, *[0] * 9)
    place = struct.pack(">HHI", 1, 1, 8) + struct.pack(">HHI", 1, 17, 4) + struct.pack(">2I", 0, len(image))
    head = struct.pack(">4I", 56, len(place), 1, 0) + 2 * line + struct.pack(">HH4B", 1, 1, size, size, 32, 1)
    tables = {b"CBDT": struct.pack(">I", 0x30000) + image, b"CBLC": struct.pack(">2I", 0x30000, 1) + head + place}
    return _write(path, character, tables)


def _bar(low, high):
    """One contour of four points, each told by its step from the last."""
    steps = (100, 800, 0, -800, low, 0, high - low, 0)
    return struct.pack(">5hHH4B8h", 1, 100, low, 900, high, 3, 0, 1, 1, 1, 1, *steps)


def _write(path, characters, tables):
    """Write the tables that every font has, and those given, behind their directory."""
    count = len(characters) + 1
    order = sorted((ord(c), n) for n, c in enumerate(characters, 1))
    groups = b"".join(struct.pack(">3I", code, code, n) for code, n in order)
    cmap = struct.pack(">2H2HI", 0, 1, 3, 10, 12) + struct.pack(">2H3I", 12, 0, 16 + len(groups), 0, count - 1) + groups
    tables |= {
        b"cmap": cmap,
        b"head": struct.pack(">4IHH16x4hHH3h", 0x10000, 0, 0, 0x5F0F3CF5, 0, 1000, 0, 0, 1000, 1000, 0, 8, 2, 1, 0),
        b"hhea": struct.pack(">I3h24xH", 0x10000, 900, -200, 0, count),
        b"hmtx": struct.pack(">Hh", 1000, 0) * count,
        b"maxp": struct.pack(">IH26x", 0x10000, count),
    }
    at = 12 + 16 * len(tables)
    directory, body = struct.pack(">IHHHH", 0x10000, len(tables), 0, 0, 0), b""
    for tag, data in sorted(tables.items()):
        directory += tag + struct.pack(">3I", 0, at + len(body), len(data))
        body += data + bytes(-len(data) % 4)
    path.write_bytes(directory + body)
    return path
