import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from studies.benchmark import with_tables
from studies.cells import difference, number, table, with_interval, zeros
from studies.negatives import picture_name, pictures
from studies.page import FIRST_RELEASE, PICTURE, curves_table, read_results, results_page
from studies.published import UNEQUAL, fc_study, top3
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
    assert "| proposed (published) | UCF101-24 | 0.64 | 0.88 | - | - | 0.14 / 0.41 / 0.65 | - |" in page
    assert "| baseline (published) | Olympic Sports | 0.45 | 0.76 | - | - | 0.02 / 0.07 / 0.12 | - |" in page
    assert "## squares" in page
    assert page.count("| `true-box` |") == 4 + 2, "three negatives are all of four classes: two rows of their curve"
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
    assert "| proposed (published, Olympic Sports) | zero, as in the paper | 0.62 | 0.64 | 0.59 |" in page
    for fill in ("zero, as in the paper", "unseen fills"):
        assert f"| `centre` | {fill} | 1.00 [1.00, 1.00] | - | 1.00 [1.00, 1.00] |" in page


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
    drawn = pictures(found) | {PICTURE: front_picture(found)}
    for name, picture in drawn.items():
        path = ROOT / "docs" / name
        assert (path.read_text() if path.exists() else None) == picture
    kept = {f"images/{path.name}" for path in (ROOT / "docs" / "images").glob("negatives-*.svg")}
    assert kept == set(pictures(found)), "no picture of results that are gone"


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


def test_published_numbers_stand_in_the_columns_of_their_protocol(run):
    page = results_page({"squares": run})
    head, _, proposed, *_ = (
        line for line in page.splitlines() if "as printed 1 / 3 / 5 | as we count" in line or "(published)" in line
    )
    columns = [part.strip() for part in head.strip("| ").split("|")]
    cells = [part.strip() for part in proposed.strip("| ").split("|")]
    shown = dict(zip(columns, cells, strict=True))
    assert shown["zero, as in the paper: top-3"] == "0.62"
    assert shown["unseen fills: top-3"] == "-", "the paper has no other fill"
    assert (shown["concept as printed 1 / 3 / 5"], shown["as we count"]) == ("0.13 / 0.38 / 0.59", "-")
    ours = next(line for line in page.splitlines() if line.startswith("| `centre` | squares |"))
    zero = with_interval(run.methods["centre"].figure("fills.zero.negative_class_accuracy.top3"))
    assert ours.split(" | ")[2] == zero


def test_results_without_zeros_have_a_dash(run):
    old = {
        name: replace(found, figures={p: f for p, f in found.figures.items() if "zero" not in p and "printed" not in p})
        for name, found in run.methods.items()
    }
    page = results_page({"squares": replace(run, methods=old)})
    section = page.partition("## squares")[2]
    head, row = (
        next(line for line in section.splitlines() if line.startswith(f"| {word}")) for word in ("method", "`centre`")
    )
    place = head.split(" | ").index("zero, as in the paper: top-1 / 3 / p(A) falls")
    assert row.split(" | ")[place] == "-"
    assert "as printed" not in head
    assert zeros(old["centre"].figures) == "-"
    assert zeros(run.methods["centre"].figures).count(" / ") == 2


def test_all_negatives_are_a_table_and_a_picture(tmp_path):
    found = evaluate([Knowing(), Centre(WORDS)], Adder(), Squares(6), negatives="all", k=2)
    page = results_page({"squares-negatives": found})
    assert "all 3 negatives of each" in page
    assert f"({picture_name('squares-negatives')})" in page
    curve = found.methods["knowing"].curves["fills.zero.curve.top3"]
    assert f"| `knowing` | zero, as in the paper | {curve[0].mean:.2f} | {curve[2].mean:.2f} |" in page
    assert f"Judging took {found.provenance['judging_clips']} masked clips." in page
    second = page.partition("Each pair i of word and tube alone")[2].splitlines()
    assert [line.split(" | ")[:2] for line in second if line.startswith("| `")][:4] == [
        ["| `knowing`", "1"],
        ["| `knowing`", "2"],
        ["| `centre`", "1"],
        ["| `centre`", "2"],
    ]
    drawn = pictures({"squares-negatives": found})
    picture = ElementTree.fromstring(drawn[picture_name("squares-negatives")])
    panels = picture.findall("{*}svg")
    assert [len(panel.findall("{*}polyline")) for panel in panels] == [2, 2, 2, 2], "a line of every method"
    points = [len(panel.findall("{*}polyline")[0].get("points").split()) for panel in panels]
    assert points == [3, 3, 3, 3], "n = 1 ... C - 1"
    assert {"knowing", "centre"} <= {text.text for text in picture.findall("{*}text")}
    assert pictures({"few": evaluate([Centre(WORDS)], Adder(), Squares(3), negatives=2)}) == {}
    test_every_row_is_as_wide_as_its_head(found)
    found.save(tmp_path / "squares-negatives.json")
    program = [sys.executable, ROOT / "studies" / "results.py", "page", tmp_path, "--out", tmp_path / "page.md"]
    subprocess.run(program, check=True, capture_output=True)
    assert (tmp_path / picture_name("squares-negatives")).read_text() == drawn[picture_name("squares-negatives")]


def test_a_run_about_more_negatives_stands_beside_the_paper_with_three(run):
    """Published figures are averaged over three negatives."""
    found = run.methods["centre"]
    longer = [Figure(0.5), Figure(0.4), Figure(0.3), Figure(0.2)]
    more = replace(found, curves={**found.curves, "fills.zero.curve.top3": longer})
    assert top3(more, "fills.zero.") == Figure(0.3)
    assert top3(found, "") == found.figure("negative_class_accuracy.top3")


def test_networks_that_are_not_equally_right_say_so(run):
    def with_layers(layers, accuracy):
        told = replace(run.classifier, settings={"fc_layers": layers}, accuracy=Figure(accuracy))
        return replace(run, classifier=told)

    unequal = fc_study({"a": with_layers(1, 0.995), "b": with_layers(3, 0.79)})
    assert UNEQUAL in unequal
    assert "| our classifiers are right on, of the judged clips | - | 0.995 | - | 0.790 |" in unequal
    assert "| `centre` | zero, as in the paper |" in unequal
    assert UNEQUAL not in fc_study({"a": with_layers(1, 0.995), "b": with_layers(3, 0.99)})
    assert fc_study({"a": with_layers(1, 0.995)}) == ""


@pytest.mark.parametrize(
    ("told", "code"),
    [({"classifier": {"val accuracy": 0.99}}, 0), ({"classifier": {"val accuracy": 0.98}}, 1), ({}, 2)],
)
def test_whether_a_classifier_is_right_often_enough_is_an_exit_code(tmp_path, told, code):
    (tmp_path / "run.json").write_text(json.dumps(told))
    program = [sys.executable, ROOT / "studies" / "results.py", "right", tmp_path / "run.json", "--least", "0.99"]
    ended = subprocess.run(program, capture_output=True, text=True)
    assert ended.returncode == code, ended.stderr
    assert ("has no accuracy on validation clips" in ended.stderr) == (code == 2)
