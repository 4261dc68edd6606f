import numpy as np
import pytest
import torch

from video_files import encode_image, make_seq, make_video, number, numbers, picture
from whytube.errors import ArgumentError, VideoError
from whytube.video import Clip, iter_windows, probe, read_clip, read_frames, sample_indices, write_video
from whytube.video import read as reading
from whytube.video.decode import ContainerSource


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return make_video(tmp_path_factory.mktemp("plain") / "plain.mp4")


def test_frames_by_their_numbers(plain):
    clip = read_frames(plain, [13, 15, 17, 17], size=(24, 32))
    assert numbers(clip) == [13, 15, 17, 17]
    assert clip.indices.tolist() == [13, 15, 17, 17]
    assert clip.times.tolist() == pytest.approx([13 / 25, 15 / 25, 17 / 25, 17 / 25])
    with pytest.raises(VideoError, match="has 20 frames, not frames 18 to 21"):
        read_frames(plain, [18, 21])


class TestSampling:
    def test_uniform_takes_the_middles_of_equal_parts(self):
        assert sample_indices(16, frames=16).tolist() == list(range(16))
        assert sample_indices(100, frames=4).tolist() == [12, 37, 62, 87]
        assert sample_indices(3, frames=6).tolist() == [0, 0, 1, 1, 2, 2]
        assert sample_indices(1, frames=3).tolist() == [0, 0, 0]

    def test_center_is_contiguous_and_repeats_the_last_frame(self):
        assert sample_indices(100, frames=4, sampling="center").tolist() == [48, 49, 50, 51]
        assert sample_indices(100, frames=3, sampling="center", stride=10).tolist() == [39, 49, 59]
        assert sample_indices(3, frames=5, sampling="center").tolist() == [0, 1, 2, 2, 2]

    def test_settings_are_checked_before_the_file(self):
        with pytest.raises(ArgumentError, match="'uniform', 'center'"):
            read_clip("nowhere.mp4", sampling="random")
        with pytest.raises(ArgumentError, match="`stride` must be 1 with sampling='uniform'"):
            read_clip("nowhere.mp4", stride=2)
        with pytest.raises(ArgumentError, match="`frames`"):
            read_clip("nowhere.mp4", frames=0)


class TestClip:
    def good(self, **changes):
        values = {"frames": torch.zeros(3, 2, 4, 4), "indices": np.arange(2), "times": np.arange(2.0), "size": (4, 4)}
        return Clip(**{**values, "source": "test", **changes})

    def test_good(self):
        assert self.good().indices.dtype == np.int64
        assert (self.good().fps, self.good().duration) == (None, None)

    @pytest.mark.parametrize(
        "changes",
        [
            {"frames": torch.zeros(2, 3, 4, 4)},
            {"frames": torch.zeros(3, 2, 4, 4, dtype=torch.float64)},
            {"frames": torch.full((3, 2, 4, 4), 255.0)},
            {"frames": torch.full((3, 2, 4, 4), torch.nan)},
            {"frames": torch.zeros(3, 0, 4, 4)},
            {"indices": np.arange(3)},
            {"indices": np.array([1, 0])},
            {"indices": np.array([0.0, 1.0])},
            {"times": np.array([0, np.inf])},
            {"size": (0, 4)},
            {"size": 4},
            {"fps": float("nan")},
            {"duration": "long"},
        ],
    )
    def test_nonsense_is_refused(self, changes):
        with pytest.raises(ArgumentError, match=next(iter(changes))):
            self.good(**changes)


