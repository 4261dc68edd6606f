from dataclasses import replace

import numpy as np
import pytest
import torch

from explanation_examples import FRAMES, clip, explanation, reason
from whytube.errors import ArgumentError
from whytube.report import contact_sheet, overlay_frames, overlay_video
from whytube.report.draw import Canvas, boxes_between, reason_colour
from whytube.report.overlay import picture_size
from whytube.tubes import Tube
from whytube.video import probe, read_clip, write_video


def has_colour(picture: np.ndarray, rank: int) -> bool:
    return bool((np.abs(picture.astype(int) - reason_colour(rank)).max(axis=-1) < 12).sum() > 50)


def body(picture: np.ndarray, width: int) -> np.ndarray:
    """Cut the bars above and below away."""
    return picture[40:-40, :width]


def test_boxes_are_interpolated_between_sampled_frames_and_held_at_the_ends():
    tube = Tube([4, 8], [[0, 0, 10, 10], [4, 0, 14, 10]])
    boxes = boxes_between(tube, range(20), sampled=[0, 4, 8, 12, 16])
    assert boxes[4:9, 0].tolist() == [0, 1, 2, 3, 4]
    assert [bool(box.any()) for box in boxes] == [False] * 3 + [True] * 8 + [False] * 9
    np.testing.assert_array_equal(boxes[3], boxes[4])
    np.testing.assert_array_equal(boxes[10], boxes[8])


def test_boxes_of_a_centre_clip_do_not_reach_past_it():
    tube = Tube([50, 52], [[0, 0, 1, 1]] * 2)
    boxes = boxes_between(tube, range(100), sampled=[50, 52])
    assert np.flatnonzero(boxes.any(axis=1)).tolist() == [49, 50, 51, 52, 53]
    assert not boxes_between(Tube([], []), range(5), sampled=[0, 2]).any()


def test_a_gap_in_a_tube_stays_a_gap():
    tube = Tube([0, 8], [[0, 0, 1, 1]] * 2)
    assert not boxes_between(tube, [4], sampled=[0, 4, 8]).any()


def test_frames_show_each_tube_where_and_when_it_is():
    why = explanation(reason("with cat"), reason("spinning", start=3, left=28))
    pictures = list(overlay_frames(clip(), why))
    assert len(pictures) == FRAMES
    assert {p.shape for p in pictures} == {pictures[0].shape}
    inner = [body(p, pictures[0].shape[1]) for p in pictures]
    assert all(has_colour(p, 0) for p in inner)
    assert [has_colour(p, 1) for p in inner] == [False] * 3 + [True] * 3


def test_boxes_are_scaled_to_the_picture():
    canvas = Canvas(explanation(reason("with cat")), (96, 192))
    np.testing.assert_allclose(canvas.boxes([0])[0, 0], [8 * 4, 20 * 2, 24 * 4, 32 * 2])


def test_words_in_one_place_do_not_cover_each_other():
    why = explanation(*(reason(word) for word in ("with cat", "spinning", "striped")))
    picture = next(iter(overlay_frames(clip(), why)))
    assert all(has_colour(body(picture, picture.shape[1]), rank) for rank in range(3))


def test_clip_becomes_a_video_at_its_own_pace(tmp_path):
    path = overlay_video(clip(), explanation(reason("with cat")), tmp_path / "o.mp4")
    info = probe(path)
    assert info.frames == FRAMES
    assert info.fps == pytest.approx(12.5)
    assert min(info.size) >= 336
    slow = overlay_video(clip(), explanation(), tmp_path / "s.mp4", slow=2.5, scale=2)
    assert probe(slow).fps == pytest.approx(5)
    assert probe(slow).size[1] == 96


def test_all_frames_of_a_source_are_shown(tmp_path):
    source = write_video(tmp_path / "a.mp4", torch.full((3, 2 * FRAMES, 48, 48), 0.5), 25)
    why = explanation(reason("with cat", start=2))
    path = overlay_video(source, why, tmp_path / "o.mp4")
    assert probe(path).frames == 2 * FRAMES
    assert probe(path).fps == pytest.approx(25)
    shown = read_clip(path, frames=2 * FRAMES).frames.permute(1, 2, 3, 0).mul(255).byte().numpy()
    orange = [(np.abs(body(p, 999).astype(int) - reason_colour(0)).max(axis=-1) < 60).sum() > 50 for p in shown]
    assert orange == [False] * 4 + [True] * 8


