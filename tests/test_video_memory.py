"""How much memory reading takes, measured in a process of its own; limits on pixels."""

import struct
import subprocess
import sys
import zlib

import pytest

from video_files import encode_image, make_gif, make_seq, make_video, picture
from whytube.errors import VideoError
from whytube.video import iter_windows, opencv, probe, read_clip

COUNT, FRAME = 40, 2160 * 3840 * 4 / 2**20  # MiB of a decoded 4K frame
BEGIN = """
import resource, sys
import torch
torch.set_num_threads(1)
from whytube.video import iter_windows, probe, read_clip
from whytube.report import overlay_video
from whytube.explanation import Explanation
read_clip(sys.argv[2], frames=2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
video = sys.argv[1]
"""
END = "\nprint((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)"
WORK = {
    "clip": "read_clip(video, frames=40, size=(32, 32))",
    "windows": "for _ in iter_windows(video, frames=1): pass",
    "overlay": """
answer = Explanation(source=video, size=(2160, 3840), frames=(0, 39), times=(0.0, 2.0), fps=20.0, duration=2.0,
    positive="a", negative="b", probabilities={"a": 0.6, "b": 0.4}, reasons=(), settings={}, versions={}, timings={})
overlay_video(video, answer, video + ".overlay.mp4", scale=0.05)""",
}


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    small = make_video(folder / "small.mp4", 2)
    return make_gif(folder / "4k.gif", 3840, 2160, count=COUNT), small


@pytest.mark.parametrize("name", WORK)
def test_a_few_frames_are_in_memory(large, name):
    words = [sys.executable, "-c", BEGIN + WORK[name] + END, *map(str, large)]
    taken = float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    # Beside the decoder's, a window of floats takes that of three decoded frames.
    assert taken < 12 * FRAME, f"{taken:.0f} MiB for {COUNT} frames, which are {COUNT * FRAME:.0f}"


class TestLimit:
    def test_a_huge_gif_is_refused_by_its_header(self, tmp_path):
        path = make_gif(tmp_path / "huge.gif", 16000, 16000)
        assert path.stat().st_size < 1000
        for act in (read_clip, probe, lambda p: next(iter_windows(p)), lambda p: read_clip(p, salvage=True)):
            with pytest.raises(
                VideoError, match=r"16000 x 16000 pixels; expected at most 67108864.*`max_pixels=256000000`"
            ):
                act(path)

    def test_8k_passes(self, tmp_path):
        assert probe(make_gif(tmp_path / "8k.gif", 7680, 4320, count=1)).size == (4320, 7680)

    @pytest.mark.parametrize(
        ("name", "codec"), [("a.mp4", "libx264"), ("a.avi", "mpeg4"), ("a.ts", "mpeg2video"), ("a.webm", "libvpx")]
    )
    def test_it_can_be_moved(self, tmp_path, name, codec):
        path = make_video(tmp_path / name, 30, codec=codec)
        with pytest.raises(VideoError, match=r"64 x 48 pixels; expected at most 3071 pixels"):
            read_clip(path, frames=2, max_pixels=48 * 64 - 1)
        assert read_clip(path, frames=2, max_pixels=48 * 64).size == (48, 64)

    @pytest.mark.parametrize("codec", ["png", "mjpeg"])
    def test_of_pictures(self, tmp_path, codec):
        (tmp_path / "0.png").write_bytes(encode_image(picture(0), codec))
        with pytest.raises(VideoError, match=r"0\.png has frames of 64 x 48 pixels.*`max_pixels=3072`"):
            read_clip(tmp_path, max_pixels=3000)
        assert read_clip(tmp_path, frames=2, max_pixels=3072).size == (48, 64)
        with pytest.raises(VideoError, match="64 x 48 pixels"):
            probe(make_seq(tmp_path / "a.seq"), max_pixels=3000)

    def test_a_huge_picture_is_not_decoded(self, tmp_path):
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        head = chunk(b"IHDR", struct.pack(">IIBBBBB", 40000, 40000, 8, 2, 0, 0, 0))
        (tmp_path / "0.png").write_bytes(b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", b""))
        with pytest.raises(VideoError, match="40000 x 40000 pixels"):
            read_clip(tmp_path)

    def test_of_a_clip(self, tmp_path):
        path = make_video(tmp_path / "a.mp4", 4)
        with pytest.raises(VideoError, match=r"300 frames of 4000 x 2000 pixels takes 28\.8 GB of memory"):
            read_clip(path, frames=300, size=(2000, 4000))
        with pytest.raises(VideoError, match="a clip of 5 frames of 64 x 48"):
            next(iter_windows(path, frames=5, max_pixels=3072))
        assert read_clip(path, frames=4, max_pixels=3072).frames.shape == (3, 4, 48, 64)

    def test_opencv_too(self, tmp_path):
        pytest.importorskip("cv2")
        path = make_video(tmp_path / "a.mp4", 4)
        with pytest.raises(VideoError, match="64 x 48 pixels"):
            opencv.probe(path, max_pixels=3000)
        with pytest.raises(VideoError, match="a clip of 5 frames"):
            opencv.read_clip(path, 5, size=None, max_pixels=3072)
