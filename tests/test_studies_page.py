import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from studies.benchmark import with_tables
from studies.cells import difference, number, table, with_interval
from studies.page import FIRST_RELEASE, PICTURE, curves_table, read_results, results_page
from studies.series import front_picture
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
    assert page.count("| `true-box` |") == 4
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
    found = read_results(ROOT / "results")
    assert (ROOT / "docs" / "results.md").read_text() == results_page(found)
    picture = ROOT / "docs" / PICTURE
    assert (picture.read_text() if picture.exists() else None) == front_picture(found)


def test_results_of_the_first_release_say_so(run):
    assert FIRST_RELEASE not in results_page({"squares": run})
    old = {name: replace(found, figures=without(found.figures, "masked_clips")) for name, found in run.methods.items()}
    old["ours"] = old.pop("centre")
    page = results_page({"squares": replace(run, methods=old)})
    assert page.count(FIRST_RELEASE) == 1
    assert "| `ours` (first release) | squares |" in page


def without(figures, path):
    return {name: figure for name, figure in figures.items() if name != path}


@pytest.fixture
def fronts(run):
    """Results whose `ours` is better in words the worse it is in fidelity."""
    known = run.methods["true-box"]

    def member(words, fidelity):
        figures = {"right_box": Figure(words), "negative_class_accuracy.top1": Figure(fidelity, 0.1, 0.9)}
        return replace(run, methods={"ours": replace(known, figures={**known.figures, **figures})})

    return {"a-front-0": member(0.3, 0.7), "a-front-10": member(0.9, 0.4), "a-front-1": member(0.8, 0.65)}


def test_the_front_is_a_table_and_a_picture(fronts, tmp_path):
    page = results_page(fronts)
    rows = [line.split(" |")[0] for line in page.partition("## The front")[2].splitlines() if line.startswith("| ")]
    assert rows == ["| weight of the fit", "| ---", "| 0", "| 1 (shipped)", "| 10"], "in order of their weights"
    assert "0.65 [0.10, 0.90]" in page
    assert f"({PICTURE})" in page
    assert "## a-front-0" not in page, "no section of its own"
    picture = ElementTree.fromstring(front_picture(fronts))
    assert [spot.get("class") for spot in picture.findall("{*}circle")] == ["other", "shipped", "other"]
    spots = [(float(spot.get("cx")), float(spot.get("cy"))) for spot in picture.findall("{*}circle")]
    assert spots == sorted(spots), "further right is lower: better words, worse fidelity"
    assert front_picture({"a-front-0": replace(fronts["a-front-0"], methods={})}) is None
    for name, found in fronts.items():
        found.save(tmp_path / f"{name}.json")
    program = [sys.executable, ROOT / "studies" / "results.py", "page", tmp_path, "--out", tmp_path / "page.md"]
    subprocess.run(program, check=True, capture_output=True)
    assert (tmp_path / PICTURE).read_text() == front_picture(fronts)


def test_effort_is_a_table(run):
    page = results_page({"a-effort-16": run, "a-effort-4": run})
    rows = [line for line in page.partition("## Quality over tubes tried")[2].splitlines() if line.startswith("| `")]
    assert [row.split(" |")[:2] for row in rows] == [
        [f"| `{method}`", f" {tubes}"] for method in ("centre", "true-box") for tubes in (4, 16)
    ]
    assert "## a-effort" not in page
    assert front_picture({"a-effort-4": run}) is None


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
    assert difference(Comparison(0.123, 0.02, 0.3, 0.0004)) == "+0.12 [0.02, 0.30], p < .001"
    assert difference(Comparison(-0.5, -0.6, -0.4, 0.25)) == "-0.50 [-0.60, -0.40], p .250"
    assert difference(Comparison(0.0, 0.0, 0.0, 1.0)) == "+0.00 [0.00, 0.00], p 1.000"
    assert difference(None) == "-"


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
