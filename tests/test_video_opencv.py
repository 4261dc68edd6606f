from dataclasses import replace

import numpy as np
import pytest
import torch

from toy_explainer import tiny_explainer
from video_files import make_video
from whytube.data.world import World
from whytube.errors import VideoError
from whytube.explaining import explain
from whytube.video import opencv, probe, read_clip, write_video
from whytube.video import read as reading

pytest.importorskip("cv2")


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    return write_video(tmp_path_factory.mktemp("video") / "clip.mp4", World(size=96).batch("test", [0]).clips[0], 8.0)


@pytest.mark.parametrize("size", [None, (48, 64), (128, 128)])
@pytest.mark.parametrize("sampling", ["uniform", "center"])
def test_a_clip_is_the_one_that_pyav_gives(video, size, sampling):
    mine = opencv.read_clip(video, frames=6, size=size, sampling=sampling, stride=1)
    theirs = read_clip(video, frames=6, size=size, sampling=sampling)
    assert np.array_equal(mine.indices, theirs.indices)
    np.testing.assert_allclose(mine.times, theirs.times, atol=1e-6)
    assert mine.size == theirs.size == (96, 96)
    assert (mine.fps, mine.duration) == pytest.approx((theirs.fps, theirs.duration))
    assert (mine.frames - theirs.frames).abs().mean() < 0.02
    assert (mine.frames - theirs.frames.flip(0)).abs().mean() > 0.02, "red and blue would be exchanged"


def test_it_stands_in_only_where_pyav_is_missing(video, monkeypatch):
    assert not reading.stands_in()
    monkeypatch.setattr(reading, "stands_in", lambda: True)
    assert probe(video) == opencv.probe(video)
    clip = read_clip(video, frames=4, size=(32, 32))
    assert (clip.fps, clip.duration) == (probe(video).fps, probe(video).duration)
    assert clip.frames.shape == (3, 4, 32, 32)
    assert torch.equal(
        clip.frames, opencv.read_clip(video, frames=4, size=(32, 32), sampling="uniform", stride=1).frames
    )


@pytest.mark.parametrize("degrees", [0, 90, -90, 180])
def test_a_video_is_described_as_pyav_describes_it(tmp_path, degrees):
    path = make_video(tmp_path / "turned.mp4", 12, rotation={"degrees": degrees})
    mine, theirs = opencv.probe(path), probe(path)
    assert (mine.fps, mine.duration) == pytest.approx((theirs.fps, theirs.duration))
    assert replace(mine, fps=theirs.fps, duration=theirs.duration) == theirs


def test_an_explanation_knows_the_rate_and_length_of_its_file(video, monkeypatch):
    monkeypatch.setattr(reading, "stands_in", lambda: True)
    found = explain(video, tiny_explainer(), k=1)
    assert (found.fps, found.duration) == pytest.approx((8, 2))


def test_what_is_no_video_is_refused(tmp_path):
    (tmp_path / "text.mp4").write_text("no video")
    with pytest.raises(VideoError, match="not a video that OpenCV can read"):
        opencv.read_clip(tmp_path / "text.mp4", frames=4, size=None)
    with pytest.raises(VideoError, match="not a video that OpenCV can read"):
        opencv.probe(tmp_path / "text.mp4")
    with pytest.raises(VideoError, match="only video files are read"):
        opencv.read_clip(tmp_path, frames=4, size=None)
