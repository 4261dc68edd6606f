import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from xml.etree import ElementTree

import pytest

from studies.cells import difference, number, table, with_interval, zeros
from studies.goals import GOALS, goals_table
from studies.losses import loss_pictures
from studies.negatives import picture_name, pictures
from studies.page import Found, curves_table, filled, read_found
from studies.published import UNEQUAL, fc_study, top3
from studies.series import FRONT, effort_pictures, front_picture
from toy_squares import WORDS, Adder, Knowing, Squares
from whytube.errors import DataError
from whytube.evaluation import evaluate
from whytube.evaluation.methods import MAKERS, Centre, MapMethod, TrueBox
from whytube.evaluation.results import Comparison, Figure

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "results").glob("*.md"))]


def page_of(runs, *marks, trainings=None, benchmarks=None):
    """Fill a page of these marks."""
    text = "".join(f"<!-- results: {mark} -->\n<!-- end -->\n" for mark in marks)
    return filled(text, Found(runs, trainings or {}, benchmarks or {}))


def section(name, run):
    return page_of({name: run}, f"run {name}")


@pytest.fixture(scope="module")
def run():
    source = Squares(6)
    return evaluate([Centre(WORDS), TrueBox()], Adder(), source)


def test_a_run_is_shown_whole(run):
    page = section("squares", run)
    assert page.count("| `true-box` |") == 4 + 2, "three negatives are all of four classes: two rows of their curve"
    assert f"Commit {run.provenance['commit'] or 'unknown'}" in page


def test_the_paper_stands_beside_ours(run):
    page = page_of({"squares": run, "other": run}, "beside squares")
    assert "| proposed (published) | UCF101-24 | 0.64 | 0.88 | - | - | 0.14 / 0.41 / 0.65 | - |" in page
    assert "| baseline (published) | Olympic Sports | 0.45 | 0.76 | - | - | 0.02 / 0.07 / 0.12 | - |" in page
    assert "| `centre` | squares |" in page
    assert "other" not in page
    assert page_of({}, "beside").count("(published)") == 4


def test_every_row_is_as_wide_as_its_head(run):
    widths = None
    for line in page_of({"squares": run}, "run squares", "benchmark squares", "table squares centre").splitlines():
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
    page = page_of({"fc1": first, "fc3": other, "smaller": smaller}, "fc")
    assert "| proposed (published, Olympic Sports) | zero, as in the paper | 0.62 | 0.64 | 0.59 |" in page
    for fill in ("zero, as in the paper", "unseen fills"):
        assert f"| `centre` | {fill} | 1.00 [1.00, 1.00] | - | 1.00 [1.00, 1.00] |" in page


@pytest.mark.parametrize(
    "other",
    [{"area": 1.0}, {"clips": 5}, {"negatives": 2}, {"split": "val"}, {"k": 2}, {"search": {"effort": 6}}, {}],
    ids=lambda other: next(iter(other), "nothing"),
)
def test_a_run_that_was_asked_otherwise_does_not_stand_in_the_fc_study(run, other):
    def with_layers(layers, right, **asked):
        told = replace(run.classifier, settings={"fc_layers": layers}, accuracy=Figure(right))
        settings = run.provenance["settings"] | {name: value for name, value in asked.items() if name != "search"}
        provenance = {**run.provenance, "settings": settings} | {"search": asked.get("search", {"effort": 96})}
        return replace(run, classifier=told, provenance=provenance)

    study = {"world": with_layers(1, 0.9), "world-fc2": with_layers(2, 0.8)}
    assert fc_study({**study, "world-other": with_layers(1, 0.1, **other)}) == fc_study(study)


def test_results_are_read_from_a_folder(tmp_path, run):
    run.save(tmp_path / "b.json")
    run.save(tmp_path / "a.json")
    (tmp_path / "benchmark.json").write_text('{"rows": []}')
    found = read_found(tmp_path)
    assert (list(found.runs), list(found.benchmarks)) == (["a", "b"], ["benchmark"])
    assert found.runs["b"] == run
    (tmp_path / "c.json").write_text("{")
    with pytest.raises(DataError, match=r"c\.json: cut off, or not JSON"):
        read_found(tmp_path)


