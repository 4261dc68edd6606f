import numpy as np
import pytest

from whytube.errors import ArgumentError
from whytube.explanation import MOVED, MUCH, RULE, Evidence, Reason
from whytube.tubes import Tube

FELL = Evidence("mean", 0.91, 0.34, 0.05, 0.52)
STAYED = Evidence("blur", 0.91, 0.90, 0.05, 0.05)


def reason(*, evidence: tuple[Evidence, ...]) -> Reason:
    return Reason("with pole", 1.25, Tube([], []), evidence)


def test_a_reason_moves_the_decision_under_most_fills():
    assert FELL.moved
    assert not STAYED.moved
    assert Evidence("mean", 0.03, 0.02, 0.01, 0.03).moved, "B overtook A"
    assert not Evidence("mean", 0.9999, 0.999, 1e-6, 1e-4).moved, "the odds fell, the decision stands"
    assert not Evidence("mean", 0.5, 0.9, 0.4, 0.1).moved
    assert reason(evidence=(FELL, FELL, STAYED)).moved is True
    assert reason(evidence=(FELL, STAYED)).moved is False
    assert reason(evidence=()).moved is None


def test_rounding_errors_of_a_softmax_pass():
    assert Evidence("mean", np.float32(1.0000001), 0.5, 0, 0.5).positive_before == 1.0


def test_the_verdict_is_as_strong_as_the_effect():
    falls = {"turns": 0.6, "moves": 0.3, "moves a little": 0.1, "stays": 0.02}
    for verdict, fall in falls.items():
        evidence = Evidence("mean", 0.7, 0.7 - fall, 0.2, 0.2)
        assert reason(evidence=(evidence, evidence, STAYED)).verdict == verdict
    assert reason(evidence=(FELL, STAYED)).verdict == "stays", "half of the fills are not most"
    assert reason(evidence=()).verdict == "not checked"


def test_the_rule_states_the_thresholds():
    assert f"{MOVED:g}" in RULE
    assert f"{MUCH:g}" in RULE


def test_a_fit_is_a_chance_and_is_kept():
    fitting = Reason("with pole", 1.25, Tube([], []), (), 0.834)
    assert fitting.fit_text == "the word fits: 83 %"
    assert Reason.from_dict(fitting.to_dict()).fit == 0.834
    with pytest.raises(ArgumentError, match="fit"):
        Reason("with pole", 1.25, Tube([], []), (), 1.5)


def test_a_reason_from_before_fits_were_known_is_read():
    old = Reason("with pole", 1.25, Tube([], [])).to_dict()
    del old["fit"]
    assert Reason.from_dict(old).fit is None
    assert Reason.from_dict(old).fit_text == ""
