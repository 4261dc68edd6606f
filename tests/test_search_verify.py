import torch

from whytube.search.verify import log_odds


def test_log_odds():
    logits = torch.tensor([[[0.0, 1.0, 2.0]], [[3.0, 0.0, 1.0]]])
    found = log_odds(logits, torch.tensor([[[2]], [[0]]]))
    chances = logits.softmax(-1)
    torch.testing.assert_close(found[:, 0, 0], torch.logit(torch.stack([chances[0, 0, 2], chances[1, 0, 0]])))
