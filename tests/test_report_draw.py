import string

import numpy as np
import pytest

from whytube.report.draw import BLACK, PALETTE, WHITE, Colour, chip_size, draw_box, draw_chip, draw_text, fill_box
from whytube.report.font import HEIGHT, fitted, readable, text_mask, text_width

RED = Colour(255, 0, 0)


def frame(height: int = 60, width: int = 80) -> np.ndarray:
    return np.full((height, width, 3), 128, dtype=np.uint8)


def test_every_printable_character_has_its_own_glyph():
    characters = string.ascii_letters + string.digits + string.punctuation
    masks = {text_mask(c, 1).tobytes() + bytes([text_width(c, 1)]) for c in characters}
    assert len(masks) == len(characters)
    assert all(text_mask(c, 2).max() == 1 for c in characters)


@pytest.mark.parametrize("scale", [1, 2, 3, 5])
def test_text_grows_with_its_scale(scale):
    mask = text_mask("Why A, not B?", scale)
    assert mask.shape == (HEIGHT * scale, text_width("Why A, not B?", 1) * scale)
    assert text_mask("", scale).shape == (HEIGHT * scale, 0)


def test_what_the_font_lacks_is_replaced():
    assert readable("Tänzer\n  é 踊") == "Tanzer e ?"
    assert fitted("with mushroom", 500) == "with mushroom"
    cut = fitted("with mushroom", 60)
    assert cut.endswith("...")
    assert text_width(cut) <= 60
    assert fitted("mushroom", 3) == ""


def test_box_is_an_outline_inside_its_edges():
    drawn = frame()
    draw_box(drawn, (20, 10, 60, 50), RED, thickness=4)
    assert (drawn[30, 20:24] == RED).all()
    assert (drawn[30, 56:60] == RED).all()
    assert (drawn[10:14, 40] == RED).all()
    assert (drawn[20:40, 30:50] == 128).all()
    assert (drawn[:, :17] == 128).all()
    assert (drawn[30, 19] < 128).all(), "a dark line sets the colour off"


@pytest.mark.parametrize("box", [(-30, -30, 200, 200), (-30, -30, -5, -5), (70, 50, 300, 300), (10, 10, 10, 10)])
def test_boxes_may_lie_outside_or_have_no_area(box):
    drawn = frame()
    draw_box(drawn, box, RED)
    fill_box(drawn, box, RED, radius=4)
    draw_chip(drawn, "word", (int(box[0]), int(box[1])), RED)
    draw_text(drawn, "word", (int(box[2]), int(box[3])), RED)
    assert drawn.shape == (60, 80, 3)


def test_fill_blends_and_rounds():
    drawn = frame()
    fill_box(drawn, (10, 10, 30, 30), BLACK, radius=8, alpha=0.5)
    assert (drawn[20, 20] == 64).all()
    assert (drawn[10, 10] == 128).all()


def test_chip_is_of_its_colour_with_readable_ink():
    drawn = frame(60, 120)
    height, width = chip_size("cat")
    draw_chip(drawn, "cat", (10, 10), PALETTE[0])
    inside = drawn[10 : 10 + height, 10 : 10 + width].reshape(-1, 3)
    assert (inside == PALETTE[0]).all(axis=1).mean() > 0.4
    assert (inside == PALETTE[0].ink).all(axis=1).any()


def test_ink_contrasts():
    assert Colour(250, 240, 90).ink == BLACK
    assert Colour(20, 20, 120).ink == WHITE
    assert Colour(1, 160, 255).css == "#01a0ff"
    assert len(set(PALETTE)) == len(PALETTE)
