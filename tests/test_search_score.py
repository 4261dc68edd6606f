"""What tubes are ranked by, by hand."""

import math

import pytest
import torch

from whytube.classifiers.base import Features
from whytube.search.score import AHEAD, ENOUGH, FALL, OTHERS, RARE, log_odds, margin_fall, value
from whytube.search.verify import Question


def asked(chances, positive=0, negative=(1,)):
    """Ask about one clip with these probabilities."""
    logits = torch.tensor([chances]).log()
    return Question(
        torch.zeros(1, 3, 1, 1, 1), Features(logits, ()), torch.tensor([positive]), torch.tensor([negative])
    )


def after(*rows):
    """Logits (1, 1, M, C) of probabilities after masking each of M tubes; a constant makes no difference."""
    return torch.tensor([[rows]]).log() + 3.0


def logit(p):
    return math.log(p / (1 - p))


def ahead(third, b):
    """Price of a third class whose probability becomes so many times as large, where that of B becomes `b` times."""
    return AHEAD * math.log(third / b)


def test_log_odds():
    logits = torch.tensor([[[0.0, 1.0, 2.0]], [[3.0, 0.0, 1.0]]])
    found = log_odds(logits, torch.tensor([[[2]], [[0]]]))
    chances = logits.softmax(-1)
    torch.testing.assert_close(found[:, 0, 0], torch.logit(torch.stack([chances[0, 0, 2], chances[1, 0, 0]])))


def test_log_odds_of_several_classes():
    logits = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    chances = logits.softmax(-1)
    torch.testing.assert_close(log_odds(logits, torch.tensor([[2, 0]])), torch.logit(chances[:, [2, 0]]))


def test_log_odds_of_a_certain_class_are_finite():
    """No more than a million to one."""
    found = log_odds(torch.tensor([[100.0, 0.0]]).double(), torch.tensor([[0]]))
    assert found.item() == pytest.approx(math.log(1e6), abs=1e-5)
    assert log_odds(torch.tensor([[100.0, 0.0]]), torch.tensor([[0]])).item() == pytest.approx(math.log(1e6), abs=0.1)


def test_a_tube_that_raises_b_and_lowers_a_is_worth_the_rise():
    found = value(asked([0.7, 0.2, 0.1]), after([0.4, 0.5, 0.1], [0.7, 0.2, 0.1]))
    assert found.shape == (1, 1, 2)
    assert float(found[0, 0, 0]) == pytest.approx(logit(0.5) - logit(0.2), abs=1e-5)
    assert float(found[0, 0, 1]) == pytest.approx(-FALL * ENOUGH, abs=1e-5), "nothing changed, A has not fallen"


def test_a_third_class_that_rises_more_than_b_costs():
    found = float(value(asked([0.7, 0.2, 0.1]), after([0.4, 0.25, 0.35])))
    price = OTHERS * (0.25 - 0.05) + ahead(3.5, 1.25)
    assert found == pytest.approx(logit(0.25) - logit(0.2) - price, abs=1e-5)
    level = float(value(asked([0.6, 0.2, 0.2]), after([0.4, 0.3, 0.3])))
    assert level == pytest.approx(logit(0.3) - logit(0.2), abs=1e-5), "as much as B is no more than B"


def test_a_third_class_that_becomes_more_times_as_probable_costs():
    """By .1, less than B's .15, but three times instead of 1.75 times."""
    found = float(value(asked([0.75, 0.2, 0.05]), after([0.5, 0.35, 0.15])))
    assert found == pytest.approx(logit(0.35) - logit(0.2) - ahead(3, 1.75), abs=1e-5)


def test_a_class_that_stays_rare_costs_nothing():
    found = float(value(asked([0.7, 0.3 - 1e-9, 1e-9]), after([0.5, 0.5 - RARE / 2, RARE / 2])))
    assert found == pytest.approx(logit(0.5) - logit(0.3), abs=1e-3)
    risen = float(value(asked([0.7, 0.3 - 1e-9, 1e-9]), after([0.5, 0.5 - 9 * RARE, 9 * RARE])))
    assert risen == pytest.approx(logit(0.5) - logit(0.3) - ahead(9, 5 / 3), abs=1e-2), "as if it had been RARE"


def test_an_a_that_does_not_fall_costs():
    found = float(value(asked([0.5, 0.2, 0.3]), after([0.6, 0.3, 0.1])))
    assert found == pytest.approx(logit(0.3) - logit(0.2) - FALL * (0.1 + ENOUGH), abs=1e-5)
    little = float(value(asked([0.5, 0.2, 0.3]), after([0.49, 0.3, 0.21])))
    assert little == pytest.approx(logit(0.3) - logit(0.2) - FALL * (ENOUGH - 0.01), abs=1e-5)


def test_two_classes_have_no_third():
    found = float(value(asked([0.7, 0.3]), after([0.6, 0.4])))
    assert found == pytest.approx(logit(0.4) - logit(0.3), abs=1e-5)


def test_every_negative_has_its_own_value():
    question = asked([0.5, 0.3, 0.2], negative=(1, 2))
    logits = after([0.3, 0.6, 0.1]).expand(1, 2, 1, 3)
    found = value(question, logits)
    assert found.shape == (1, 2, 1)
    assert float(found[0, 0, 0]) == pytest.approx(logit(0.6) - logit(0.3), abs=1e-5)
    behind = OTHERS * (0.3 + 0.1) + ahead(2, 0.5)
    assert float(found[0, 1, 0]) == pytest.approx(logit(0.1) - logit(0.2) - behind, abs=1e-5)


def test_values_of_several_clips_do_not_mix():
    """Probabilities before and after, positives and negatives are each clip's own."""
    rows = torch.rand(2, 4, generator=torch.Generator().manual_seed(0)).softmax(-1)
    masked = torch.randn(2, 2, 3, 4, generator=torch.Generator().manual_seed(1))
    positive, negative = torch.tensor([0, 3]), torch.tensor([[1, 2], [2, 0]])
    whole = value(Question(torch.zeros(2, 3, 1, 1, 1), Features(rows.log(), ()), positive, negative), masked)
    assert whole.shape == (2, 2, 3)
    for b in range(2):
        for n in range(2):
            question = asked(rows[b].tolist(), int(positive[b]), (int(negative[b, n]),))
            torch.testing.assert_close(value(question, masked[b : b + 1, n : n + 1])[0, 0], whole[b, n])


def test_how_far_the_decision_falls():
    question = asked([0.5, 0.3, 0.2], negative=(1, 2))
    logits = torch.cat([after([0.3, 0.6, 0.1]), after([0.6, 0.1, 0.3])], 2).expand(1, 2, 2, 3)
    torch.testing.assert_close(
        margin_fall(question, logits)[0], torch.tensor([[0.5, -0.3], [0.1, 0.0]]), atol=1e-6, rtol=0
    )