class TestRead:
    def test_frames_indices_and_times(self, plain):
        clip = read_clip(plain, frames=5)
        assert clip.frames.shape == (3, 5, 48, 64)
        assert clip.frames.dtype == torch.float32
        assert clip.indices.tolist() == [2, 6, 10, 14, 18]
        assert clip.times == pytest.approx(clip.indices / 25)
        assert clip.size == (48, 64)
        assert clip.source == str(plain)
        assert numbers(clip) == clip.indices.tolist()

    def test_every_frame_in_order(self, plain):
        assert numbers(read_clip(plain, frames=20)) == list(range(20))
        assert numbers(read_clip(plain, frames=4, sampling="center", stride=3)) == [5, 8, 11, 14]

    def test_colour_and_orientation(self, plain):
        clip = read_clip(plain, frames=1)
        assert clip.frames[:, 0, 5, 5].mul(255).tolist() == pytest.approx([220, 20, 20], abs=4)
        assert clip.frames[:, 0, -5, -5].mul(255).tolist() == pytest.approx([20, 20, 220], abs=4)

    def test_resizing_is_bilinear_and_antialiased(self, tmp_path):
        rng = np.random.default_rng(0)
        pixels = rng.integers(0, 256, (96, 128, 3), dtype=np.uint8)
        write_video(tmp_path / "noise.mp4", [pixels], 25, crf=1)
        whole = read_clip(tmp_path / "noise.mp4", frames=1).frames[:, 0]
        small = read_clip(tmp_path / "noise.mp4", frames=1, size=(24, 32)).frames[:, 0]
        wanted = torch.nn.functional.interpolate(whole[None], (24, 32), mode="bilinear", antialias=True)[0]
        aliased = torch.nn.functional.interpolate(whole[None], (24, 32), mode="bilinear")[0]
        # Shrinking before the colour conversion clips less than after it: means of channels, not pixels, agree closely.
        assert (small.mean(0) - wanted.mean(0)).abs().mean() < 0.25 * (small.mean(0) - aliased.mean(0)).abs().mean()

    def test_size_says_the_videos_own(self, plain):
        clip = read_clip(plain, frames=2, size=(10, 14))
        assert clip.frames.shape == (3, 2, 10, 14)
        assert clip.size == (48, 64)

    @pytest.mark.parametrize("count", [1, 2, 5])
    def test_short_videos_repeat_frames(self, tmp_path, count):
        clip = read_clip(make_video(tmp_path / "short.mp4", count), frames=8)
        assert clip.indices.tolist() == sample_indices(count, frames=8).tolist()
        assert numbers(clip) == clip.indices.tolist()

    def test_variable_frame_rate(self, tmp_path):
        pts = [0, 1, 2, 10, 11, 30, 31, 32]
        clip = read_clip(make_video(tmp_path / "vfr.mkv", 8, pts=pts), frames=8)
        assert clip.times == pytest.approx(np.array(pts) / 25, abs=1e-3)
        assert numbers(clip) == list(range(8))

    def test_times_start_at_zero(self, tmp_path):
        clip = read_clip(make_video(tmp_path / "late.ts", 8, codec="mpeg4", pts=range(50, 58)), frames=8)
        assert clip.times == pytest.approx(np.arange(8) / 25)

    @pytest.mark.parametrize(
        ("rotation", "red"),
        [
            ({"degrees": 90}, (-5, 5)),
            ({"degrees": -90}, (5, -5)),
            ({"degrees": 180}, (-5, -5)),
            ({"degrees": 0, "hflip": True}, (5, -5)),
            ({"degrees": 0, "vflip": True}, (-5, 5)),
        ],
    )
    def test_rotation_flags_are_applied(self, tmp_path, rotation, red):
        path = make_video(tmp_path / "turned.mp4", 3, rotation=rotation)
        clip = read_clip(path, frames=3)
        turned = rotation["degrees"] in (90, -90)
        assert clip.size == clip.frames.shape[2:] == ((64, 48) if turned else (48, 64))
        assert clip.frames[:, 0, red[0], red[1]].mul(255).tolist() == pytest.approx([220, 20, 20], abs=6)
        assert read_clip(path, frames=1, size=(30, 20)).frames.shape == (3, 1, 30, 20)
        assert probe(path).size == clip.size

    def test_rotation_turns_counter_clockwise(self, tmp_path):
        path = make_video(tmp_path / "turned.mp4", 1, rotation={"degrees": 90})
        upright = read_clip(make_video(tmp_path / "plain.mp4", 1), frames=1).frames
        assert torch.equal(read_clip(path, frames=1).frames, upright.rot90(1, (2, 3)))
        assert probe(path).rotation == 90

    def test_frames_trimmed_by_an_edit_list_are_not_counted(self, tmp_path):
        path = make_video(tmp_path / "trim.mp4", 20, pts=range(-5, 15), avoid_negative_ts="disabled")
        clip = read_clip(path, frames=15)
        assert probe(path).frames == 15
        assert numbers(clip) == list(range(5, 20))
        assert clip.times == pytest.approx(np.arange(15) / 25)

    @pytest.mark.parametrize("claimed", [21, 40])
    def test_a_count_that_is_too_high_is_corrected(self, plain, monkeypatch, claimed):
        monkeypatch.setattr(ContainerSource, "count", property(lambda _: claimed, lambda *_: None), raising=False)
        assert read_clip(plain, frames=20).indices.tolist() == list(range(20))
        windows = [numbers(clip) for clip in iter_windows(plain, frames=8)]
        assert windows == [list(range(8)), list(range(8, 16)), [16, 17, 18, 19, 19, 19, 19, 19]]

    @pytest.mark.parametrize("name", ["a:b.mp4", "100%d.mp4", "späß 1.mp4"])
    def test_odd_names(self, tmp_path, name):
        assert numbers(read_clip(make_video(tmp_path / name, 3), frames=3)) == [0, 1, 2]

    def test_odd_sizes(self, tmp_path):
        clip = read_clip(make_video(tmp_path / "odd.mp4", 3, height=37, width=51), frames=3)
        assert clip.frames.shape == (3, 3, 37, 51)
        assert numbers(clip) == [0, 1, 2]

    def test_without_time_stamps(self, tmp_path):
        clip = read_clip(make_video(tmp_path / "bare.h264", 10, container="h264"), frames=10)
        assert numbers(clip) == list(range(10))
        assert (np.diff(clip.times) > 0).all()

    def test_avi_times_come_from_its_rate(self, tmp_path):
        clip = read_clip(make_video(tmp_path / "old.avi", 10, codec="mpeg4", rate=10), frames=10)
        assert clip.times == pytest.approx(np.arange(10) / 10)

    def test_webm_without_a_frame_count(self, tmp_path):
        path = make_video(tmp_path / "web.webm", 12, codec="libvpx")
        assert numbers(read_clip(path, frames=12)) == list(range(12))


