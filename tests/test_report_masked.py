"""The video with a reason hidden: filled where the tube is, untouched elsewhere, one frame for every frame."""

import numpy as np
import pytest
import torch

from whytube.errors import ArgumentError
from whytube.explanation import Explanation, Reason
from whytube.report import write_masked_video
from whytube.tubes import Tube
from whytube.video import probe, read_clip, write_video

COUNT, SIZE = 9, (48, 64)
BOX = (16, 8, 40, 32)


@pytest.fixture
def video(tmp_path):
    frames = torch.linspace(0.2, 0.8, SIZE[1]).expand(3, COUNT, *SIZE).clone()
    frames[0] += torch.linspace(0, 0.2, COUNT)[:, None, None]
    return write_video(tmp_path / "ramp.mp4", frames, 10.0, crf=1)


def explanation(frames=(0, 2, 4, 6, 8), tube_frames=(2, 4, 6)):
    tube = Tube(np.array(tube_frames), np.tile(np.array(BOX, dtype=float), (len(tube_frames), 1)))
    return Explanation("ramp.mp4", SIZE, frames, "a", "b", {"a": 0.9, "b": 0.1}, (Reason("", 1.0, tube),), fps=10.0)


def read(path):
    return read_clip(path, frames=COUNT, size=SIZE).frames


@pytest.mark.parametrize("fill", ["mean", "zero", "blur", "freeze", "still", "shift", "noise"])
def test_only_the_tube_is_filled(tmp_path, video, fill):
    out = write_masked_video(video, explanation(), tmp_path / "masked.mp4", fill=fill)
    before, after = read(video), read(out)
    assert probe(out).frames == COUNT
    changed = (after - before).abs()
    x1, y1, x2, y2 = BOX
    outside = changed.clone()
    outside[:, :, y1 - 2 : y2 + 2, x1 - 2 : x2 + 2] = 0
    assert outside.max() < 0.06  # what encoding twice costs
    assert changed[:, [0, 8]].max() < 0.06  # frames that belong to sampled frames without a box
    inside = after[:, 4, y1 + 2 : y2 - 2, x1 + 2 : x2 - 2]
    expected = {
        "mean": lambda: before[:, ::2].mean((1, 2, 3))[:, None, None].expand_as(inside),
        "zero": lambda: torch.zeros_like(inside),
        "still": lambda: before[:, ::2, y1 + 2 : y2 - 2, x1 + 2 : x2 - 2].mean(1),
        "shift": lambda: before.roll(before.shape[-1] // 2, -1)[:, 4, y1 + 2 : y2 - 2, x1 + 2 : x2 - 2],
        "freeze": lambda: before[:, 2, y1 + 2 : y2 - 2, x1 + 2 : x2 - 2],
    }
    if fill in expected:
        assert (inside - expected[fill]()).abs().max() < 0.06
    else:
        assert changed[:, 4, y1 + 2 : y2 - 2, x1 + 2 : x2 - 2].max() > 0.01


def test_wrong_reason_and_fill(tmp_path, video):
    with pytest.raises(ArgumentError, match="`reason` must be"):
        write_masked_video(video, explanation(), tmp_path / "masked.mp4", reason=1)
    with pytest.raises(ArgumentError, match="fill"):
        write_masked_video(video, explanation(), tmp_path / "masked.mp4", fill="red")
    assert not (tmp_path / "masked.mp4").exists()
