from dataclasses import replace

import pytest
import torch

from toy_squares import Adder, ask
from whytube.search import verify
from whytube.search.verify import VERIFYING_FILL, log_odds, masked_logits
from whytube.tubes import FILLS, box_masks, erase


def test_masked_logits_are_asked_for_only_where_tried():
    question, _ = ask(2)
    model = Adder()
    boxes = torch.tensor([0.0, 0, 16, 32]).expand(2, 3, 4, 4)
    tried = torch.tensor([[True, False, False], [False, False, True]])
    logits = masked_logits(model, question, boxes, tried)
    assert model.seen == 2
    assert model.training, "its mode is as it was"
    torch.testing.assert_close(logits[0, 1], question.features.logits[0])
    by_hand = model.eval()(erase(question.clips[1:], box_masks(boxes[1, :1], model.size), fill=VERIFYING_FILL))
    torch.testing.assert_close(logits[1, 2], by_hand[0].detach())


def test_log_odds():
    logits = torch.tensor([[[0.0, 1.0, 2.0]], [[3.0, 0.0, 1.0]]])
    found = log_odds(logits, torch.tensor([[[2]], [[0]]]))
    chances = logits.softmax(-1)
    torch.testing.assert_close(found[:, 0, 0], torch.logit(torch.stack([chances[0, 0, 2], chances[1, 0, 0]])))


def test_large_clips_are_asked_about_one_by_one(monkeypatch):
    question, _ = ask(2)
    boxes = torch.tensor([0.0, 0, 16, 32]).expand(2, 3, 4, 4)
    tried = torch.ones(2, 3, dtype=torch.bool)
    whole = masked_logits(Adder(), question, boxes, tried)
    sizes = []
    model = Adder()
    model.register_forward_pre_hook(lambda _, inputs: sizes.append(len(inputs[0])))
    monkeypatch.setitem(verify._PIXELS, "cpu", 1)
    torch.testing.assert_close(masked_logits(model, question, boxes, tried), whole)
    assert sizes == [1, 1], "a tube that is proposed three times is masked once for each clip"


@pytest.mark.parametrize("fill", sorted(FILLS))
def test_every_fill(fill):
    question, _ = ask(1)
    boxes = torch.tensor([0.0, 0, 16, 32]).expand(1, 1, 4, 4)
    found = masked_logits(Adder(), question, boxes, torch.ones(1, 1, dtype=torch.bool), fill=fill)
    by_hand = Adder().eval()(erase(question.clips, box_masks(boxes[0], (32, 32)), fill=fill))
    torch.testing.assert_close(found[0], by_hand)


def test_what_masking_does_not_change_is_not_asked_about_again():
    """Frozen on a single frame, a clip is the same: its logits are, too, although these are not the network's."""
    question, _ = ask(1)
    question = replace(question, features=question.features._replace(logits=torch.full((1, 4), 7.0)))
    boxes = torch.zeros(1, 1, 4, 4)
    boxes[0, 0, 0] = torch.tensor([0.0, 0, 16, 32])
    found = masked_logits(Adder(), question, boxes, torch.ones(1, 1, dtype=torch.bool), fill="freeze")
    assert torch.equal(found[0], question.features.logits)
