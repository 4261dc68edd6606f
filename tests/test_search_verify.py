"""Candidates compared by masking: which are kept, in which order, at what cost."""

from dataclasses import replace

import pytest
import torch

from toy_squares import Adder, Squares, ask, ask_next
from whytube.classifiers.base import Features
from whytube.errors import ArgumentError
from whytube.search import verify
from whytube.search.masked import masked_logits
from whytube.search.score import value
from whytube.search.verify import (
    SELECTING_FILLS,
    best_regions,
    different,
    listed,
    separating_attributes,
    suited_attributes,
    top_regions,
)
from whytube.tubes.masking import FILLS, MASK_FILLS

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
        question = verify.ask(Sure(), clips, negatives=negatives)
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
    assert set(SELECTING_FILLS) <= set(FILLS)
    assert not set(SELECTING_FILLS) & set(MASK_FILLS), "what all tubes share is computed once"


def test_the_k_largest_of_each_question_are_kept():
    generator = torch.Generator().manual_seed(0)
    boxes, scores = torch.rand(2, 3, 5, 4, 4, generator=generator), torch.rand(2, 3, 5, generator=generator)
    ids = torch.randint(0, 9, (2, 3, 5), generator=generator)
    found = top_regions(boxes, ids, scores, 2)
    assert found.boxes.shape == (2, 3, 2, 4, 4)
    for b in range(2):
        for n in range(3):
            order = sorted(range(5), key=lambda m: -float(scores[b, n, m]))[:2]
            assert torch.equal(found.boxes[b, n], boxes[b, n, order])
            assert torch.equal(found.attribute_ids[b, n], ids[b, n, order])
            assert torch.equal(found.scores[b, n], scores[b, n, order])


def test_words_of_a_question():
    table = torch.tensor([[1, 1, 0, 1], [1, 0, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]]).bool()
    question = replace(ask(2)[0], positive=torch.tensor([0, 3]), negative=torch.tensor([[1, 2], [0, 1]]))
    apart = separating_attributes(table, question.positive, question.negative)
    assert apart.int().tolist() == [[[0, 1, 0, 1], [0, 0, 0, 0]], [[0, 0, 0, 0]] * 2]
    suited = suited_attributes(table, question)
    assert suited.int().tolist() == [[[0, 1, 0, 1], [1, 1, 0, 1]], [[0, 0, 0, 0]] * 2], "else all that A has"
    assert listed(table).tolist() == [[0, 1, 3, -1], [0, 2, -1, -1], [0, 1, 2, 3], [-1] * 4]
    assert listed(table[3:]).tolist() == [[-1]]


def test_questions_are_about_the_most_probable_classes():
    clips = ask(3)[0].clips
    model = Adder().train()
    question = verify.ask(model, clips, negatives=2)
    assert model.training, "its mode is as it was"
    ranked = question.features.logits.argsort(1, descending=True)
    assert torch.equal(question.positive, ranked[:, 0])
    assert torch.equal(question.negative, ranked[:, 1:3])
    assert not question.features.logits.requires_grad
    assert verify.ask(model, clips).negative.shape == (3, 1)
    assert verify.ask(model, clips, negatives=3).negative.shape == (3, 3)
    for wrong in (0, 4):
        with pytest.raises(ArgumentError, match="`negatives` must be an integer from 1 to 3"):
            verify.ask(model, clips, negatives=wrong)
    same = verify.ask(model, clips * 0, negatives=3)
    assert same.positive.tolist() == [0] * 3, "of equal ones the first"


def test_a_word_is_said_once_and_no_word_as_often_as_needed():
    """Tubes 0 and 1 overlap by a half, which is not more than a half; 2 has no volume."""
    boxes = torch.zeros(1, 1, 4, 2, 4)
    for m, box in enumerate(([0, 0, 8, 8], [0, 0, 8, 4], [3, 3, 3, 3], [20, 20, 28, 28])):
        boxes[0, 0, m] = torch.tensor(box, dtype=torch.float32)
    values = torch.tensor([[[[9.0, 1.0, 0.5], [8.0, 7.0, 0.4], [6.0, 5.0, 0.3], [4.0, 3.0, 2.0]]]])
    fits = torch.arange(12.0).view(1, 1, 4, 3) / 20
    found = different(boxes, values, 5, fits=fits, ids=torch.tensor([[[5, 7, -1]]]))
    assert found.attribute_ids.tolist() == [[[5, 7, -1, -1, -1]]]
    assert found.scores.tolist()[0][0][:4] == pytest.approx([9, 7, 2, 0.3])
    assert torch.equal(found.boxes[0, 0, :4], boxes[0, 0, [0, 1, 3, 2]])
    assert found.fits[0, 0, :2].tolist() == pytest.approx([0, 4 / 20])
    assert found.fits[0, 0, 2:].isnan().all()
    assert found.scores[0, 0, 4] == -torch.inf
    none = different(boxes, values, 1, fits=fits, ids=torch.tensor([[[-1, 7, -1]]]))
    assert (none.attribute_ids.item(), none.scores.item()) == (7, 7.0), "an id of -1 is no word"


def test_the_last_of_several_answers_moves_the_decision_where_none_else_does():
    boxes = torch.zeros(1, 2, 4, 2, 4)
    for m in range(4):
        boxes[:, :, m] = torch.tensor([8.0 * m, 0, 8 * m + 6, 6])
    values = torch.tensor([4.0, 3.0, 2.0, 1.0]).expand(1, 2, 4)
    moving = torch.tensor([[[False, False, False, True], [False] * 4]])

    def places(k, **more):
        return (different(boxes, values, k, **more).boxes[0, :, :, 0, 0] / 8).tolist()

    assert places(2) == [[0, 1], [0, 1]]
    assert places(2, moving=moving) == [[0, 3], [0, 1]]
    assert places(3, moving=moving) == [[0, 1, 3], [0, 1, 2]]
    assert places(1, moving=moving) == [[0], [0]], "a single answer is the best one"
    first = torch.tensor([[[True, False, False, True]] * 2])
    assert places(2, moving=first) == [[0, 1], [0, 1]], "the first one moves it"
    each = torch.stack([values, values - 10], -1)
    worded = different(boxes, each, 2, fits=each, ids=torch.tensor([[[5, -1]] * 2]), moving=moving)
    assert worded.attribute_ids.tolist() == [[[5, -1], [5, -1]]]
    assert (worded.boxes[0, :, 1, 0, 0] / 8).tolist() == [3, 1]


def test_questions_of_a_batch_keep_to_themselves():
    generator = torch.Generator().manual_seed(0)
    low = torch.rand(2, 3, 6, 1, 2, generator=generator) * 20
    boxes = torch.cat([low, low + 8], -1).expand(2, 3, 6, 4, 4)
    values, fits = torch.randn(2, 3, 6, 4, generator=generator), torch.rand(2, 3, 6, 4, generator=generator)
    ids = torch.tensor([[[3, 5, -1, -1]] * 3, [[1, -1, 4, -1]] * 3])
    whole = different(boxes, values, 3, fits=fits, ids=ids)
    for b in range(2):
        for n in range(3):
            one = slice(b, b + 1), slice(n, n + 1)
            alone = different(boxes[one], values[one], 3, fits=fits[one], ids=ids[one])
            for name in ("boxes", "attribute_ids", "scores", "fits"):
                torch.testing.assert_close(getattr(alone, name)[0, 0], getattr(whole, name)[b, n], equal_nan=True)
