"""Candidates compared by masking: which are kept, in which order, at what cost."""

import torch

from toy_squares import Adder, Squares, ask, ask_next
from whytube.search.masked import masked_logits
from whytube.search.score import value
from whytube.search.verify import SELECTING_FILLS, best_regions, listed_suited, top_regions
from whytube.tubes import FILLS

LEFT_SQUARE, RIGHT_SQUARE, CORNER = [4, 12, 12, 20], [20, 12, 28, 20], [0, 0, 8, 8]


def candidates(question, *boxes):
    """Boxes that stand still, (B, N, M, 1, T, 4)."""
    count, negatives = question.negative.shape
    tubes = torch.tensor(boxes, dtype=torch.float32)[:, None, None].expand(-1, 1, 4, 4)
    return tubes.expand(count, negatives, *tubes.shape)


def test_the_best_tube_of_each_candidate_is_ranked_by_its_value():
    question = ask_next(2)
    model = Adder().eval()
    boxes = candidates(question, CORNER, LEFT_SQUARE, RIGHT_SQUARE)
    every = torch.ones(boxes.shape[:4], dtype=torch.bool)
    found = best_regions(model, question, boxes, every, 2)
    assert torch.equal(found.boxes[:, :, 0], boxes[:, :, 1, 0]), "the bright square makes the class"
    assert (found.masked_clips == len(SELECTING_FILLS) * 3).all()
    tries = [masked_logits(model, question, boxes, every, fill=fill)[:, :, :, 0] for fill in SELECTING_FILLS]
    by_hand = sum(value(question, logits) for logits in tries) / 2
    torch.testing.assert_close(found.scores, by_hand.topk(2).values, atol=1e-4, rtol=1e-4)
    assert (found.attribute_ids == -1).all()


def test_only_the_best_variant_of_a_candidate_counts():
    question = ask_next(1)
    boxes = candidates(question, CORNER, LEFT_SQUARE, RIGHT_SQUARE).transpose(2, 3)  # one candidate, three variants
    every = torch.ones(boxes.shape[:4], dtype=torch.bool)
    ids = torch.full((1, 1, 1), 2)
    found = best_regions(Adder().eval(), question, boxes, every, 2, attribute_ids=ids)
    assert torch.equal(found.boxes[:, :, 0], boxes[:, :, 0, 1])
    assert found.attribute_ids.tolist() == [[[2, -1]]], "the second answer is padding"
    assert (found.scores[..., 1] == -torch.inf).all()


def test_what_does_not_exist_is_neither_tried_nor_kept():
    question, _ = ask(1)
    model = Adder().eval()
    boxes = candidates(question, LEFT_SQUARE, CORNER)
    exists = torch.tensor([False, True]).view(1, 1, 2, 1).expand(1, 2, 2, 1)
    found = best_regions(model, question, boxes, exists, 2)
    assert torch.equal(found.boxes[:, :, 0], boxes[:, :, 1, 0])
    assert not found.boxes[:, :, 1].any()
    assert (found.masked_clips == len(SELECTING_FILLS)).all()
    assert model.seen == len(SELECTING_FILLS), "both negatives share the tube"


def test_distinct_tubes_leave_out_repeats():
    question = ask_next(1)
    boxes = candidates(question, LEFT_SQUARE, [6, 12, 13, 20], RIGHT_SQUARE)
    every = torch.ones(boxes.shape[:4], dtype=torch.bool)
    found = best_regions(Adder().eval(), question, boxes, every, 3, distinct=True)
    assert found.scores.isfinite().sum(-1).tolist() == [[2]]
    assert torch.equal(found.boxes[:, :, 0], boxes[:, :, 0, 0])
    assert torch.equal(found.boxes[:, :, 1], boxes[:, :, 2, 0])


def test_fewer_than_k_are_padded():
    boxes = torch.rand(1, 1, 2, 4, 4)
    found = top_regions(boxes, torch.tensor([[[3, 4]]]), torch.tensor([[[-torch.inf, 1.0]]]), 3)
    assert found.attribute_ids.tolist() == [[[4, -1, -1]]]
    assert found.scores.tolist() == [[[1.0, -torch.inf, -torch.inf]]]
    assert torch.equal(found.boxes[0, 0, 0], boxes[0, 0, 1])
    assert not found.boxes[0, 0, 1:].any()


def test_attributes_that_suit_a_negative():
    question, _ = ask(1, negatives=2)  # red against blue and green
    ids, suited = listed_suited(Squares.table, question)
    assert ids.tolist() == [[0, 1]]
    for n, other in enumerate(question.negative[0].tolist()):
        expected = Squares.table[0] & ~Squares.table[other]
        assert suited[0, n].tolist() == expected[:2].tolist()


def test_tubes_are_chosen_with_fills_that_exist():
    assert len(SELECTING_FILLS) == 2
    assert set(SELECTING_FILLS) <= {*FILLS, "noise"}
