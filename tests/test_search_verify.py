"""Candidates compared by masking: which are kept, in which order, at what cost."""

import torch

from toy_squares import Adder, Squares, ask, ask_next
from whytube.classifiers.base import Features
from whytube.search import verify as questions
from whytube.search.masked import masked_logits
from whytube.search.score import value
from whytube.search.verify import SELECTING_FILLS, best_regions, top_regions
from whytube.tubes import FILLS

LEFT_SQUARE, RIGHT_SQUARE, CORNER = [4, 12, 12, 20], [20, 12, 28, 20], [0, 0, 8, 8]


def candidates(question, *boxes):
    """Boxes that stand still, (B, N, M, T, 4)."""
    count, negatives = question.negative.shape
    tubes = torch.tensor(boxes, dtype=torch.float32)[:, None].expand(-1, 4, 4)
    return tubes.expand(count, negatives, *tubes.shape)


class Sure(Adder):
    """Says the same probabilities of any clip, in no order."""

    def features(self, clips):
        said = super().features(clips)
        return Features(torch.tensor([0.1, 0.5, 0.05, 0.35]).log().expand(len(clips), 4), said.maps)


def test_questions_are_about_the_most_probable_negatives():
    clips = Squares().batch("test", range(2)).clips
    for negatives, expected in ((1, [3]), (2, [3, 0]), (3, [3, 0, 2])):
        question = questions.ask(Sure(), clips, negatives=negatives)
        assert question.positive.tolist() == [1, 1]
        assert question.negative.tolist() == [expected] * 2, "B nearest to A first"


def test_the_best_tube_of_each_candidate_is_ranked_by_its_value():
    question = ask_next(2)
    model = Adder().eval()
    boxes = candidates(question, CORNER, LEFT_SQUARE, RIGHT_SQUARE)
    every = torch.ones(boxes.shape[:3], dtype=torch.bool)
    found = best_regions(model, question, boxes, every, 2)
    assert torch.equal(found.boxes[:, :, 0], boxes[:, :, 1]), "the bright square makes the class"
    assert (found.masked_clips == len(SELECTING_FILLS) * 3).all()
    tries = [masked_logits(model, question, boxes, every, fill=fill) for fill in SELECTING_FILLS]
    by_hand = sum(value(question, logits) for logits in tries) / 2
    torch.testing.assert_close(found.scores, by_hand.topk(2).values, atol=1e-4, rtol=1e-4)
    assert (found.attribute_ids == -1).all()


def test_what_does_not_exist_is_neither_tried_nor_kept():
    question, _ = ask(1)
    model = Adder().eval()
    boxes = candidates(question, LEFT_SQUARE, CORNER)
    exists = torch.tensor([False, True]).view(1, 1, 2).expand(1, 2, 2)
    found = best_regions(model, question, boxes, exists, 2)
    assert torch.equal(found.boxes[:, :, 0], boxes[:, :, 1])
    assert not found.boxes[:, :, 1].any()
    assert (found.masked_clips == len(SELECTING_FILLS)).all()
    assert model.seen == len(SELECTING_FILLS), "both negatives share the tube"


def test_distinct_tubes_leave_out_repeats():
    question = ask_next(1)
    boxes = candidates(question, LEFT_SQUARE, [6, 12, 13, 20], RIGHT_SQUARE)
    every = torch.ones(boxes.shape[:3], dtype=torch.bool)
    found = best_regions(Adder().eval(), question, boxes, every, 3)
    assert found.scores.isfinite().sum(-1).tolist() == [[2]]
    assert torch.equal(found.boxes[:, :, 0], boxes[:, :, 0])
    assert torch.equal(found.boxes[:, :, 1], boxes[:, :, 2])


def test_fewer_than_k_are_padded():
    boxes = torch.rand(1, 1, 2, 4, 4)
    found = top_regions(boxes, torch.tensor([[[3, 4]]]), torch.tensor([[[-torch.inf, 1.0]]]), 3)
    assert found.attribute_ids.tolist() == [[[4, -1, -1]]]
    assert found.scores.tolist() == [[[1.0, -torch.inf, -torch.inf]]]
    assert torch.equal(found.boxes[0, 0, 0], boxes[0, 0, 1])
    assert not found.boxes[0, 0, 1:].any()


def test_tubes_are_chosen_with_fills_that_exist():
    assert len(SELECTING_FILLS) == 2
    assert set(SELECTING_FILLS) <= {*FILLS, "noise"}
