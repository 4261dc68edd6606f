import numpy as np
import pytest
import torch

from toy_squares import ask
from whytube.evaluation.methods.answers import as_regions, clip_chances, random_attributes


def numbers(chances):
    return [float(rng.random()) for rng in chances]


def test_chance_belongs_to_the_clip():
    clips = ask(3)[0].clips
    whole = numbers(clip_chances(clips, "centre", 0))
    assert whole[1:2] == numbers(clip_chances(clips[1:2], "centre", 0))
    assert len({*whole, *numbers(clip_chances(clips, "centre", 1)), *numbers(clip_chances(clips, "other", 0))}) == 9


def test_random_attributes_do_not_repeat_and_run_out():
    suited = torch.tensor([[[True, False, True, True]]])
    words = random_attributes([np.random.default_rng(0)], suited, 6)[0, 0].tolist()
    assert sorted(words[:3]) == [0, 2, 3]
    assert words[3:] == [-1, -1, -1]


def test_every_suited_word_is_drawn_alike():
    suited = torch.tensor([True, False, True, True]).expand(3000, 1, 4)
    first = random_attributes([np.random.default_rng(i) for i in range(3000)], suited, 1).flatten()
    shares = torch.bincount(first, minlength=4) / 3000
    assert shares.tolist() == pytest.approx([1 / 3, 0, 1 / 3, 1 / 3], abs=0.03)


def test_better_suited_words_come_first():
    suited = torch.tensor([[[1, 2, 0, 2]]])
    words = random_attributes([np.random.default_rng(1)], suited, 4)[0, 0].tolist()
    assert sorted(words[:2]) == [1, 3]
    assert words[2:] == [0, -1]


def test_padding():
    boxes, words = torch.ones(1, 1, 2, 3, 4), torch.tensor([[[5, 6]]])
    regions = as_regions(boxes, words, torch.tensor([[[True, False]]]))
    assert regions.attribute_ids.tolist() == [[[5, -1]]]
    assert regions.scores.tolist() == [[[0, -torch.inf]]]
    assert regions.boxes.sum((-1, -2)).tolist() == [[[12, 0]]]
