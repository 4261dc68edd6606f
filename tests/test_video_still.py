import av
import numpy as np
import pytest
import torch

from whytube.errors import ArgumentError, VideoError
from whytube.video import png_bytes, write_gif, write_png


def test_png_keeps_every_pixel(tmp_path):
    picture = np.random.default_rng(0).integers(0, 256, (33, 47, 3), dtype=np.uint8)
    path = write_png(tmp_path / "a.png", picture)
    assert path.read_bytes() == png_bytes(picture)
    assert path.read_bytes().startswith(b"\x89PNG")
    with av.open(str(path)) as file:
        np.testing.assert_array_equal(next(file.decode(video=0)).to_ndarray(format="rgb24"), picture)
    assert list(tmp_path.iterdir()) == [path]


def test_gif_has_all_frames_and_loops(tmp_path):
    frames = torch.zeros(3, 6, 20, 31)
    frames[0, 1::2] = 1.0
    path = write_gif(tmp_path / "a.gif", frames, 10)
    data = path.read_bytes()
    assert data.startswith(b"GIF89a")
    assert b"NETSCAPE2.0\x03\x01\x00\x00" in data, "plays for ever"
    with av.open(str(path)) as file:
        shown = [picture.to_ndarray(format="rgb24") for picture in file.decode(video=0)]
    assert len(shown) == 6
    assert shown[0].max() == 0
    np.testing.assert_array_equal(shown[1][0, 0], [255, 0, 0])


@pytest.mark.parametrize("frames", [[], [np.zeros((4, 4, 3), np.uint8), np.zeros((4, 6, 3), np.uint8)]])
def test_gif_wants_frames_of_one_size(tmp_path, frames):
    with pytest.raises(ArgumentError, match="`frames`"):
        write_gif(tmp_path / "a.gif", frames, 10)
    with pytest.raises(ArgumentError, match="`fps`"):
        write_gif(tmp_path / "a.gif", frames, 80)
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_named(tmp_path):
    picture = np.zeros((4, 4, 3), np.uint8)
    with pytest.raises(VideoError, match="no folder"):
        write_png(tmp_path / "none" / "a.png", picture)
    with pytest.raises(VideoError, match="no folder"):
        write_gif(tmp_path / "none" / "a.gif", [picture], 5)
