"""Decoded pictures to RGB: every pixel is written, at every size and format; pixels that are not square."""

import av
import numpy as np
import pytest

from video_files import make_video, picture
from whytube.data.world import World
from whytube.explaining import explain
from whytube.report import overlay_video
from whytube.video import iter_windows, opencv, probe, read_clip, write_video
from whytube.video.clip import Shot, ToRGB

FORMATS = ("yuv420p", "yuvj420p", "yuv422p", "yuv444p", "gray", "yuv420p10le")
NOISE = np.random.default_rng(0).integers(0, 256, (400, 400, 3), dtype=np.uint8)


def stored(height, width, pixel_format, pixels=NOISE):
    """Make a picture as a decoder gives it."""
    part = np.ascontiguousarray(pixels[:height, :width])
    return av.VideoFrame.from_ndarray(part, format="rgb24").reformat(format=pixel_format)


def dirty():
    """Leave memory behind that is not zero, for the next picture to be made in."""
    return [np.full(size, 171, dtype=np.uint8) for size in (1 << 12, 1 << 16, 1 << 19)]


@pytest.mark.parametrize("pixel_format", FORMATS)
def test_every_size_is_converted_as_by_a_plain_conversion(pixel_format):
    for side in range(1, 401):
        for height, width in ((side, 401 - side), (17, side)):
            frame = stored(height, width, pixel_format)
            plain = frame.reformat(format="rgb24", interpolation="BILINEAR").to_ndarray()
            dirty()
            found = ToRGB(None)(Shot(0, 0.0, frame))
            assert np.array_equal(found.transpose(1, 2, 0), plain), (height, width)


@pytest.mark.parametrize("pixel_format", FORMATS)
def test_resizing_writes_every_pixel(pixel_format):
    ramp = np.stack(np.broadcast_arrays(*np.ogrid[40:200:400j, 40:200:400j], 120.0), axis=2).astype(np.uint8)
    for height, width in np.random.default_rng(1).integers(1, 401, (150, 2)).tolist():
        for size in ((height, 340), (112, width), (height, min(width + 1, 400))):
            frame = stored(height, width, pixel_format, ramp)
            shot, (high, wide) = Shot(0, 0.0, frame), size
            dirty()
            first = ToRGB(size)(shot)
            plain = frame.reformat(wide, high, "rgb24", interpolation="BILINEAR").to_ndarray().transpose(2, 0, 1)
            dirty()
            assert np.array_equal(first, ToRGB(size)(shot)), (height, width, size)
            assert np.abs(first.astype(int) - plain).mean() < 3, (height, width, size)


@pytest.mark.parametrize("width", [340, 360, 854, 1080, 1366])
def test_files_of_common_widths_read_the_same_again(tmp_path, width):
    path = write_video(tmp_path / "wide.mp4", [picture(i, 90, width) for i in range(3)], 25)
    with av.open(str(path)) as file:
        plain = [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]
    for _ in range(3):
        dirty()
        frames = read_clip(path, frames=3).frames.mul(255).round().byte()
        assert np.array_equal(frames.permute(1, 2, 3, 0).numpy(), np.stack(plain))


WIDE = {"aspect": (16, 11)}


class TestPixelAspect:
    """Stored 48 x 64 with pixels of 16:11 is displayed as 48 x 93."""

    @pytest.mark.parametrize(("name", "codec"), [("a.mp4", "libx264"), ("a.mkv", "libx264"), ("a.avi", "mpeg4")])
    def test_the_displayed_size_counts(self, tmp_path, name, codec):
        path = make_video(tmp_path / name, 6, codec=codec, **WIDE)
        clip = read_clip(path, frames=2)
        assert probe(path).size == clip.size == tuple(clip.frames.shape[2:]) == (48, 93)
        assert next(iter_windows(path, frames=2, size=(20, 20))).size == (48, 93)
        assert clip.frames[:, 0, 5, 25].mul(255).tolist() == pytest.approx([220, 20, 20], abs=12), (
            "beyond a third of 64"
        )

    def test_narrow_pixels(self, tmp_path):
        assert probe(make_video(tmp_path / "a.mp4", 2, aspect=(8, 9))).size == (48, 57)

    def test_the_stored_width_is_scaled_before_a_turn(self, tmp_path):
        path = make_video(tmp_path / "a.mp4", 2, rotation={"degrees": 90}, **WIDE)
        assert probe(path).size == tuple(read_clip(path, frames=1).frames.shape[2:]) == (93, 48)

    def test_absurd_pixels_are_square(self, tmp_path):
        assert probe(make_video(tmp_path / "a.mp4", 2, aspect=(500, 1))).size == (48, 64)

    def test_opencv_too(self, tmp_path):
        pytest.importorskip("cv2")
        for rotation in (None, {"degrees": 90}):
            path = make_video(tmp_path / "a.mp4", 6, rotation=rotation, **WIDE)
            assert opencv.probe(path).size == probe(path).size
            assert opencv.read_clip(path, 2, size=None).frames.shape == read_clip(path, frames=2).frames.shape

    def test_boxes_and_overlay_are_in_displayed_pixels(self, tmp_path):
        dance = write_video(tmp_path / "dance.mp4", World(size=64).batch("test", [0]).clips[0], 8.0)
        wide = make_wide(dance, tmp_path / "wide.mp4")
        square, stretched = explain(dance, k=1), explain(wide, k=1)
        assert (square.size, stretched.size) == ((64, 64), (64, 128))
        reach = [np.concatenate([r.tube.boxes for r in e.reasons])[:, 2].max() for e in (square, stretched)]
        assert reach[1] == pytest.approx(2 * reach[0], abs=1)
        overlay_video(wide, stretched, tmp_path / "shown.mp4")
        height, width = probe(tmp_path / "shown.mp4").size
        assert width > 1.5 * height


def make_wide(path, target):
    """Write the same packets with pixels that are twice as wide as high."""
    with av.open(str(path)) as old, av.open(str(target), "w") as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        stream.sample_aspect_ratio = 2
        for packet in old.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                new.mux(packet)
    return target


def test_metadata_that_is_not_utf8(tmp_path):
    path = make_video(tmp_path / "named.avi", 4, codec="mpeg4", title="AAAA")
    data = path.read_bytes()
    assert data.count(b"AAAA") == 1
    path.write_bytes(data.replace(b"AAAA", b"\xe9\xff\xfe\xe8"))
    with pytest.raises(UnicodeDecodeError):
        av.open(str(path))
    assert read_clip(path, frames=4).indices.tolist() == [0, 1, 2, 3]
    assert probe(path).frames == 4
