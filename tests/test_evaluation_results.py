import json
from pathlib import Path

import pytest

from toy_squares import WORDS, Adder, Squares
from whytube.errors import ArgumentError, DataError
from whytube.evaluation import Results, evaluate
from whytube.evaluation.methods import Centre, TrueBox
from whytube.evaluation.results import Figure, flat, nested

STORED = [p for p in sorted((Path(__file__).parent.parent / "results").glob("*.json")) if '"methods"' in p.read_text()]


@pytest.fixture(scope="module")
def results():
    source = Squares(6)
    return evaluate([Centre(WORDS), TrueBox()], Adder(), source, fills=("zero", "mean"), clips=True)


def test_saved_and_loaded_again(results, tmp_path):
    path = results.save(tmp_path / "results.json")
    assert json.loads(path.read_text()) == results.to_dict()
    assert Results.load(path) == results


@pytest.mark.parametrize("path", STORED, ids=lambda p: p.stem)
def test_stored_results_load_and_keep_their_form(path):
    results, stored = Results.load(path), json.loads(path.read_text())
    found = results.to_dict()
    for name, method in stored["methods"].items():  # earlier versions wrote no intervals of ranks
        method["intervals"].setdefault("ranks", found["methods"][name]["intervals"]["ranks"])
    assert found == stored
    for method in results.methods.values():
        assert set(method.fills) - {"zero"} == {"mean", "blur", "freeze"}
        assert method.figure("answered").mean > 0


def test_figures_by_path(results):
    centre = results.methods["centre"]
    assert centre.figure("tube_frames") == Figure(1, 1, 1)
    assert centre.figure("log_probability.negative_class_accuracy.top3").mean == 1
    assert centre.figure("fills.zero.positive_drop").low is not None
    assert centre.figure("measured by a later version") == Figure()
    assert centre.fills == ["zero", "mean"]
    assert centre.curves["curve.top3"][2].mean == 1
    assert centre.tube_lengths == [0, 0, 0, 0, 6 * 3], "counts of tubes of 0, 1, ... 4 frames"


def test_provenance_is_added_to_a_copy(results):
    more = results.with_provenance(model="adder", seed=7)
    assert more.provenance == {**results.provenance, "model": "adder", "seed": 7}
    assert "model" not in results.provenance
    assert more.methods is results.methods


def test_what_is_not_results_is_refused_by_name(results, tmp_path):
    path = tmp_path / "other.json"
    for text, message in (
        ("{", r"cannot read .*other\.json: cut off, or not JSON"),
        ("[]", r"other\.json is not results of an evaluation. Give a file that `whytube evaluate --out FILE\.json`"),
        ('{"history": {}, "provenance": {}}', r"other\.json is not results"),
        ('{"classifier": {}, "methods": {}, "provenance": {}}', r"other\.json is damaged, .*`\w+` is missing"),
        ('{"classifier": {}, "methods": null, "provenance": {}}', r"other\.json is damaged"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            Results.load(path)
    with pytest.raises(DataError, match=r"cannot read .*gone\.json: No such file"):
        Results.load(tmp_path / "gone.json")
    for key, value in (("positive_drop", "much"), ("positive_drop", None), ("intervals", {}), ("tube_lengths", ["a"])):
        plain = results.to_dict()
        plain["methods"]["centre"][key] = value
        with pytest.raises(DataError, match="damaged"):
            Results.from_dict(plain)
    with pytest.raises(ArgumentError, match="`mean` must be a finite number"):
        Figure(float("nan"))


def test_trees():
    tree = {"a": {"b": {"c": 1}, "d": 2}, "e": 3}
    assert nested({"a.b.c": 1, "a.d": 2, "e": 3}) == tree
    assert flat(tree) == {"a.b.c": 1, "a.d": 2, "e": 3}
    assert flat({}) == nested({}) == {}
