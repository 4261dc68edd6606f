"""What becomes of a received file: the frames that are played, and those that the classifier sees."""

from fractions import Fraction

import numpy as np
import pytest

from video_files import make_video, number
from whytube.errors import VideoError
from whytube.video import probe, read_clip
from whytube.web import decoding
from whytube.web.intake import EXAMPLES

LIMITS = {"seconds": 60.0, "frames": 1000, "pixels": 1 << 20}


def prepare(path, *, clip=(8, (32, 40)), **limits):
    return decoding.prepare_video(str(path.parent), path.name, "shown.mp4", clip, {**LIMITS, **limits})


def test_frame_i_is_played_at_i_over_fps(tmp_path):
    """Also of a video whose frames come at uneven times."""
    times = np.cumsum(np.random.default_rng(0).integers(1, 9, 30)).tolist()
    found = prepare(make_video(tmp_path / "original.mkv", 30, pts=times))
    played = read_clip(tmp_path / "play.mp4", frames=30)
    assert [number(played.frames[:, t]) for t in range(30)] == list(range(30))
    assert np.allclose(played.times, np.arange(30) / found["fps"], atol=1e-6)
    assert found["frames"] == probe(tmp_path / "play.mp4").frames == 30
    assert found["duration"] == pytest.approx(30 / found["fps"])


def test_the_classifier_sees_what_the_command_line_shows_it(tmp_path):
    video = make_video(tmp_path / "original.mp4", 23, height=70, width=90, rotation={"degrees": 90})
    prepare(video)
    ours, theirs = decoding.load_clip(tmp_path / "clip-8-32x40.npz"), read_clip(video, frames=8, size=(32, 40))
    assert ours.frames.equal(theirs.frames)
    assert (ours.indices == theirs.indices).all()
    assert (ours.times == theirs.times).all()
    assert (ours.size, ours.fps, ours.duration) == (theirs.size, theirs.fps, theirs.duration)
    decoding.prepare_clip(str(tmp_path), video.name, (4, (16, 16)), 1 << 20)
    assert decoding.load_clip(tmp_path / "clip-4-16x16.npz").frames.shape == (3, 4, 16, 16)


def test_sizes_are_the_videos_own_and_what_is_played_fits_a_browser(tmp_path):
    found = prepare(make_video(tmp_path / "original.mp4", 2, height=101, width=1601))
    assert (found["height"], found["width"]) == (101, 1601)
    height, width = probe(tmp_path / "play.mp4").size
    assert (height % 2, width % 2, width) == (0, 0, decoding.LONGEST_SIDE)
    assert height == pytest.approx(101 * width / 1601, abs=1)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"frames": 10}, "has 20 frames; expected at most 10"),
        ({"seconds": 0.5}, "seconds; expected at most 0.5"),
        ({"pixels": 1000}, "expected at most 1000 pixels"),
    ],
)
def test_limits(tmp_path, limits, said):
    with pytest.raises(VideoError, match=said):
        prepare(make_video(tmp_path / "original.mp4", 20), **limits)
    assert not (tmp_path / "play.mp4").exists()


def test_errors_do_not_tell_where_things_lie(tmp_path):
    (tmp_path / "original.mp4").write_bytes(b"no video")
    with pytest.raises(VideoError) as told:
        prepare(tmp_path / "original.mp4")
    assert str(tmp_path) not in str(told.value)
    assert str(told.value).startswith("shown.mp4 is not a video")


def test_odd_rates_become_rates_that_browsers_play(tmp_path):
    slow = prepare(make_video(tmp_path / "original.mp4", 4, rate=Fraction(1, 4)))
    assert slow["fps"] == decoding.SLOWEST
    assert slow["frames"] == 4


def test_examples_are_what_they_are_called(tmp_path):
    from whytube.data.world import World

    world = World(size=decoding.EXAMPLE_SIZE)
    assert {name: world.classes[world.scene("test", index).label] for name, index in EXAMPLES.items()} == {
        name: name for name in EXAMPLES
    }
    decoding.render_example(str(tmp_path / "example.mp4"), EXAMPLES["gavotte"])
    assert probe(tmp_path / "example.mp4").frames == world.frames
