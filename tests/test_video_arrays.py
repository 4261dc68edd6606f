"""Arrays and tensors as videos: which shapes are meant, and that they are explained as their file is."""

import hashlib

import numpy as np
import pytest
import torch

from toy_explainer import tiny_classifier, tiny_explainer
from whytube.errors import ArgumentError
from whytube.explaining import classify, contrastive_map, explain
from whytube.video import read_clip, write_video

CLASSES = ("jump", "walk", "swim")
FRAMES, SIZE = 4, (16, 24)


@pytest.fixture
def explainer():
    return tiny_explainer(classifier=tiny_classifier(CLASSES, frames=FRAMES, size=SIZE))


def pixels(count=11, height=40, width=64):
    """Draw a patch that walks over a ramp: (T, H, W, 3) uint8."""
    frames = np.zeros((count, height, width, 3), np.uint8)
    frames[:] = np.linspace(0, 100, width, dtype=np.uint8)[None, None, :, None]
    for t in range(count):
        frames[t, 10:26, 2 + 4 * t : 18 + 4 * t, t % 3] = 230
    return frames


def plain(explanation):
    return explanation.to_dict() | {"timings": None, "video_hash": None}


def test_every_layout_is_the_same_video(explainer):
    array = pixels()
    first = torch.from_numpy(array).permute(3, 0, 1, 2)
    found = [
        plain(explain(video, explainer, fps=5.0))
        for video in (array, first, first.transpose(0, 1), first / 255, array.astype(np.float32) / 255)
    ]
    assert all(one == found[0] for one in found)
    assert found[0]["size"] == [40, 64]
    assert found[0]["times"] == pytest.approx([index / 5 for index in found[0]["frames"]])
    assert found[0]["duration"] == pytest.approx(11 / 5)
    assert found[0]["source"] == "array"


def test_an_array_is_explained_as_its_file_is(explainer, tmp_path):
    path = write_video(tmp_path / "walk.mp4", pixels(), 5.0, crf=0)
    exact = read_clip(path, frames=11).frames
    array, file = explain(exact, explainer, fps=5.0), explain(path, explainer)
    assert array.frames == file.frames
    assert array.times == pytest.approx(file.times)
    assert array.size == file.size
    assert array.positive == file.positive
    assert array.probabilities[array.positive] == pytest.approx(file.probabilities[file.positive], abs=0.05)


def test_without_fps_there_are_no_times_and_size_decides_the_boxes(explainer):
    array = pixels()
    why = explain(array, explainer)
    assert why.times is None
    assert why.fps is None
    assert why.reasons[0].tube.times is None
    twice = explain(array, explainer, size=(80, 128))
    np.testing.assert_allclose(twice.reasons[0].tube.boxes, 2 * why.reasons[0].tube.boxes)
    assert why.video_hash == hashlib.sha256(b"uint8 (11, 40, 64, 3)" + array.tobytes()).hexdigest()


@pytest.mark.parametrize(
    ("video", "message"),
    [
        (np.zeros((3, 8, 8, 3), np.uint8), r"\(3, 8, 8, 3\), which may be \(3, T, H, W\) or \(T, H, W, 3\)"),
        (torch.zeros(3, 3, 8, 8), r"which may be \(3, T, H, W\) or \(T, 3, H, W\)"),
        (torch.zeros(4, 8, 8, 1), r"one clip of shape \(3, T, H, W\), .*, got \(4, 8, 8, 1\)"),
        (torch.zeros(1, 3, 4, 8, 8), "give one of its clips"),
        (torch.zeros(3, 0, 8, 8), r"got \(3, 0, 8, 8\)"),
        (torch.full((3, 4, 8, 8), 2.0), r"RGB in \[0, 1\].*values from 2 to 2"),
        (torch.full((3, 4, 8, 8), torch.nan), r"RGB in \[0, 1\]"),
        (np.zeros((4, 8, 8, 3), np.int64), "uint8, or floating-point"),
        ([1, 2], "a path, a Clip, or one clip"),
    ],
)
def test_what_is_no_clip_is_refused(explainer, video, message):
    with pytest.raises(ArgumentError, match=message):
        explain(video, explainer)


def test_fps_and_size_are_for_arrays(explainer, tmp_path):
    path = write_video(tmp_path / "walk.mp4", pixels(), 5.0)
    with pytest.raises(ArgumentError, match="`fps` and `size` are for arrays"):
        explain(path, explainer, fps=5)
    with pytest.raises(ArgumentError, match="`fps` must be a rate above 0"):
        explain(pixels(), explainer, fps=0)


def test_classify_gives_the_likeliest_first(explainer):
    array = pixels()
    chances = explain(array, explainer).probabilities
    found = classify(array, explainer, top=2)
    assert list(found) == sorted(chances, key=chances.get, reverse=True)[:2]
    assert found == pytest.approx({name: chances[name] for name in found})
    assert classify(array, explainer.classifier, top=None) == pytest.approx(chances)
    assert len(classify(array, explainer)) == 3, "no more classes than there are"
    with pytest.raises(ArgumentError, match="`top`"):
        classify(array, explainer, top=0)


def test_contrastive_map_is_of_the_classifiers_frames(explainer):
    array = pixels()
    why = explain(array, explainer)
    found = contrastive_map(array, explainer)
    assert found.shape == (FRAMES, *SIZE)
    assert found.dtype == np.float32
    assert (found.min() >= 0, found.max()) == (True, pytest.approx(1))
    same = contrastive_map(array, explainer, why=why.positive, why_not=why.negative)
    np.testing.assert_array_equal(found, same)
    other = next(name for name in CLASSES if name not in (why.positive, why.negative))
    assert not np.allclose(found, contrastive_map(array, explainer, why_not=other))
