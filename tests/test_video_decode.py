"""Decoding: jumps, files that are damaged or no videos, and real files."""

from pathlib import Path

import numpy as np
import pytest

from video_files import drop_avi_frame, make_audio, make_video, numbers
from whytube.errors import VideoError
from whytube.video import iter_windows, probe, read_clip
from whytube.video.decode import ContainerSource

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
REAL = sorted(DATA.glob("jhmdb/clips/kick_ball/*.mp4"))[:3] + sorted(DATA.glob("ucf101_24/videos/*/*.avi"))[::5]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return make_video(tmp_path_factory.mktemp("plain") / "plain.mp4")


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    return make_video(tmp_path_factory.mktemp("long") / "long.mp4", 700, gop=30)


class TestSeeking:
    def test_jumps_to_the_right_frames(self, long):
        clip = read_clip(long, frames=5)
        assert clip.indices.tolist() == [70, 210, 350, 490, 630]
        assert numbers(clip) == [i % 50 for i in clip.indices]
        assert clip.times == pytest.approx(clip.indices / 25)
        wanted = [0, 3, 299, 300, 301, 420, 699]
        source = ContainerSource(long)
        jumped = [(s.index, s.time, s.picture.pts) for s in source._read_by_seeking(wanted)]
        in_order = [(s.index, s.time, s.picture.pts) for s in source._read_in_order(wanted)]
        assert jumped == in_order

    def test_decodes_less_than_everything(self, long, monkeypatch):
        decoded = []
        pictures = ContainerSource._pictures

        def counted(self, *args):
            for one in pictures(self, *args):
                decoded.append(one.pts)
                yield one

        monkeypatch.setattr(ContainerSource, "_pictures", counted)
        read_clip(long, frames=2, sampling="center")
        assert len(decoded) <= 60

    def test_falls_back_to_decoding_in_order(self, long, monkeypatch):
        monkeypatch.setattr(ContainerSource, "_advance", lambda self, pictures, position, target: (None, position))
        clip = read_clip(long, frames=3)
        assert numbers(clip) == [i % 50 for i in clip.indices]


class TestDamage:
    def cut(self, path, share):
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * share)])
        return path

    @pytest.mark.parametrize("suffix", [".mp4", ".avi", ".mkv"])
    def test_truncated(self, tmp_path, suffix):
        codec = "mjpeg" if suffix == ".avi" else "libx264"
        options = {"movflags": "+faststart"} if suffix == ".mp4" else {}
        path = self.cut(make_video(tmp_path / f"cut{suffix}", 100, codec=codec, **options), 0.6)
        for action in (read_clip, probe, lambda p: list(iter_windows(p))):
            with pytest.raises(VideoError, match=r"damaged.*`salvage=True`"):
                action(path)
        clip = read_clip(path, frames=4, salvage=True)
        assert 20 < clip.indices[-1] < 80
        assert numbers(clip) == [i % 50 for i in clip.indices]
        assert len(list(iter_windows(path, frames=8, salvage=True))) >= 4
        assert 20 < probe(path, salvage=True).frames < 80

    def test_without_its_index_an_mp4_cannot_be_read(self, tmp_path):
        path = self.cut(make_video(tmp_path / "cut.mp4", 50), 0.5)
        for salvage in (False, True):
            with pytest.raises(VideoError, match="not a video that can be read"):
                read_clip(path, salvage=salvage)

    def test_a_webm_that_ends_before_it_said(self, tmp_path):
        path = self.cut(make_video(tmp_path / "cut.webm", 50, codec="libvpx"), 0.45)
        with pytest.raises(VideoError, match=r"it announces 2\.00 s and ends after 0\.\d+ s.*`salvage=True`"):
            read_clip(path)
        assert 0 < probe(path, salvage=True).frames < 40

    @pytest.mark.parametrize(
        "settings",
        [
            {"pts": [0, 1, 2, 3, 4, 100, 101, 400]},
            {"pts": [0, 1, 2, 3, 4, 5, 6, 150]},
            {"pts": range(50, 58)},
            {"live": "1"},
            {"sound": 3.0},
        ],
    )
    @pytest.mark.parametrize(("suffix", "codec"), [(".webm", "libvpx"), (".mkv", "libx264")])
    def test_a_whole_one_is_not_refused(self, tmp_path, suffix, codec, settings):
        assert probe(make_video(tmp_path / f"whole{suffix}", 8, codec=codec, **settings)).frames == 8

    def test_salvage_is_not_advised_where_nothing_decodes(self, tmp_path):
        path = make_video(tmp_path / "zeros.mkv", 10)
        data = path.read_bytes()
        first = data.index(b"\x1f\x43\xb6\x75") + 40
        path.write_bytes(data[:first] + bytes(len(data) - first))
        with pytest.raises(VideoError) as caught:
            read_clip(path)
        assert "`salvage" not in str(caught.value)
        with pytest.raises(VideoError):
            read_clip(path, salvage=True)

    def test_overwritten_in_the_middle(self, tmp_path):
        path = make_video(tmp_path / "hit.mkv", 60, codec="libx264", gop=10)
        data = bytearray(path.read_bytes())
        middle = slice(len(data) // 2, len(data) // 2 + len(data) // 10)
        data[middle] = np.random.default_rng(0).bytes(middle.stop - middle.start)
        path.write_bytes(data)
        with pytest.raises(VideoError, match=r"damaged.*`salvage=True`"):
            read_clip(path, frames=60)
        clip = read_clip(path, frames=8, salvage=True)
        assert clip.frames.shape[1] == 8

    def test_no_such_file(self, tmp_path):
        with pytest.raises(VideoError, match="no file or folder"):
            read_clip(tmp_path / "nothing.mp4")

    def test_not_a_video(self, tmp_path):
        (tmp_path / "text.mp4").write_text("hello " * 500)
        with pytest.raises(VideoError, match=r"not a video that can be read.*convert it"):
            read_clip(tmp_path / "text.mp4")
        (tmp_path / "empty.mp4").touch()
        with pytest.raises(VideoError, match="empty file"):
            read_clip(tmp_path / "empty.mp4")

    def test_text_and_lists_of_files_are_no_videos(self, plain, tmp_path):
        (tmp_path / "notes.txt").write_text("hello\n" * 500)
        (tmp_path / "list.ffconcat").write_text(f"ffconcat version 1.0\nfile '{plain}'\n")
        for name in ("notes.txt", "list.ffconcat"):
            with pytest.raises(VideoError, match="is not a video"):
                read_clip(tmp_path / name)

    def test_an_avi_that_leaves_out_repeated_frames_is_whole(self, tmp_path):
        clip = read_clip(drop_avi_frame(make_video(tmp_path / "drop.avi", 10, codec="mjpeg"), 4), frames=9)
        assert numbers(clip) == [0, 1, 2, 3, 5, 6, 7, 8, 9]

    def test_audio_only(self, tmp_path):
        with pytest.raises(VideoError, match="no video stream, only: audio"):
            read_clip(make_audio(tmp_path / "sound.mp4"))


@pytest.mark.skipif(not REAL, reason="no real videos at hand")
@pytest.mark.parametrize("path", REAL, ids=lambda p: p.stem[-20:])
def test_real_videos(path):
    info = probe(path)
    assert info.size == (240, 320)
    clip = read_clip(path, frames=16, size=(56, 56))
    assert clip.indices[-1] < info.frames
    assert (np.diff(clip.times) > 0).all()
    assert clip.frames.std() > 0.05
    every = sum(1 for _ in ContainerSource(path).read(range(info.frames)))
    assert every == info.frames
