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
