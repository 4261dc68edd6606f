from dataclasses import replace

import torch

from toy_squares import LEFT, RIGHT, Adder, Squares, ask
from whytube.classifiers.base import Features
from whytube.evaluation.methods import GradCam
from whytube.search.verify import Question


def test_the_tube_follows_what_speaks_for_a():
    question, _ = ask(3)
    regions = GradCam(Adder(), Squares.table, side=8 / 32)(question, 1)
    centre = (regions.boxes[..., :2] + regions.boxes[..., 2:]).mean(3)[:, :, 0] / 2
    assert (centre[..., 0] - (LEFT + 4)).abs().max() < 2.5, "the bright square at the left makes all three classes"
    assert (centre[..., 1] - 17.5).abs().max() < 2.5


def test_the_negative_decides_where_to_look():
    question, _ = ask(1)
    asked = replace(question, positive=torch.tensor([1]), negative=torch.tensor([[3, 0]]))
    regions = GradCam(Adder(), side=8 / 32)(asked, 1)
    assert ((regions.boxes[0, :, 0, :, 0] - RIGHT).abs() < 3).all(), "the green square, whoever is asked about"
    assert (regions.attribute_ids == -1).all(), "without a table there are no words"


def test_words_that_separate_come_first():
    question, _ = ask(1)
    asked = replace(question, positive=torch.tensor([0]), negative=torch.tensor([[1, 2, 3]]))
    regions = GradCam(Adder(), Squares.table)(asked, 2)
    assert regions.attribute_ids[0, :2].tolist() == [[0, 1], [1, 0]]


def test_background_shortens_tubes():
    question, _ = ask(3)
    lengths = []
    for background in (0.0, 0.99999):
        boxes = GradCam(Adder(), background=background)(question, 1).boxes
        lengths.append(float((boxes[..., 2] > boxes[..., 0]).float().sum(-1).mean()))
    assert lengths[0] == 4
    assert lengths[1] < 4


def test_k_tubes_keep_apart():
    question, _ = ask(1)
    regions = GradCam(Adder(), Squares.table, side=8 / 32, background=0.0)(question, 3)
    assert regions.boxes.shape == (1, 2, 3, 4, 4)
    assert (regions.scores.diff(dim=-1) <= 0).all()
    assert not torch.equal(regions.boxes[0, 0, 0], regions.boxes[0, 0, 1])


def test_a_flat_map_still_has_an_answer():
    clips = torch.zeros(1, 3, 4, 32, 32)
    features = Features(torch.zeros(1, 4), ())
    question = Question(clips, features, torch.tensor([0]), torch.tensor([[1]]))
    regions = GradCam(Adder())(question, 1)
    assert regions.scores.isfinite().all()
