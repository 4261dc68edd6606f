import shutil
import string
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, features

from explanation_examples import explanation, reason
from tiny_fonts import make_font, make_picture_font
from whytube.report import draw, font
from whytube.report.draw import (
    BLACK,
    PALETTE,
    WHITE,
    Canvas,
    Colour,
    chip_size,
    draw_box,
    draw_chip,
    draw_text,
    fill_box,
)
from whytube.report.font import fitted, readable, text_picture, text_width

RED = Colour(255, 0, 0)
HEIGHT = font.ABOVE + font.BELOW
CACHES = (font.text_picture, font._nearest, font._face, font._all_faces)


def frame(height: int = 60, width: int = 80) -> Image.Image:
    return Image.new("RGB", (width, height), (128, 128, 128))


def ink(text: str, scale: int = 2) -> np.ndarray:
    """How much of each pixel the text covers, 0 to 255."""
    return np.asarray(text_picture(text, BLACK, scale))[..., 3]


def differ(*texts: str) -> bool:
    pictures = [ink(text) for text in texts]
    return all(p.max() > 200 for p in pictures) and len({(p.shape, p.tobytes()) for p in pictures}) == len(texts)


@pytest.fixture
def only_fonts(tmp_path, monkeypatch):
    """Pretend that fontconfig is missing and the only fonts are those in this folder, at first none."""
    monkeypatch.setattr(font, "FOLDERS", (str(tmp_path),))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    for cached in CACHES:
        cached.cache_clear()
    yield tmp_path
    for cached in CACHES:
        cached.cache_clear()


def system_has(character: str) -> bool:
    """Ask fontconfig, in another way than the code does."""
    if not shutil.which("fc-list"):
        return False
    call = ["fc-list", f":charset={ord(character):x}", "file"]
    return bool(subprocess.run(call, capture_output=True, text=True, check=True).stdout)


class TestLatin:
    def test_every_printable_character_has_its_own_glyph(self, only_fonts):
        assert differ(*string.ascii_letters, *string.digits, *string.punctuation)

    @pytest.mark.parametrize("scale", [1, 2, 3, 5])
    def test_text_grows_with_its_scale(self, scale):
        picture = text_picture("Why A, not B?", BLACK, scale)
        assert picture.height == HEIGHT * scale
        assert picture.width == text_width("Why A, not B?", scale)
        assert picture.width / scale == pytest.approx(text_width("Why A, not B?", 10) / 10, rel=0.1)
        assert text_picture("", BLACK, scale).size == (0, HEIGHT * scale)
        capital = np.flatnonzero(ink("H", scale).max(axis=1) > 127)
        assert capital[-1] + 1 == font.ABOVE * scale, "letters stand on the baseline"
        assert len(capital) == pytest.approx(font.CAPITAL * scale, abs=1)

    def test_long_text_is_cut(self):
        assert fitted("with mushroom", 500) == "with mushroom"
        cut = fitted("with mushroom", 60)
        assert cut.endswith("...")
        assert text_width(cut) <= 60
        assert fitted("mushroom", 3) == ""

    def test_accents_and_cyrillic_differ(self):
        assert differ("é", "ж")

    def test_accents_and_cyrillic_differ_without_fonts(self, only_fonts):
        assert differ("é", "ж")


class TestOtherScripts:
    def test_what_no_font_has_is_replaced(self, only_fonts):
        assert readable("Tänzer\n  é 踊 x\u0302 नृ \ud800 \0") == "Tanzer e ? x ? ? ?"
        assert ink("踊").tobytes() == ink("?").tobytes()

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("é", "e"),
            ("ж", "ш"),
            ("ψ", "φ"),
            ("跳", "跑"),
            ("び", "ひ"),
            ("한", "국"),
            ("ش", "س"),
            ("न", "त"),
            ("💃", "😀"),
        ],
    )
    def test_characters_of_the_systems_fonts_differ(self, one, other):
        if not (system_has(one) and system_has(other)):
            pytest.skip(f"no font here has {one} and {other}")
        assert readable(one) == one
        assert differ(one, other, "?")

    @pytest.mark.skipif(not features.check("raqm"), reason="this Pillow cannot shape text")
    def test_arabic_is_shaped_and_runs_from_right_to_left(self):
        if not system_has("ش"):
            pytest.skip("no font here has Arabic")
        left, right = np.array_split(ink("رش").sum(axis=0), 2)
        assert left.sum() > right.sum(), "the small letter comes first and stands on the right"
        assert text_width("ششش") < 3 * text_width("ش"), "joined letters are narrower"

    def test_a_font_is_found_without_fontconfig(self, only_fonts):
        make_font(only_fonts / "Han.ttf", "跳跑")
        (only_fonts / "broken.ttf").write_bytes(b"no font")
        assert readable("跳 ä 踊") == "跳 a ?"
        assert differ("跳", "跑", "?")

    def test_one_font_is_used_for_a_text_if_it_has_all(self, only_fonts):
        make_font(only_fonts / "a.ttf", "跳")
        both = make_font(only_fonts / "b.ttf", "跳ab ")
        assert font._runs("ab 跳") == [("ab 跳", (str(both), 0))]

    def test_fonts_are_mixed_where_none_has_all(self, only_fonts):
        han = make_font(only_fonts / "Han.ttf", "跳")
        assert font._runs("long 跳 jump") == [("long ", font.BUILT_IN), ("跳 ", (str(han), 0)), ("jump", font.BUILT_IN)]
        assert text_width("long 跳 jump") == pytest.approx(text_width("long jump") + text_width("跳 "), abs=4)

    def test_plain_faces_go_before_fancy_ones(self, only_fonts):
        for name in ("A-Bold.ttf", "B.ttf", "A-BoldItalic.otf"):
            make_font(only_fonts / name, "跳")
        assert [face[0].rpartition("/")[2] for face in font._all_faces()] == ["B.ttf", "A-Bold.ttf", "A-BoldItalic.otf"]

    def test_coloured_emoji_of_one_size_are_scaled_and_keep_their_colours(self, only_fonts):
        make_picture_font(only_fonts / "Emoji.ttf", "💃", (10, 200, 30))
        pixels = np.asarray(text_picture("💃", WHITE, 2))
        assert pixels.shape == (HEIGHT * 2, 20, 4)
        solid = pixels[..., 3] == 255
        assert solid[:, 10].sum() == pytest.approx(20, abs=2)
        assert np.abs(pixels[solid][:, :3].astype(int) - (10, 200, 30)).max() <= 2


