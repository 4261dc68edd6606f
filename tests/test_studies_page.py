import json
from dataclasses import replace
from pathlib import Path

import pytest

from studies.benchmark import with_tables
from studies.page import _difference, curves_table, number, read_results, results_page, table, with_interval
from toy_squares import WORDS, Adder, Knowing, Squares
from whytube.errors import DataError
from whytube.evaluation import evaluate
from whytube.evaluation.methods import MAKERS, Centre, MapMethod, TrueBox
from whytube.evaluation.results import Comparison, Figure

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def run():
    source = Squares(6)
    return evaluate([Centre(WORDS), TrueBox()], Adder(), source)


def test_the_paper_stands_beside_ours(run):
    page = results_page({"squares": run})
    assert "**The data differ from the paper's.**" in page
    assert "| proposed (published) | UCF101-24 | 0.64 | 0.88 | 0.14 / 0.41 / 0.65 |" in page
    assert "| baseline (published) | Olympic Sports | 0.45 | 0.76 | 0.02 / 0.07 / 0.12 |" in page
    assert "## squares" in page
    assert page.count("| `true-box` |") == 3
    assert f"Commit {run.provenance['commit'] or 'unknown'}" in page
    assert "number of fc layers" not in page


def test_every_row_is_as_wide_as_its_head(run):
    widths = None
    for line in results_page({"squares": run}).splitlines():
        if line.startswith("|"):
            widths = widths or line.count("|")
            assert line.count("|") == widths, line
        else:
            widths = None


def test_the_fc_study_needs_two_classifiers(run):
    first, other, smaller = (
        replace(run, classifier=replace(run.classifier, settings=settings))
        for settings in ({"fc_layers": 1}, {"fc_layers": 3}, {"fc_layers": 2, "size": 8})
    )
    page = results_page({"fc1": first, "fc3": other, "smaller": smaller})
    assert "| proposed (published, Olympic Sports) | 0.62 | 0.64 | 0.59 |" in page
    assert "| `centre` | 1.00 [1.00, 1.00] | - | 1.00 [1.00, 1.00] |" in page


def test_without_results_the_paper_stands_alone():
    page = results_page({})
    assert page.count("(published)") == 4
    assert page.endswith("|\n")


def test_results_are_read_from_a_folder(tmp_path, run):
    run.save(tmp_path / "b.json")
    run.save(tmp_path / "a.json")
    (tmp_path / "benchmark.json").write_text('{"rows": []}')
    assert list(read_results(tmp_path)) == ["a", "b"]
    assert read_results(tmp_path)["b"] == run
    (tmp_path / "c.json").write_text("{")
    with pytest.raises(DataError, match=r"c\.json: cut off, or not JSON"):
        read_results(tmp_path)


def test_the_page_is_generated():
    assert (ROOT / "docs" / "results.md").read_text() == results_page(read_results(ROOT / "results"))


def test_documented_accuracies_come_from_results():
    found = json.loads((ROOT / "results" / "jhmdb-classifiers.json").read_text())
    assert curves_table(found["curves"], found["metrics"]) in (ROOT / "docs" / "jhmdb.md").read_text()


def test_everything_that_was_measured_is_shown(run):
    model, source = Adder(), Squares(6)
    methods = [Knowing(), Centre(WORDS), MapMethod(model, MAKERS["grad-cam"])]
    options = {"k": 2, "curves": True, "judge_with": Adder(), "area": 0.05, "fills": ("zero", "mean")}
    found = evaluate(methods, model, source, **options).with_provenance(weights="random", reader="OpenCV")
    page = results_page({"full": found})
    for shown in (
        "| method | masked clips | negative top-1 |",
        "`knowing` minus each other method, on the same questions:",
        "| `grad-cam` | 3.0 |",
        "Insertion and deletion over 2 regions, area under the curve:",
        "The same regions masked on `adder`:",
        "| p(A) falls there too | p(B) rises there too |",
        "zero (seen): top-1 / 3",
        "The classifier's weights are random. Tubes cover at most 0.05 of the clip.",
        "videos read by OpenCV;",
    ):
        assert shown in page, shown
    plain = results_page({"squares": run})
    assert "Insertion and deletion over" not in plain
    assert "masked on `" not in plain
    test_every_row_is_as_wide_as_its_head(found)


def test_differences_with_their_chance():
    assert _difference(Comparison(0.123, 0.02, 0.3, 0.0004)) == "+0.12 [0.02, 0.30], p < .001"
    assert _difference(Comparison(-0.5, -0.6, -0.4, 0.25)) == "-0.50 [-0.60, -0.40], p .250"
    assert _difference(Comparison(0.0, 0.0, 0.0, 1.0)) == "+0.00 [0.00, 0.00], p 1.000"
    assert _difference(None) == "-"


def test_the_benchmark_has_the_tables_of_the_results(tmp_path, run):
    page = (ROOT / "docs" / "benchmark.md").read_text()
    assert with_tables(page, read_results(ROOT / "results")) == page
    shown = with_tables(page, {"world": run, "other": run})
    assert "**world** (results/world.json" in shown
    assert "other.json" not in shown
    assert "jhmdb.json" not in shown
    assert with_tables(shown, read_results(ROOT / "results")) == page, "only the tables change"
    with pytest.raises(DataError, match="no place for the tables"):
        with_tables("# A page", {})


def test_cells():
    assert number(None) == "-"
    assert number(0.625, 1) == "0.6"
    assert table(("a", "b"), [("1", "2")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    assert with_interval(Figure(0.5, 0.25, 0.75)) == "0.50 [0.25, 0.75]"
    assert with_interval(Figure(0.5)) == "0.50"
    assert with_interval(Figure()) == "-"
