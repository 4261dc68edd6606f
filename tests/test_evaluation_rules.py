from dataclasses import replace

import pytest
import torch

from toy_squares import WORDS, Adder, Squares, ask
from whytube.errors import ArgumentError
from whytube.evaluation import evaluate
from whytube.evaluation.methods import Centre, TrueBox
from whytube.evaluation.metrics import tube_area
from whytube.evaluation.rules import checked_regions, limited


@pytest.fixture
def question():
    return ask(2)[0]


def checked(regions, question, k=1):
    return checked_regions(regions, question, k, name="mine", words=len(WORDS))


def test_a_method_must_keep_its_promise(question):
    regions = Centre(WORDS)(question, 1)
    same = checked(regions, question)
    assert torch.equal(same.boxes, regions.boxes)
    nan = regions.boxes.clone()
    nan[0, 0, 0, 1, 2] = torch.nan
    for wrong, k, message in (
        (regions, 2, r"`boxes of 'mine'` must be of shape \(2, 2, 2, 4, 4\), got \(2, 2, 1, 4, 4\)"),
        (regions.boxes, 1, r"`answer of 'mine'` must be whytube.search.verify.Regions, got Tensor"),
        (replace(regions, scores=None), 1, r"`scores of 'mine'` must be of shape \(2, 2, 1\), got NoneType"),
        (replace(regions, boxes=nan), 1, "`boxes of 'mine'` must be finite"),
        (replace(regions, scores=regions.scores * torch.nan), 1, "`scores of 'mine'` must be numbers"),
        (replace(regions, attribute_ids=regions.attribute_ids + 9), 1, r"from -1 \(no word\) to 3, got 9 to"),
        (replace(regions, attribute_ids=regions.attribute_ids.float()), 1, "to 3, got torch.float32"),
    ):
        with pytest.raises(ArgumentError, match=message):
            checked(wrong, question, k)


def test_boxes_are_cut_off_at_the_frame(question):
    regions = Centre(WORDS)(question, 1)
    boxes = regions.boxes.clone()
    boxes[0, 0, 0] = torch.tensor([-5.0, 3, 99, 20])
    boxes[0, 1, 0] = torch.tensor([40.0, 3, 50, 20])
    boxes[1, 0, 0] = torch.tensor([9.0, 9, 5, 20])
    found = checked(replace(regions, boxes=boxes), question).boxes
    assert found[0, 0, 0, 0].tolist() == [0, 3, 32, 20]
    assert not found[0, 1].any(), "outside"
    assert not found[1, 0].any(), "upside down"
    assert torch.equal(found[1, 1], boxes[1, 1])


def test_large_tubes_are_shrunk_about_their_middle(question):
    regions = Centre(WORDS, side=0.5)(question, 1)
    same, large = limited(regions, question, None)
    assert same is regions
    assert not large.any()
    same, large = limited(regions, question, 0.25)
    assert not large.any(), "exactly the area"
    found, large = limited(regions, question, 0.1)
    assert large.all()
    assert tube_area(found.boxes, size=(32, 32)).flatten().tolist() == pytest.approx([0.1] * 4)
    middle = (found.boxes[..., :2] + found.boxes[..., 2:]) / 2
    assert torch.allclose(middle, torch.tensor(16.0))


def test_it_is_noted_and_the_truth_may_be_large():
    source = Squares(3)
    found = evaluate([Centre(WORDS, side=0.5), TrueBox()], Adder(), source, fills=("mean",), area=0.05, negatives=2)
    assert found.methods["centre"].figure("tube_area").mean == pytest.approx(0.05)
    assert found.methods["true-box"].figure("tube_area").mean == pytest.approx(1 / 16)
    assert found.notes == ["`centre`: 6 of 6 tubes were above the area and were shrunk to it."]
    assert found.provenance["settings"]["area"] == 0.05
    for area in (0, 1.5, float("nan")):
        with pytest.raises(ArgumentError, match="`area` must be a"):
            evaluate([TrueBox()], Adder(), source, area=area)