def test_box_is_an_outline_inside_its_edges():
    picture = frame()
    draw_box(picture, (20, 10, 60, 50), RED, thickness=4)
    drawn = np.asarray(picture)
    assert (drawn[30, 20:24] == RED).all()
    assert (drawn[30, 56:60] == RED).all()
    assert (drawn[10:14, 40] == RED).all()
    assert (drawn[46:50, 40] == RED).all()
    assert (drawn[20:40, 30:50] == 128).all()
    assert (drawn[:, :17] == 128).all()
    assert (drawn[10, 20] != RED).any(), "corners are round"
    assert (drawn[30, 19] < 128).all(), "a dark line sets the colour off"
    assert (drawn[30, 24] < 128).all()


def test_edges_between_pixels_are_blended():
    picture = frame()
    fill_box(picture, (10.5, 10, 30, 30.25), BLACK)
    drawn = np.asarray(picture)[..., 0]
    assert drawn[20, 9:12].tolist() == [128, 64, 0]
    assert drawn[29:32, 20].tolist() == [0, 96, 128]


@pytest.mark.parametrize("box", [(-30, -30, 200, 200), (-30, -30, -5, -5), (70, 50, 300, 300), (10, 10, 10, 10)])
def test_boxes_may_lie_outside_or_have_no_area(box):
    picture = frame()
    draw_box(picture, box, RED)
    fill_box(picture, box, RED, radius=4)
    draw_chip(picture, "word", (int(box[0]), int(box[1])), RED)
    draw_text(picture, "word", (int(box[2]), int(box[3])), RED)
    assert picture.size == (80, 60)


def test_fill_blends_and_rounds():
    picture = frame()
    fill_box(picture, (10, 10, 30, 30), BLACK, radius=8, alpha=0.5)
    drawn = np.asarray(picture)
    assert (drawn[20, 20] == 64).all()
    assert (drawn[10, 10] == 128).all()


def test_chip_is_of_its_colour_with_readable_ink():
    picture = frame(60, 120)
    height, width = chip_size("cat")
    draw_chip(picture, "cat", (10, 10), PALETTE[0])
    inside = np.asarray(picture)[10 : 10 + height, 10 : 10 + width].reshape(-1, 3)
    assert (inside == PALETTE[0]).all(axis=1).mean() > 0.4
    assert (inside == PALETTE[0].ink).all(axis=1).any()


def test_ink_contrasts():
    assert Colour(250, 240, 90).ink == BLACK
    assert Colour(20, 20, 120).ink == WHITE
    assert Colour(1, 160, 255).css == "#01a0ff"
    assert len(set(PALETTE)) == len(PALETTE)


def test_labels_say_how_well_the_word_fits_and_the_header_what_masking_did(monkeypatch):
    written = []
    monkeypatch.setattr(draw, "draw_chip", lambda picture, text, *rest, **more: written.append(text))
    monkeypatch.setattr(draw, "draw_text", lambda picture, text, at, *rest, **more: written.append(text) or at[0])
    canvas = Canvas(explanation(replace(reason("with cat"), fit=0.83)), (480, 640))
    canvas.draw_tubes(Image.new("RGB", (640, 480)), canvas.boxes([0])[:, 0])
    assert written == ["with cat (fits 83 %)"]
    canvas.framed(Image.new("RGB", (640, 480)))
    assert written[-1] == "with cat masked: waltz 90 to 30 %"