def test_the_pages_are_those_of_the_results():
    """`make results` would change nothing: no figure between marks was typed, and none is older than its file."""
    found = read_found(ROOT / "results")
    for page in PAGES:
        images = os.path.relpath(ROOT / "docs" / "images", page.parent)
        text = page.read_text()
        assert filled(text, replace(found, images=images), page.name) == text
    drawn = pictures(found.runs) | effort_pictures(found.runs) | loss_pictures(ROOT / "results")
    drawn[FRONT] = front_picture(found.runs)
    kept = ROOT / "docs" / "images"
    assert {name: (kept / name).read_text() for name in drawn} == drawn
    made = {path.name for kind in ("negatives-*", "paper-curves*", "effort-*") for path in kept.glob(f"{kind}.svg")}
    assert made <= set(drawn), "no picture of results that are gone"


def test_every_run_stands_on_a_page():
    marks = " ".join(re.findall(r"<!-- results: (.*?) -->", "".join(page.read_text() for page in PAGES)))
    for name in read_found(ROOT / "results").runs:
        series = re.fullmatch(r"(.+)-(effort|front)-[\d.]+", name)
        wanted = f"{series[2]} {series[1]}" if series else f"run {name}"
        assert f"{wanted} " in f"{marks} ", name


def test_the_folder_of_results_says_what_each_file_is():
    named = re.findall(r"`([\w*-]+)`", (ROOT / "results" / "README.md").read_text())
    for path in (ROOT / "results").glob("*.json"):
        assert any(fnmatch(path.stem, name) for name in named), path.name


def test_only_what_is_between_marks_changes(run):
    text = "Before.\n<!-- results: table squares centre -->\nold\n<!-- end -->\nAfter.\n"
    new = filled(text, Found({"squares": run}, {}, {}))
    assert new.startswith("Before.\n<!-- results: table squares centre -->\n\n| method |")
    assert new.endswith("<!-- end -->\nAfter.\n")
    assert "old" not in new
    assert filled(new, Found({"squares": run}, {}, {})) == new


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- results: run other -->\n<!-- end -->", r"no results/other\.json"),
        ("<!-- results: effort other -->\n<!-- end -->", r"no results/other-effort-\*\.json"),
        ("<!-- results: table squares nobody -->\n<!-- end -->", "'nobody'"),
        ("<!-- results: tables -->\n<!-- end -->", "the mark 'tables'"),
        ("<!-- results: goals -->\n", "page.md has a mark .* without its"),
    ],
)
def test_a_mark_that_cannot_be_filled_is_an_error(run, text, message):
    with pytest.raises(DataError, match=message):
        filled(text, Found({"squares": run}, {}, {}), "page.md")


def test_goals_are_reached_or_missed_by_their_files(run):
    reached = replace(run.methods["centre"], figures={"negative_class_accuracy.top1": Figure(0.65, 0.6, 0.7)})
    page = goals_table(
        {"jhmdb-1": replace(run, methods=dict.fromkeys(("ours", "ours-regions", "predicted"), reached))},
        {"answer-h200": {"rows": [{"effort": "normal"}, {"effort": "thorough", "seconds": 1.501, "network": 0.9}]}},
    )
    rows = {tuple(part.strip() for part in line.strip("|").split("|")) for line in page.splitlines()}
    assert ("J-HMDB without words: B rises most", "at least 0.65", "0.65 [0.60, 0.70]", "reached", "`jhmdb-1`") in rows
    assert ("`thorough` on an H200, seconds", "at most 1.50", "1.501", "**missed**", "`answer-h200`") in rows
    assert ("share of that in the classifier", "at least 0.90", "0.90", "reached", "`answer-h200`") in rows
    assert ("two workers against one", "at least 1.70", "-", "not measured", "`bulk-cpu`") in rows
    assert len(page.splitlines()) == 2 + len(GOALS) + sum(map(len, GOALS.values()))


