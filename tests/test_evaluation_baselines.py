from dataclasses import replace

import numpy as np
import pytest
import torch

from toy_squares import WORDS, Squares, ask, truth
from whytube.errors import ArgumentError
from whytube.evaluation.methods import METHODS, Centre, DetectorBox, TrueBox, make_methods


def test_centre_is_the_papers_square():
    question, _ = ask(2)
    regions = Centre(WORDS)(question, 3)
    assert regions.boxes.shape == (2, 2, 3, 4, 4)
    half = 32 / 112 * 32 / 2
    assert regions.boxes[0, 0, 0, 0].tolist() == pytest.approx([16 - half, 16 - half, 16 + half, 16 + half])
    assert (regions.boxes == regions.boxes[0, 0, 0, 0]).all()
    assert all(len(set(words.tolist())) == 3 for words in regions.attribute_ids.flatten(0, 1))


def test_centre_runs_out_of_words():
    regions = Centre(WORDS)(ask(1)[0], 6)
    assert (regions.attribute_ids[..., 4:] == -1).all()
    assert regions.scores[..., 4:].isneginf().all()
    assert (regions.boxes[:, :, 4:] == 0).all()


def test_true_box_is_what_a_has_and_b_lacks():
    question, shown = ask(3)
    # Clip 0 is red with a green square; blue has a red square too, so only "green square" separates them.
    question = replace(question, positive=torch.tensor([0, 1, 2]), negative=torch.tensor([[2], [0], [1]]))
    regions = TrueBox().with_truth(question, truth(shown), 2)
    assert regions.attribute_ids[:, 0].tolist() == [[1, -1], [2, -1], [0, -1]]
    for b, word in enumerate((1, 2, 0)):
        assert np.allclose(regions.boxes[b, 0, 0].numpy(), shown.boxes[b][WORDS[word]])
    assert (regions.boxes[:, :, 1] == 0).all()


def test_true_box_has_no_answer_where_nothing_is_annotated():
    question, shown = ask(1)
    question = replace(question, positive=torch.tensor([3]), negative=torch.tensor([[0, 1]]))
    regions = TrueBox().with_truth(question, truth(shown), 1)
    assert (regions.attribute_ids == -1).all()
    assert regions.scores.isneginf().all()


def test_detector_box_does_not_care_for_the_question():
    question, shown = ask(3, negatives=3)
    regions = DetectorBox().with_truth(question, truth(shown), 1)
    assert (regions.boxes == regions.boxes[:, :1]).all()
    for b in range(3):
        assert any(np.allclose(regions.boxes[b, 0, 0].numpy(), track) for track in shown.boxes[b].values())
    assert (regions.attribute_ids >= 0).all()


def test_detector_box_is_the_actors_where_there_is_one():
    question, shown = ask(3)
    actor = np.tile([2.0, 3.0, 20.0, 30.0], (4, 1))
    boxes = [shown.boxes[0] | {"actor": actor}, *shown.boxes[1:]]
    plain, acted = (
        DetectorBox().with_truth(question, truth(known), 2) for known in (shown, replace(shown, boxes=boxes))
    )
    assert (acted.boxes[0, :, 0].numpy() == actor).all()
    assert (acted.boxes[0, :, 1] == 0).all(), "a clip has one actor box"
    assert torch.equal(acted.boxes[1:], plain.boxes[1:]), "other clips keep the boxes of their attributes"
    assert (acted.attribute_ids[0, :, 0] >= 0).all()


def test_without_boxes_there_is_no_answer():
    question, shown = ask(1)
    for method in (TrueBox(), DetectorBox()):
        regions = method.with_truth(question, truth(replace(shown, boxes=[{}])), 2)
        assert (regions.boxes == 0).all()
        assert regions.scores.isneginf().all()


def test_methods_by_name():
    made = make_methods(METHODS, object(), Squares(), seed=3)
    assert [method.name for method in made] == list(METHODS)
    assert all(method.seed == 3 for method in made)
    with pytest.raises(ArgumentError, match=r"unknown method 'grad-can'\. Did you mean 'grad-cam'"):
        make_methods(["grad-can"], object(), Squares())
