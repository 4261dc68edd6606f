import av
import numpy as np
import pytest
import torch

from video_files import numbers, picture
from whytube.data.world import World
from whytube.errors import ArgumentError, VideoError
from whytube.video import probe, read_clip, write_video


def test_iterable_of_arrays(tmp_path):
    path = write_video(tmp_path / "a.mp4", (picture(i) for i in range(10)), 10)
    clip = read_clip(path, frames=10)
    assert numbers(clip) == list(range(10))
    assert clip.times == pytest.approx(np.arange(10) / 10)
    assert clip.frames[:, 0, 5, 5].mul(255).tolist() == pytest.approx([220, 20, 20], abs=8)
    assert clip.frames[:, 0, -5, -5].mul(255).tolist() == pytest.approx([20, 20, 220], abs=8)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float16])
def test_tensors(tmp_path, dtype):
    frames = torch.stack([torch.from_numpy(picture(i)) for i in range(6)]).permute(3, 0, 1, 2)
    frames = frames if dtype == torch.uint8 else (frames / 255).to(dtype)
    assert numbers(read_clip(write_video(tmp_path / "a.mp4", frames, 29.97), frames=6)) == list(range(6))
    assert probe(tmp_path / "a.mp4").fps == pytest.approx(29.97, abs=0.001)


def test_plays_in_browsers(tmp_path):
    write_video(tmp_path / "a.mp4", [picture(i) for i in range(3)], 25)
    with av.open(str(tmp_path / "a.mp4")) as container:
        stream = container.streams.video[0]
        assert stream.codec_context.name == "h264"
        assert stream.pix_fmt == "yuv420p"
        assert (stream.codec_context.colorspace, stream.codec_context.color_range) == (1, 1)
    data = (tmp_path / "a.mp4").read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")


def test_odd_sizes_grow_by_a_repeated_edge(tmp_path):
    write_video(tmp_path / "odd.mp4", [picture(0, 47, 61)], 25, crf=1)
    clip = read_clip(tmp_path / "odd.mp4", frames=1)
    assert clip.size == (48, 62)
    assert (clip.frames[..., -1, :] - clip.frames[..., -2, :]).abs().max() < 0.03


def test_one_pixel(tmp_path):
    write_video(tmp_path / "dot.mp4", torch.zeros(3, 1, 1, 1), 1)
    assert probe(tmp_path / "dot.mp4").size == (2, 2)


def test_an_existing_file_is_replaced_only_by_a_whole_one(tmp_path):
    path = tmp_path / "a.mp4"
    write_video(path, [picture(0)], 25)
    before = path.read_bytes()

    def breaks():
        yield picture(0)
        raise RuntimeError("the drawing failed")

    with pytest.raises(RuntimeError, match="the drawing failed"):
        write_video(path, breaks(), 25)
    assert path.read_bytes() == before
    write_video(path, [picture(0), picture(1)], 25)
    assert probe(path).frames == 2
    assert [p.name for p in tmp_path.iterdir()] == ["a.mp4"]


@pytest.mark.parametrize(
    ("frames", "fps", "error", "message"),
    [
        ([], 25, VideoError, "zero frames"),
        (torch.zeros(3, 0, 4, 4), 25, VideoError, "zero frames"),
        (torch.zeros(4, 3, 8, 8), 25, ArgumentError, r"\(3, T, H, W\)"),
        (torch.zeros(3, 4, 8, 8, dtype=torch.int64), 25, ArgumentError, "uint8, or floating-point"),
        ([np.zeros((8, 8, 3))], 25, ArgumentError, r"`frames\[0\]` must be a uint8 array"),
        ([np.zeros((0, 8, 3), dtype=np.uint8)], 25, ArgumentError, "at least one pixel"),
        ([picture(0), picture(0, 24, 64)], 25, ArgumentError, r"`frames\[1\]`.*like the first"),
        ([picture(0)], 0, ArgumentError, "`fps`"),
        ([picture(0)], float("nan"), ArgumentError, "`fps`"),
    ],
)
def test_nothing_is_left_of_what_cannot_be_written(tmp_path, frames, fps, error, message):
    with pytest.raises(error, match=message):
        write_video(tmp_path / "a.mp4", frames, fps)
    assert list(tmp_path.iterdir()) == []


def test_no_such_folder(tmp_path):
    with pytest.raises(VideoError, match="no folder"):
        write_video(tmp_path / "nowhere" / "a.mp4", [picture(0)], 25)


def test_the_same_frames_give_the_same_file(tmp_path):
    clip = World(size=64).batch("test", [1]).clips[0]
    files = {write_video(tmp_path / f"{i}.mp4", clip, 8.0).read_bytes() for i in range(8)}
    assert len(files) == 1