def test_every_goal_was_measured():
    found = read_found(ROOT / "results")
    assert "not measured" not in goals_table(found.runs, found.benchmarks)


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
    page = page_of(fronts, "front a", "front-picture")
    rows = [line.split(" |")[0] for line in page.splitlines() if line.startswith("| ")]
    assert rows == ["| weight of the fit", "| ---", "| 0", "| 1 (shipped)", "| 10"], "in order of their weights"
    assert "0.65 [0.10, 0.90]" in page
    assert f"(images/{FRONT})" in page
    picture = ElementTree.fromstring(front_picture(fronts))
    assert ["shipped" in spot.get("class") for spot in picture.findall("{*}circle")] == [False, True, False]
    spots = [(float(spot.get("cx")), float(spot.get("cy"))) for spot in picture.findall("{*}circle")]
    assert spots == sorted(spots), "further right is lower: better words, worse fidelity"
    assert front_picture({"a-front-0": replace(fronts["a-front-0"], methods={})}) is None
    for name, found in fronts.items():
        found.save(tmp_path / f"{name}.json")
    page = tmp_path / "page.md"
    page.write_text("<!-- results: front-picture -->\n<!-- end -->\n")
    written(tmp_path, page)
    assert (tmp_path / "images" / FRONT).read_text() == front_picture(fronts)
    assert f"(images/{FRONT})" in page.read_text()
    ended = written(tmp_path, tmp_path / "none.md", check=False)
    assert ended.returncode == 2
    assert "there is no" in ended.stderr


def written(folder, page, check=True):
    program = [sys.executable, ROOT / "studies" / "results.py", "pages", folder, page, "--images", folder / "images"]
    return subprocess.run(program, check=check, capture_output=True, text=True)


def test_effort_is_a_table_and_a_picture(run):
    def costing(clips):
        known = run.methods["centre"]
        found = replace(known, figures={**known.figures, "masked_clips": Figure(clips)})
        return replace(run, methods={"ours": found, "none": replace(known, figures={})})

    members = {"a-effort-16": costing(32.0), "a-effort-4": costing(8.0)}
    page = page_of(members, "effort a")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert [row.split(" |")[:2] for row in rows] == [
        [f"| `{method}`", f" {tubes}"] for method in ("ours", "none") for tubes in (4, 16)
    ]
    assert "(images/effort-a.svg)" in page
    picture = ElementTree.fromstring(effort_pictures(members)["effort-a.svg"])
    assert len(picture.findall("{*}polyline")) == 1, "what has no cost is not drawn"
    first, last = (float(spot.get("cx")) for spot in picture.findall("{*}circle"))
    assert first < last
    assert {"8", "16", "32", "64"} <= {text.text for text in picture.findall("{*}text")}


def test_documented_accuracies_come_from_results():
    found = json.loads((ROOT / "results" / "jhmdb-classifiers.json").read_text())
    assert curves_table(found["curves"], found["metrics"]) in (ROOT / "docs" / "jhmdb.md").read_text()


def test_everything_that_was_measured_is_shown(run):
    model, source = Adder(), Squares(6)
    methods = [Knowing(), Centre(WORDS), MapMethod(model, MAKERS["grad-cam"])]
    options = {"k": 2, "curves": True, "judge_with": Adder(), "area": 0.05, "fills": ("zero", "mean")}
    found = evaluate(methods, model, source, **options).with_provenance(weights="random", reader="OpenCV")
    page = section("full", found)
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
    plain = section("squares", run)
    assert "Insertion and deletion over" not in plain
    assert "masked on `" not in plain
    test_every_row_is_as_wide_as_its_head(found)


