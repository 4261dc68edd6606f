"""Whether a tube that was found on one network matters to another."""

import pytest
import torch

from toy_squares import WORDS, Adder, Knowing, Squares
from whytube.errors import ArgumentError
from whytube.evaluation import evaluate
from whytube.evaluation.methods import Centre


class Blind(Adder):
    """It answers the same whatever it sees."""

    def features(self, clips):
        found = super().features(clips)
        return found._replace(logits=found.logits * 0 + torch.arange(4.0))


class Backwards(Adder):
    """Colours speak against their class."""

    weights = -Adder.weights


def measured(other):
    return evaluate([Knowing(), Centre(WORDS)], Adder(), Squares(6), fills=("zero", "mean"), judge_with=other)


def test_a_twin_agrees_in_everything():
    found = measured(Adder()).methods["knowing"]
    assert found.figure("agreement.positive").mean == 1
    assert found.figure("agreement.negative").mean == 1
    for path in ("negative_class_accuracy.top1", "positive_drop", "log_probability.change.negative"):
        assert found.figure(f"transfer.{path}") == found.figure(path)


def test_a_network_that_sees_nothing_agrees_in_nothing():
    found = measured(Blind()).methods["knowing"]
    assert found.figure("agreement.positive").mean == 0
    assert found.figure("transfer.change.positive").mean == 0


def test_the_headline_stays_that_of_the_network_that_was_asked():
    alone = evaluate([Knowing(), Centre(WORDS)], Adder(), Squares(6), fills=("zero", "mean"))
    found = measured(Backwards())
    assert found.provenance["settings"]["judge_with"] == "adder"
    for name, method in alone.methods.items():
        assert {path: found.methods[name].figure(path) for path in method.figures} == method.figures
        assert found.methods[name].figure("agreement.positive").mean < 0.5


def test_the_other_must_take_the_same_clips():
    with pytest.raises(ArgumentError, match="`judge_with` must be a network of the same classes"):
        measured(Adder(("a", "b", "c", "d")))
