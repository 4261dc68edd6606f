import json
from dataclasses import replace
from pathlib import Path

import pytest

from studies.page import curves_table, number, read_results, results_page, table, with_interval
from toy_squares import WORDS, Adder, Squares
from whytube.errors import DataError
from whytube.evaluation import evaluate
from whytube.evaluation.methods import Centre, TrueBox
from whytube.evaluation.results import Figure

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
    assert page.count("| `true-box` |") == 2
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


def test_cells():
    assert number(None) == "-"
    assert number(0.625, 1) == "0.6"
    assert table(("a", "b"), [("1", "2")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    assert with_interval(Figure(0.5, 0.25, 0.75)) == "0.50 [0.25, 0.75]"
    assert with_interval(Figure(0.5)) == "0.50"
    assert with_interval(Figure()) == "-"