def test_differences_with_their_chance():
    assert difference(Comparison(0.123, 0.02, 0.3, 0.0004)) == "+0.12 [0.02, 0.30], p < .001"
    assert difference(Comparison(-0.5, -0.6, -0.4, 0.25)) == "-0.50 [-0.60, -0.40], p .250"
    assert difference(Comparison(0.0, 0.0, 0.0, 1.0)) == "+0.00 [0.00, 0.00], p 1.000"
    assert difference(None) == "-"


def test_the_benchmark_is_sorted(run):
    page = page_of({"squares": run}, "benchmark squares")
    values = [float(line.split(" | ")[3].split(" ")[0]) for line in page.splitlines() if line.startswith("| `")]
    assert values == sorted(values, reverse=True)
    assert len(values) == 2


def test_notes_of_several_methods_are_one_line(run):
    told = [
        "`a`: 12 of 21 tubes were above the area and were shrunk to it.",
        "`b` says no words: it has no figures of words.",
        "`c` says no words: it has no figures of words.",
        "`a`: 16 of 21 tubes were above the area and were shrunk to it.",
        "The evaluation ended early.",
    ]
    page = section("squares", run.with_provenance(notes=told))
    assert "- Tubes above the area, shrunk to it: `a` 28 of 42.\n" in page
    assert "- `b`, `c` say no words: they have no figures of words.\n" in page
    assert "- The evaluation ended early.\n" in page


def test_cells():
    assert number(None) == "-"
    assert number(0.625, 1) == "0.6"
    assert table(("a", "b"), [("1", "2")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    assert with_interval(Figure(0.5, 0.25, 0.75)) == "0.50 [0.25, 0.75]"
    assert with_interval(Figure(0.5)) == "0.50"
    assert with_interval(Figure()) == "-"


def test_published_numbers_stand_in_the_columns_of_their_protocol(run):
    page = page_of({"squares": run}, "beside squares")
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
    page = section("squares", replace(run, methods=old))
    head, row = (
        next(line for line in page.splitlines() if line.startswith(f"| {word}")) for word in ("method", "`centre`")
    )
    place = head.split(" | ").index("zero, as in the paper: top-1 / 3 / p(A) falls")
    assert row.split(" | ")[place] == "-"
    assert "as printed" not in head
    assert zeros(old["centre"].figures) == "-"
    assert zeros(run.methods["centre"].figures).count(" / ") == 2


def test_all_negatives_are_a_table_and_a_picture(tmp_path):
    found = evaluate([Knowing(), Centre(WORDS)], Adder(), Squares(6), negatives="all", k=2)
    page = section("squares-negatives", found)
    assert "all 3 negatives of each" in page
    assert f"(images/{picture_name('squares-negatives')})" in page
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
    page = tmp_path / "page.md"
    page.write_text("No mark.\n")
    written(tmp_path, page)
    assert page.read_text() == "No mark.\n"
    assert (tmp_path / "images" / picture_name("squares-negatives")).read_text() == drawn[
        picture_name("squares-negatives")
    ]


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


def test_what_networks_reached_when_they_were_trained_stands_in_the_fc_study(tmp_path, run):
    def with_layers(layers):
        return replace(run, classifier=replace(run.classifier, settings={"fc_layers": layers}))

    runs = {"world": with_layers(1), "world-fc3": with_layers(3)}
    reached = {"fc1, seed 0": 0.99, "fc1, seed 1": 0.98, "fc3, seed 0": 1.0, "another network": 0.1}
    metrics = {title: {"test accuracy": share, "test clips": 480} for title, share in reached.items()}
    (tmp_path / "world-classifiers.json").write_text(json.dumps({"curves": {}, "metrics": metrics, "provenance": {}}))
    page = page_of(runs, "fc", trainings=read_found(tmp_path).trainings)
    row = "of 480 test clips each [range of the seeds] | - | 0.985 [0.980, 0.990] | - | 1.000 [1.000, 1.000] |"
    assert row in page
    assert "the same, of" not in page_of(runs, "fc")
    assert "the same, of" not in page_of(runs, "fc", trainings={"other": metrics})


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