def test_an_answer_that_nothing_explains_shows_no_boxes_and_says_so(tmp_path):
    why = explanation(reason("with cat", moved=False), reason("spinning", moved=False))
    assert why.sentence.endswith("no region explains this")
    named = explanation(reason("with cat"))
    empty = list(overlay_frames(clip(), explanation()))
    for style in ("boxes", "heat"):
        for picture, bare in zip(overlay_frames(clip(), why, style=style), empty, strict=True):
            np.testing.assert_array_equal(picture, bare, "as if there were no reasons")
    first = next(iter(overlay_frames(clip(), named)))
    assert len(empty[0]) > 384 + (len(first) - 384) // 2, "a line more above the picture"
    assert not any(has_colour(picture, rank) for picture in empty for rank in (0, 1))
    sheet = contact_sheet(clip(), why, columns=3, scale=4)
    assert not has_colour(sheet, 0)
    np.testing.assert_array_equal(sheet, contact_sheet(clip(), explanation(), columns=3, scale=4))


def test_only_reasons_that_the_sentence_names_are_drawn():
    why = explanation(reason("still", moved=False), reason("with cat", left=28))
    picture = body(next(iter(overlay_frames(clip(), why))), 999)
    assert not has_colour(picture, 0)
    assert has_colour(picture, 1), "in the colour of its rank, as in the report"


def test_a_guess_is_called_one_above_the_picture():
    sure = explanation(reason("with cat"))
    unsure = replace(sure, probabilities={"waltz": 0.2, "polka": 0.16})
    other = replace(sure, probabilities={"waltz": 0.1, "polka": 0.2, "tango": 0.16})
    top = [next(iter(overlay_frames(clip(), why)))[:40] for why in (sure, unsure, other)]
    assert (top[0] != top[1]).any()
    np.testing.assert_array_equal(top[0], top[2])


def test_heat_is_strong_where_masking_moved_the_decision():
    picture = next(iter(overlay_frames(clip(), explanation(reason("with cat")), style="heat", scale=8)))
    head = len(picture) - len(next(iter(overlay_frames(clip(), explanation(), scale=8)))) // 1
    inside = picture[-(384 - 26 * 8) - 40 : -(384 - 26 * 8) - 20, 16 * 8].astype(int)
    assert (inside[:, 0] > inside[:, 2] + 60).all(), "red"
    assert not has_colour(body(picture, 999), 0), "and no box"
    assert head <= 64, "two lines: what the colours are, and what masking did"
    custom = np.zeros((FRAMES, 4, 4), np.float32)
    custom[:, :, 2:] = -1
    picture = next(iter(overlay_frames(clip(), explanation(), heat=custom, scale=8)))
    assert (picture[200, 350] != picture[200, 30]).any()
    assert picture[200, 350, 2] > picture[200, 350, 0], "blue where it helped A"
    with pytest.raises(ArgumentError, match=r"`heat` must be of shape \(6, H, W\)"):
        overlay_frames(clip(), explanation(), heat=custom[:2])
    with pytest.raises(ArgumentError, match="`style` must be one of 'boxes', 'heat', got 'arrows'"):
        overlay_frames(clip(), explanation(), style="arrows")


def test_the_ending_decides_what_is_written(tmp_path):
    source = write_video(tmp_path / "a.mp4", torch.full((3, 2 * FRAMES, 48, 48), 0.5), 25)
    why = explanation(reason("with cat", start=3))
    still = overlay_video(source, why, tmp_path / "o.png")
    assert still.read_bytes()[:4] == b"\x89PNG"
    shown = read_clip(still, frames=1).frames[:, 0].permute(1, 2, 0).mul(255).byte().numpy()
    assert has_colour(body(shown, 999), 0), "of the middle of the tube, not of the first frame"
    moving = overlay_video(source, why, tmp_path / "o.GIF")
    assert moving.read_bytes()[:6] == b"GIF89a"
    assert probe(moving).frames == FRAMES, "about 12 frames per second"
    with pytest.raises(ArgumentError, match=r"ends in \.mp4, \.gif or \.png, got o\.avi"):
        overlay_video(source, why, tmp_path / "o.avi")