class TestWindows:
    def test_slide_to_the_end_and_repeat_the_last_frame(self, plain):
        windows = [clip.indices.tolist() for clip in iter_windows(plain, frames=3, stride=2, hop=7)]
        assert windows == [[0, 2, 4], [7, 9, 11], [14, 16, 18]]
        windows = [clip.indices.tolist() for clip in iter_windows(plain, frames=3, stride=4, hop=8)]
        assert windows == [[0, 4, 8], [8, 12, 16], [16, 19, 19]]

    @pytest.mark.parametrize(
        ("frames", "stride", "hop"), [(4, 1, 4), (4, 1, 1), (4, 3, 5), (8, 1, 3), (3, 1, 9), (30, 1, 2)]
    )
    def test_show_what_their_indices_say(self, plain, frames, stride, hop):
        clips = list(iter_windows(plain, frames=frames, stride=stride, hop=hop, size=(24, 32)))
        assert [int(clip.indices[0]) for clip in clips] == [hop * i for i in range(len(clips))]
        for clip in clips:
            assert numbers(clip) == clip.indices.tolist()
            assert clip.times == pytest.approx(clip.indices / 25)
        reach = (frames - 1) * stride + 1
        assert clips[-1].indices[0] + max(reach, hop) >= 20
        assert all(clip.indices[0] + reach < 20 for clip in clips[:-1])

    def test_default_hop_leaves_no_overlap(self, plain):
        assert [clip.indices.tolist() for clip in iter_windows(plain, frames=10)] == [
            list(range(10)),
            list(range(10, 20)),
        ]

    def test_wrong_settings_fail_at_the_call(self, plain):
        with pytest.raises(ArgumentError, match="`hop`"):
            iter_windows(plain, hop=0)


class TestProbe:
    def test_says_what_the_file_is(self, plain):
        info = probe(plain)
        assert (info.frames, info.fps, info.size, info.rotation) == (20, 25, (48, 64), 0)
        assert info.duration == pytest.approx(0.8)
        assert info.source == str(plain)


class TestRateAndLength:
    """A clip says of its source what `probe` says, without a second look at the file."""

    def check(self, path, **settings):
        info = probe(path, **settings)
        clips = [read_clip(path, frames=3, **settings), *iter_windows(path, frames=4, **settings)]
        assert {(clip.fps, clip.duration) for clip in clips} == {(info.fps, info.duration)}

    @pytest.mark.parametrize(
        ("name", "settings"),
        [
            ("plain.mp4", {}),
            ("fast.mkv", {"rate": 60, "pts": [0, 1, 2, 10, 11, 30, 31, 32]}),
            ("old.avi", {"codec": "mpeg4", "rate": 10}),
            ("late.ts", {"codec": "mpeg4", "pts": range(50, 58)}),
            ("bare.h264", {"container": "h264"}),
            ("web.webm", {"codec": "libvpx"}),
            ("trim.mp4", {"pts": range(-3, 5), "avoid_negative_ts": "disabled"}),
        ],
    )
    def test_of_files(self, tmp_path, name, settings):
        self.check(make_video(tmp_path / name, 8, **settings))

    def test_of_pictures(self, tmp_path):
        self.check(make_seq(tmp_path / "a.seq", 6))
        folder = tmp_path / "frames"
        folder.mkdir()
        for index in range(5):
            (folder / f"{index}.png").write_bytes(encode_image(picture(index)))
        self.check(folder)
        (folder / "4.png").write_bytes(b"damaged")
        self.check(folder, salvage=True)

    def test_of_a_damaged_file(self, tmp_path):
        path = make_video(tmp_path / "cut.mkv", 100)
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 6 // 10])
        self.check(path, salvage=True)

    def test_takes_no_more_openings(self, plain, monkeypatch):
        opened = []
        real = ContainerSource._opened
        monkeypatch.setattr(ContainerSource, "_opened", lambda self: opened.append(self) or real(self))
        assert read_clip(plain, frames=3).duration == pytest.approx(0.8)
        assert len(opened) == 2, "once to count, once to decode"


def test_pyav_missing_is_said(plain, monkeypatch):
    monkeypatch.setattr(reading, "stands_in", lambda: False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(VideoError, match=r"pip install av"):
        read_clip(plain)


def test_pictures_tell_their_number():
    assert [number(torch.from_numpy(picture(i)).permute(2, 0, 1) / 255) for i in (0, 7, 49)] == [0, 7, 49]
