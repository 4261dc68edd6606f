import json
from dataclasses import replace

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


def test_the_text_says_of_each_reason_how_well_it_fits_and_what_hiding_it_does():
    fitting = Reason("with pole", 1.25, tube(), (FELL, replace(FELL, fill="blur", positive_after=0.44)), fit=0.834)
    found = explanation(fitting, reason("", (FELL,)), reason("mat", (STAYED,)))
    assert found.text.splitlines() == [
        found.sentence,
        'Hide "with pole" (the word fits: 83 %): pole vault falls from 91 to 39 %, long jump rises from 5 to 52 %.',
        "Hide the region: pole vault falls from 91 to 34 %, long jump rises from 5 to 52 %.",
    ], "what does not move the decision is no reason"
    nudged = explanation(reason("mat", (NUDGED,))).text.splitlines()[1]
    assert nudged == 'Hide "mat": pole vault falls from 91 to 81 %, long jump stays at 5 %.'
    assert explanation(reason(evidence=())).text == explanation(reason(evidence=())).sentence
    assert explanation(reason("mat", (STAYED,))).text.endswith("; no region explains this")


def test_sentence_keeps_to_what_was_measured():
    still = reason("mat", (STAYED,))
    assert explanation(still).sentence.endswith("long jump; no region explains this")
    assert explanation(still, reason()).sentence.endswith('because of "with pole"')
    assert explanation(reason(evidence=())).sentence.endswith('perhaps because of "with pole" (not checked)')
    assert explanation(reason("mat", ()), reason()).sentence.endswith('because of "with pole"')
    slight = reason("mat", (NUDGED,))
    assert explanation(slight).sentence.endswith('long jump, in small part because of "mat"')
    assert explanation(slight, reason()).sentence.endswith('long jump, because of "mat" and "with pole"')


@pytest.mark.parametrize(
    ("a", "b", "other", "claim"),
    [
        (0.20, 0.16, 0.1, "guessed as pole vault (20 %), hardly more than long jump (16 %)"),
        (0.52, 0.45, 0.1, "guessed as pole vault (52 %), hardly more than long jump (45 %)"),
        (0.25, 0.05, 0.02, "guessed as pole vault (25 %), not long jump"),
        (0.45, 0.05, 0.02, "classified as pole vault, not long jump"),
        (
            0.20,
            0.05,
            0.16,
            "guessed as pole vault (20 %), hardly more than <run> (16 %); asked why pole vault, not long jump",
        ),
        (
            0.05,
            0.20,
            0.16,
            "guessed as long jump (20 %), hardly more than <run> (16 %); asked why pole vault, not long jump",
        ),
        (0.05, 0.01, 0.25, "guessed as <run> (25 %); asked why pole vault, not long jump"),
        (0.05, 0.01, 0.91, "classified as <run>; asked why pole vault, not long jump"),
    ],
)
def test_a_guess_is_not_called_a_decision(a, b, other, claim):
    chances = {"pole vault": a, "long jump": b, "<run>": other}
    found = explanation(reason(), probabilities=chances)
    assert found.sentence == f'{claim}, because of "with pole"'
    assert found.guessed == claim.startswith("guessed")
    marked = found.say(word=str, positive="A{}".format, negative="B{}".format, other=lambda name: name.strip("<>"))
    assert "<run>" not in marked


def test_heat_is_the_measured_fall_where_the_tubes_are():
    why = explanation(reason(), reason("mat", (NUDGED, STAYED)), reason("guess", ()))
    heat = why.heat()
    assert heat.shape == (4, 240, 320)
    assert heat.dtype == np.float32
    assert not heat[0].any(), "frame 0 is in no tube"
    falls = [0.57 + 0.47, (0.10 + 0.01) / 2]
    assert heat[1, 10, 10] == pytest.approx(sum(falls) / 2), "the mean of the tubes that cover a pixel"
    assert heat[1, 10, 31] == heat[1, 42, 10] == 0
    np.testing.assert_allclose(why.heat(why.reasons[0])[1, 10, 10], falls[0], rtol=1e-6)
    small = why.heat(size=(24, 32))
    assert small.shape == (4, 24, 32)
    assert small[1, 1, 1] == pytest.approx(sum(falls) / 2)
    assert not explanation().heat().any()


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