def test_a_gif_of_a_long_or_large_video_is_bounded(tmp_path):
    source = write_video(tmp_path / "a.mp4", torch.full((3, 1300, 16, 16), 0.5), 25, preset="ultrafast")
    why = replace(explanation(reason("with cat")), size=(16, 16))
    assert probe(overlay_video(source, why, tmp_path / "o.gif", scale=2)).frames <= 96
    wide = write_video(tmp_path / "b.mp4", torch.full((3, 4, 720, 1280), 0.5), 25, preset="ultrafast")
    assert max(probe(overlay_video(wide, replace(why, size=(720, 1280)), tmp_path / "b.gif")).size) == 480


def test_the_array_that_was_explained_is_drawn_on():
    why = explanation(reason("with cat"))
    array = (np.arange(12, dtype=np.uint8)[:, None, None, None] * 10 + np.zeros((12, 48, 48, 3), np.uint8)).copy()
    pictures = list(overlay_frames(array, why, scale=2))
    assert len(pictures) == FRAMES
    assert [int(p[-60, 90, 0]) for p in pictures] == [20 * t for t in range(FRAMES)], "the frames that were sampled"


def test_contact_sheet_of_a_file_is_of_the_frames_that_were_explained(tmp_path):
    source = write_video(tmp_path / "a.mp4", torch.full((3, 2 * FRAMES, 48, 48), 0.5), 25)
    indices = tuple(read_clip(source, frames=FRAMES).indices.tolist())
    seen = replace(reason("with cat"), tube=Tube(indices, [[8, 20, 24, 32]] * FRAMES))
    why = replace(explanation(seen), frames=indices)
    assert has_colour(contact_sheet(source, why, columns=2), 0)
    with pytest.raises(ArgumentError, match=r"with other frames\. Explain it again"):
        contact_sheet(source, replace(why, frames=tuple(range(FRAMES))))


def test_contact_sheet_stands_frames_side_by_side():
    sheet = contact_sheet(clip(), explanation(reason("with cat")), columns=3, scale=4)
    assert sheet.dtype == np.uint8
    assert sheet.shape[1] >= 3 * 192
    assert all(has_colour(sheet[:, start : start + 192], 0) for start in (0, 196, 392))
    assert contact_sheet(clip(), explanation(), columns=50).shape[1] > FRAMES * 360


@pytest.mark.parametrize("names", [("a" * 60, "b" * 60), ("", "?"), ("Ünïcode", "踊り" * 9)])
def test_any_names_fit(names):
    why = explanation(reason(names[0] * 2), positive=names[0] or "x", negative=names[1])
    assert len({p.shape for p in overlay_frames(clip(), why)}) == 1


def test_sizes_are_legible_and_even():
    assert picture_size((112, 112), None) == (448, 448)
    assert picture_size((64, 64), None) == (384, 384)
    assert picture_size((1080, 1920), None) == (720, 1280)
    assert picture_size((480, 641), None) == (480, 640)
    assert picture_size((100, 100), 1.5) == (150, 150)
    assert picture_size((10, 4000), None) == (4, 1280)


def test_another_clip_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match=r"`video` must be of shape \(3, 6, H, W\)"):
        overlay_frames(clip()[:, :4], explanation())
    with pytest.raises(ArgumentError, match="`slow`"):
        overlay_video(clip(), explanation(), tmp_path / "o.mp4", slow=0)
    with pytest.raises(ArgumentError, match="`scale`"):
        overlay_frames(clip(), explanation(), scale=-1)


def test_pictures_say_what_limits_the_answer():
    weak = reason("with cat")
    weak = replace(weak, evidence=tuple(replace(e, positive_after=0.8, negative_after=0.1) for e in weak.evidence))
    assert explanation(reason("with cat")).remarks == ()
    assert explanation(weak).remarks == ("in small part",)
    assert explanation(replace(weak, evidence=())).remarks == ("not checked",)
    assert explanation(reason("with cat", moved=False)).remarks == ("no region explains this",)
    clip = torch.rand(3, len(explanation().frames), 48, 48)
    high = contact_sheet(clip, explanation(reason("with cat"))).shape[0]
    assert contact_sheet(clip, explanation(weak)).shape[0] > high, "a line more above the picture"
    assert contact_sheet(clip, explanation(reason("with cat")), style="heat").shape[0] > high, "it is named as heat"
