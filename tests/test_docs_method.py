"""docs/method.md names functions and tests that exist, and its inequalities hold."""

import dataclasses
import importlib
import re
from pathlib import Path

import pytest
import torch
import typer
from torch.nn.functional import logsigmoid

from whytube.cli import app
from whytube.evaluation.methods import CONTROLS, COUNTERPARTS, MAKERS, METHODS
from whytube.evaluation.results import Results
from whytube.explainer.explainer import OBJECTIVES
from whytube.models import PRESETS
from whytube.models.files import shipped_names
from whytube.training.recipe import Recipe

HERE = Path(__file__).resolve().parent
TEXT = (HERE.parent / "docs" / "method.md").read_text(encoding="utf-8")
SOURCE = HERE.parent / "src" / "whytube"
PARTS = "|".join(sorted(path.stem for path in SOURCE.iterdir() if not path.name.startswith("_")))
FUNCTIONS = sorted(set(re.findall(rf"`((?:{PARTS})\.[\w.]+)`", TEXT)))
TESTS = sorted(set(re.findall(r"`(test_\w+\.py)::(test_\w+)`", TEXT)))
STATEMENTS = TEXT[TEXT.index("## Statement by statement") :]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_exist(name):
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(["whytube", *parts[:cut]]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        assert callable(found)
        return
    pytest.fail(f"there is no {name}")


def test_methods_objectives_models_settings_and_results_exist():
    named = set(re.findall(r"`([a-z0-9]+(?:[-+][a-z0-9]+)+|masked_runs|lasting|erase)`", TEXT))
    known = {*METHODS, *CONTROLS, *COUNTERPARTS, *MAKERS, *OBJECTIVES, *PRESETS, *shipped_names()}
    known |= {field.name for field in dataclasses.fields(Recipe)}
    known |= {path.stem for path in (HERE.parent / "results").glob("*.json")}
    assert len(named) > 15
    assert named <= known, f"unknown: {sorted(named - known)}"


def test_options_exist():
    named = {option for code in re.findall(r"`([^`\n]+)`", TEXT) for option in re.findall(r"(?<!\S)--[a-z-]+", code)}
    commands, options = [typer.main.get_command(app)], set()
    while commands:
        command = commands.pop()
        commands += getattr(command, "commands", {}).values()
        options |= {option for parameter in command.params for option in parameter.opts}
    assert {"--pretrained", "--shapes"} <= named
    assert named <= options, f"unknown: {sorted(named - options)}"


@pytest.mark.parametrize(("file", "name"), TESTS)
def test_tests_exist(file, name):
    assert re.search(rf"^ *def {name}\(", (HERE / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_no_test_is_named_without_its_file():
    assert set(re.findall(r"\btest_\w+", TEXT)) <= {part.removesuffix(".py") for pair in TESTS for part in pair} | {
        "test_docs_method"
    }


def test_constants_exist():
    names = set(re.findall(r"`([A-Z][A-Z_]{3,})`", TEXT)) - {"NAME"}  # which stands for any
    code = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    assert {"OBJECTIVES", "FIT_WEIGHT"} <= names
    assert [name for name in names if not re.search(rf"^{name}\b", code, re.MULTILINE)] == []


def statements():
    """Rows of the table of statements: paper, where, test, verdict."""
    lines = [line for line in STATEMENTS.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def test_every_statement_has_a_test_and_a_verdict_with_a_reason():
    rows = statements()
    assert len(rows) >= 72
    for statement, where, test, verdict in rows:
        assert where, statement
        assert re.fullmatch(r"(`test_\w+\.py::test_\w+`(, )?)+", test), statement
        assert re.match(r"exact|equivalent|differs|holds|a definition|the paper does not say", verdict), statement
        if verdict.startswith(("equivalent", "differs")):
            assert ": " in verdict, f"{statement}: no reason"
            assert len(verdict.partition(": ")[2]) > 10, statement


def test_every_equation_is_on_the_page():
    assert len(FUNCTIONS) > 15
    assert len(TESTS) > 20
    rows = [line.split("|")[1] for line in TEXT.splitlines() if line.startswith("| (")]
    numbers = {int(n) for row in rows for n in re.findall(r"\((\d+)\)", row)}
    assert set(range(1, 11)) <= numbers


def test_the_papers_claim_holds_where_it_is_said_to():
    found = Results.load(HERE.parent / "results" / "world-64-paper.json").methods
    top3 = {name: found[name].figure("negative_class_accuracy.top3") for name in ("paper", "paper-sgd", "centre")}
    assert top3["paper"].low > top3["centre"].high
    assert top3["paper-sgd"].low < top3["centre"].high, "not shown"
    said = f"top-3 {top3['paper'].mean:.2f} against {top3['centre'].mean:.2f}".replace("0.", ".")
    assert f"{said} of the centre" in STATEMENTS


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        page, _, heading = target.partition("#")
        text = (HERE.parent / "docs" / page).read_text(encoding="utf-8") if page else TEXT
        if heading:
            headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in headings}, target


@pytest.fixture
def scores():
    """Tube scores m_cs[R] of 5 classes, 3 words and 7 tubes, in 200 draws."""
    return 3 * torch.randn(200, 5, 3, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_the_repaired_bound_holds(scores):
    conditional = scores.log_softmax(1)[:, 0]  # log p(c = 0 | s, R): (200, 3, 7)
    pairs = logsigmoid(scores[:, :1] - scores[:, 1:])  # (200, 4, 3, 7)
    assert (conditional >= pairs.sum(1)).all()
    assert (conditional.amin(-1) >= pairs.amin(-1).sum(1)).all()


def test_the_step_as_written_does_not(scores):
    joint = scores.flatten(1, 2).log_softmax(1).view_as(scores)[:, 0].amin(-1)  # (12): (200, 3)
    difference = (scores[:, :1] - scores[:, 1:]).amin(-1)
    assert (joint < difference.sigmoid().sum(1)).all()  # (13) as printed
    assert (joint < logsigmoid(difference).sum(1)).any()  # with its logarithm
