import json

import numpy as np
import pytest

from whytube.errors import ArgumentError, ExplanationError
from whytube.explanation import Evidence, Explanation, Reason
from whytube.tubes import Tube

FELL = Evidence("mean", 0.91, 0.34, 0.05, 0.52)
NUDGED = Evidence("mean", 0.91, 0.81, 0.05, 0.05)
STAYED = Evidence("blur", 0.91, 0.90, 0.05, 0.05)


def tube() -> Tube:
    return Tube(np.array([2, 5, 9]), np.array([[1.5, 2, 30, 41.25]] * 3), np.array([0.08, 0.2, 0.36]))


def reason(attribute: str = "with pole", evidence: tuple[Evidence, ...] = (FELL,)) -> Reason:
    return Reason(attribute, 1.25, tube(), evidence)


def explanation(*reasons: Reason, **changes: object) -> Explanation:
    fields: dict[str, object] = {
        "source": "jumps/a.mp4",
        "size": (240, 320),
        "frames": (0, 2, 5, 9),
        "times": (0.0, 0.08, 0.2, 0.36),
        "fps": 25.0,
        "positive": "pole vault",
        "negative": "long jump",
        "probabilities": {"pole vault": 0.91, "long jump": 0.05},
        "reasons": reasons,
        "settings": {"fills": ("mean", "blur"), "k": 3},
        "versions": {"whytube": "0.1"},
    }
    return Explanation(**(fields | changes))


@pytest.mark.parametrize(
    ("words", "ending"),
    [
        (["with pole"], ', because of "with pole"'),
        (["with pole", "mat"], ', because of "with pole" and "mat"'),
        (["with pole", "mat", "run"], ', because of "with pole", "mat" and "run"'),
        (["mat", "mat", ""], ', because of "mat" and the marked region'),
        (["", ""], ", because of the 2 marked regions"),
        ([], "; no region explains this"),
    ],
)
def test_sentence_names_each_word_once(words, ending):
    assert explanation(*map(reason, words)).sentence == "classified as pole vault, not long jump" + ending


def test_sentence_keeps_to_what_was_measured():
    still = reason("mat", (STAYED,))
    assert explanation(still).sentence.endswith("long jump; no region explains this")
    assert explanation(still, reason()).sentence.endswith('because of "with pole"')
    assert explanation(reason(evidence=())).sentence.endswith('perhaps because of "with pole" (not checked)')
    assert explanation(reason("mat", ()), reason()).sentence.endswith('because of "with pole"')
    slight = reason("mat", (NUDGED,))
    assert explanation(slight).sentence.endswith('long jump, in small part because of "mat"')
    assert explanation(slight, reason()).sentence.endswith('long jump, because of "mat" and "with pole"')


def test_the_score_has_a_name():
    assert explanation(settings={"score": "tube score"}).score_name == "tube score"
    assert explanation().score_name == "score"


def test_dictionary_has_the_documented_keys():
    data = explanation(reason()).to_dict()
    assert {"schema", "positive", "negative", "sentence", "reasons", "settings", "versions"} <= set(data)
    assert set(data["reasons"][0]) >= {"attribute", "score", "tube", "evidence"}
    assert set(data["reasons"][0]["tube"]) == {"frames", "times", "boxes"}
    assert data["reasons"][0]["evidence"][0]["positive_after"] == 0.34


def test_save_and_load(tmp_path):
    before = explanation(reason("mät"), reason("mat", (FELL, STAYED)), timings={"search": 0.2}, duration=1.5)
    path = before.save(tmp_path / "why.json")
    after = Explanation.load(path)
    assert after.to_dict() == before.to_dict()
    assert after.reasons[1].evidence == (FELL, STAYED)
    assert after.size == (240, 320)
    assert after.settings == {"fills": ["mean", "blur"], "k": 3}
    np.testing.assert_array_equal(after.reasons[0].tube.boxes, before.reasons[0].tube.boxes)
    assert list(tmp_path.iterdir()) == [path]


def test_save_does_not_overwrite_unless_told(tmp_path):
    path = explanation(reason()).save(tmp_path / "why.json")
    with pytest.raises(ExplanationError, match="exists already"):
        explanation().save(path)
    assert Explanation.load(path).reasons
    explanation().save(path, overwrite=True)
    assert not Explanation.load(path).reasons
    with pytest.raises(ExplanationError, match="cannot write"):
        explanation().save(tmp_path / "none" / "why.json")


def test_load_says_what_is_wrong(tmp_path):
    path = tmp_path / "why.json"
    whole = explanation(reason()).to_dict()

    def broken(text: str) -> str:
        path.write_text(text)
        with pytest.raises(ExplanationError) as caught:
            Explanation.load(path)
        return str(caught.value)

    assert "cut off" in broken(json.dumps(whole)[:-20])
    assert "must be an explanation" in broken(json.dumps({"methods": {}}))
    assert "must be an explanation" in broken("[1]")
    assert "`schema` must be 1" in broken(json.dumps(whole | {"schema": 2}))
    assert "`reasons` is missing" in broken(json.dumps({k: v for k, v in whole.items() if k != "reasons"}))
    assert "damaged" in broken(json.dumps({k: v for k, v in whole.items() if k != "source"}))
    assert "damaged" in broken(json.dumps(whole | {"surplus": 1}))
    assert "finite" in broken(json.dumps(whole | {"fps": float("nan")}))
    with pytest.raises(ExplanationError, match="No such file"):
        Explanation.load(tmp_path / "gone.json")


@pytest.mark.parametrize(
    "change",
    [
        {"negative": "pole vault"},
        {"probabilities": {"pole vault": float("nan")}},
        {"probabilities": {"pole vault": 1.5}},
        {"times": (0.0,)},
        {"settings": {"a": float("inf")}},
        {"settings": {"a": object()}},
        {"size": (3,)},
        {"frames": (-1, 0, 1, 2)},
    ],
)
def test_wrong_fields_are_named(change):
    with pytest.raises(ArgumentError, match=f"`{next(iter(change))}"):
        explanation(**change)


def test_scores_are_finite():
    with pytest.raises(ArgumentError, match="`score`"):
        Reason("mat", float("-inf"), tube())
