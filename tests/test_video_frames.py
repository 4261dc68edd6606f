import numpy as np
import pytest

from video_files import encode_image, make_seq, numbers, picture
from whytube.errors import VideoError
from whytube.video import iter_windows, probe, read_clip
from whytube.video.frames import natural_key


@pytest.fixture
def folder(tmp_path):
    for index in range(12):
        (tmp_path / f"frame{index}.png").write_bytes(encode_image(picture(index)))
    (tmp_path / "notes.txt").write_text("not a frame")
    (tmp_path / ".hidden.png").write_bytes(b"")
    return tmp_path


def test_natural_order():
    names = ["b1.png", "a10.png", "a2.png", "a2b.png", "a02.png"]
    assert sorted(names, key=natural_key)[-2:] == ["a10.png", "b1.png"]


class TestFolder:
    def test_png_frames_in_natural_order_and_exact(self, folder):
        clip = read_clip(folder, frames=12)
        assert numbers(clip) == list(range(12))
        assert clip.times == pytest.approx(np.arange(12) / 25)
        assert clip.size == (48, 64)
        assert (clip.frames[:, 3].mul(255).round().permute(1, 2, 0).numpy() == picture(3)).all()

    def test_jpeg_frames(self, tmp_path):
        for index in range(5):
            (tmp_path / f"{index}.JPG").write_bytes(encode_image(picture(index), "mjpeg"))
        clip = read_clip(tmp_path, frames=5, size=(24, 32))
        assert numbers(clip) == list(range(5))
        assert clip.frames.shape == (3, 5, 24, 32)

    def test_windows_and_probe(self, folder):
        assert [numbers(clip) for clip in iter_windows(folder, frames=6, hop=6)] == [list(range(6)), list(range(6, 12))]
        info = probe(folder)
        assert (info.frames, info.fps, info.size, info.rotation) == (12, 25, (48, 64), 0)
        assert info.duration == pytest.approx(12 / 25)

    def test_no_frames(self, tmp_path):
        (tmp_path / "inner").mkdir()
        with pytest.raises(VideoError, match=r"holds neither videos nor frames \(files ending in .jpg.*, but 1 other"):
            read_clip(tmp_path)

    @pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n" + bytes(50), b"nothing like it"])
    def test_a_damaged_frame(self, folder, content):
        (folder / "frame3.png").write_bytes(content)
        with pytest.raises(VideoError, match=r"frame3\.png is"):
            read_clip(folder, frames=12)
        assert numbers(read_clip(folder, frames=11, salvage=True)) == [0, 1, 2, *range(4, 12)]

    def test_a_cut_off_jpeg(self, tmp_path):
        data = encode_image(picture(0), "mjpeg")
        (tmp_path / "0.jpg").write_bytes(data[:-30])
        with pytest.raises(VideoError, match="cut off") as caught:
            read_clip(tmp_path)
        assert "`salvage" not in str(caught.value), "there is nothing else"
        (tmp_path / "1.jpg").write_bytes(data)
        with pytest.raises(VideoError, match=r"cut off.*or pass `salvage=True` to leave such frames out"):
            read_clip(tmp_path)
        (tmp_path / "1.jpg").unlink()
        with pytest.raises(VideoError, match="zero frames"):
            read_clip(tmp_path, salvage=True)


class TestSeq:
    @pytest.mark.parametrize("padding", [b"", bytes(8)])
    @pytest.mark.parametrize("promised", [None, 0])
    def test_jpeg_frames_with_and_without_padding(self, tmp_path, padding, promised):
        path = make_seq(tmp_path / "jump.seq", 6, padding=padding, promised=promised)
        clip = read_clip(path, frames=6)
        assert numbers(clip) == list(range(6))
        assert clip.times == pytest.approx(np.arange(6) * 0.04)
        assert clip.size == (48, 64)
        info = probe(path)
        assert (info.frames, info.size) == (6, (48, 64))
        assert info.fps == pytest.approx(25)

    def test_png_frames(self, tmp_path):
        assert numbers(read_clip(make_seq(tmp_path / "a.seq", image_format=2, codec="png"), frames=6)) == list(range(6))

    def test_without_time_stamps_the_header_tells_the_rate(self, tmp_path):
        clip = read_clip(make_seq(tmp_path / "a.seq", step=0), frames=6)
        assert clip.times == pytest.approx(np.arange(6) / 30)
        assert probe(make_seq(tmp_path / "b.seq", step=0, fps=0)).fps == 25

    def test_known_by_its_content_too(self, tmp_path):
        assert numbers(read_clip(make_seq(tmp_path / "video.bin", 2), frames=2)) == [0, 1]

    def test_truncated(self, tmp_path):
        path = make_seq(tmp_path / "cut.seq", 6)
        path.write_bytes(path.read_bytes()[:-400])
        with pytest.raises(VideoError, match=r"announces 6 frames and holds 5.*`salvage=True`"):
            read_clip(path)
        assert numbers(read_clip(path, frames=5, salvage=True)) == list(range(5))

    def test_zero_frames(self, tmp_path):
        path = make_seq(tmp_path / "none.seq", 0)
        with pytest.raises(VideoError, match="announces 0 frames"):
            read_clip(path)
        with pytest.raises(VideoError, match="zero frames"):
            read_clip(path, salvage=True)

    def test_not_a_seq_file(self, tmp_path):
        (tmp_path / "short.seq").write_bytes(b"hello")
        (tmp_path / "other.seq").write_bytes(bytes(2000))
        for name in ("short.seq", "other.seq"):
            with pytest.raises(VideoError, match=r"not a \.seq file"):
                read_clip(tmp_path / name)

    def test_unknown_image_format(self, tmp_path):
        with pytest.raises(VideoError, match="image format 100; expected JPEG or PNG"):
            read_clip(make_seq(tmp_path / "raw.seq", image_format=100))
