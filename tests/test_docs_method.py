"""docs/method.md names functions and tests that exist, and its inequalities hold."""

import ast
import dataclasses
import importlib
import inspect
import re
from pathlib import Path

import pytest
import torch
import typer
from torch.nn.functional import logsigmoid

from whytube.classifiers.c3d_resnet import C3DResNet
from whytube.cli import app
from whytube.evaluation.methods import CONTROLS, COUNTERPARTS, MAKERS, METHODS
from whytube.evaluation.results import Results
from whytube.explainer.explainer import OBJECTIVES
from whytube.explainer.scores import SHAPE_SETS
from whytube.explaining import explain
from whytube.models import PRESETS
from whytube.models.files import shipped_names
from whytube.subpath.layer import FORMS
from whytube.training.recipe import Recipe
from whytube.tubes import FILLS

HERE = Path(__file__).resolve().parent
TEXT = (HERE.parent / "docs" / "method.md").read_text(encoding="utf-8")
SOURCE = HERE.parent / "src" / "whytube"
PARTS = "|".join(sorted(path.stem for path in SOURCE.iterdir() if not path.name.startswith("_")))
FUNCTIONS = sorted(set(re.findall(rf"`((?:{PARTS})\.[\w.]+)`", TEXT)))
TESTS = sorted(set(re.findall(r"`(test_\w+\.py)::(test_\w+)`", TEXT)))
SPANS = {
    span.replace("\\|", "|") for span in re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL))
}
SYMBOLS = {
    *(
        "A",
        "B",
        "H",
        "c",
        "h",
        "m",
        "s",
        "s'",
        "x",
        "a_i",
        "b_cs",
        "c_pos",
        "d_ab",
        "dw",
        "n_a",
        "p^",
        "w_c",
        "w_s",
        "m_cs",
    ),
    *("h(x)", "p(c|x)", "p(s | c, x)", "p^(c, s | ...)", "exp(m_cs[R])", "H(c|x, R)", "H(c | x, R)", "MI(c, s | x, R)"),
    *("1 / C", "9 d", "log C", "sqrt(d)", "(C - 1) log 2", "C (C - 1) / 2", "K = 8", "k = 1", "x * z", "dm[R]"),
    *("m_As - m_Bs", "d_ba = -d_ab", "dm = m_pos - m_neg", "dw = (w_pos - w_neg) * (1 + w_s)", "w_s . h + b_s"),
    *("dw . pool(h, R*)", "pool(h, R*)", "max dm[R] = dw . pool(h, R*)", "p(c|x) = f(h(x))", "y = sigmoid(dm[R])"),
    *("w_cs = w_c * w_s + w_c + w_s", "w_i = w * a_i", "1 + sum a_i <= prod (1 + a_i)", "-log sigmoid"),
    "-log sigmoid(d_ab) - log sigmoid(-d_ab) >= 2 log 2",
    "-log sigmoid(max over R of dm[R] + min over R of dm[R])",
    *("NAME", "NAME-verified"),  # which stand for any peer
}
"""Spans in backticks that name nothing in the code."""
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


def commands():
    """Return every command of whytube: words -> the command, groups too."""
    found, left = {}, [((), typer.main.get_command(app))]
    while left:
        words, command = left.pop()
        found[words] = command
        left += [((*words, name), one) for name, one in getattr(command, "commands", {}).items()]
    return found


def named_values():
    """Return what a word in backticks may be: a method, an objective, a model, a result, a parameter ..."""
    known = {*METHODS, *CONTROLS, *COUNTERPARTS, *MAKERS, *OBJECTIVES, *PRESETS, *shipped_names(), *FILLS, *SHAPE_SETS}
    known |= {*C3DResNet.cuts, *(field.name for field in dataclasses.fields(Recipe))}
    known |= {path.stem for path in (HERE.parent / "results").glob("*.json")}
    known |= {words[-1] for words in commands() if words}
    known |= set(inspect.signature(explain).parameters)
    return known | {path for run in ("world", "jhmdb-1") for path in figure_paths(run)}


def figure_paths(run):
    """Return the paths of figures that a result has, without the number of attributes that may be right."""
    found = Results.load(HERE.parent / "results" / f"{run}.json").methods.values()
    return {re.sub(r"\.top\d$", "", path) for method in found for path in method.figures}


def test_every_name_in_backticks_is_one_that_exists():
    """A new kind of name needs a rule here; a symbol of the paper stands in SYMBOLS."""
    known, classes = named_values(), class_members()
    unknown = [
        span
        for span in SPANS - SYMBOLS
        if span not in known
        and not re.fullmatch(r"test_\w+\.py::test_\w+|[A-Z][A-Z_]{3,}", span)  # tests of their own look at these
        and span not in FUNCTIONS
        and not is_call(span, known)
        and not is_setting(span)
        and not (HERE.parent / span).exists()
        and not (re.fullmatch(r"[A-Z]\w+(\.\w+)?", span) and span in classes)
    ]
    assert sorted(unknown) == []


def test_a_symbol_that_is_not_on_the_page_is_not_exempt():
    assert sorted(SYMBOLS - SPANS) == []


def is_call(span, known):
    """Whether a span is a command with options, or options alone; `test_options_exist` looks at the options."""
    words, *options = re.split(r"\s*(?<!\S)(?=--?[a-z])", span)
    values = {value.split("=")[0] for option in options for value in option.split()[1:]}
    return bool(options) and tuple(words.split()) in commands() and values <= known | {"all-peers"}


def is_setting(span):
    """Whether a span is a parameter with a value that it may have."""
    name, _, value = span.partition("=")
    return name == "forms" and value.strip('"') in FORMS


def class_members():
    """Return the classes of the package and their members: "Explainer", "Explainer.rounds" ..."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found |= {node.name} | {
                    f"{node.name}.{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)
                }
    return found


def test_options_exist():
    named = {option for code in re.findall(r"`([^`\n]+)`", TEXT) for option in re.findall(r"(?<!\S)--[a-z-]+", code)}
    options = {option for command in commands().values() for one in command.params for option in one.opts}
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
    demo = Results.load(HERE.parent / "results" / "world-64.json")
    ahead = demo.comparisons["paper"]["centre"]["negative_class_accuracy.top3"]
    assert ahead.low > 0
    told = f"by {ahead.difference:.2f} [{ahead.low:.2f}, {ahead.high:.2f}] in paired questions"
    assert told.replace("0.", ".") in STATEMENTS
    letter = Results.load(HERE.parent / "results" / "world-letter.json").methods
    zero = {name: letter[name].figure("fills.zero.negative_class_accuracy.top3") for name in ("paper", "centre")}
    assert zero["paper"].mean < zero["centre"].mean
    to_the_letter = f"({zero['paper'].mean:.2f} against {zero['centre'].mean:.2f})".replace("0.", ".")
    assert f"with black and tubes of any area {to_the_letter}" in STATEMENTS


@pytest.mark.parametrize(
    ("file", "black", "begin", "shown"),
    [
        ("world", False, "on three networks at 112 x 112: ", True),
        ("world", True, "on three networks at 112 x 112: .64 against .50, with black ", False),
        ("world-full", False, "on three of full size: ", True),
        ("world-full", True, "on three of full size: .61 against .42, with black ", False),
        ("world-64", False, "on the shipped demo: ", True),
        ("world-64", True, "on the shipped demo: .57 against .41, with black ", True),
        ("jhmdb", False, "not on three splits: ", False),
        ("jhmdb-1", False, "holds on split 1 (", True),
        ("jhmdb-1", True, "a random tube has .46; with black ", False),
        ("world-64-unerased", False, "", False),
        ("jhmdb-boxed-unerased", False, "", False),
    ],
)
def test_figures_of_the_papers_claim_are_those_of_the_files(file, black, begin, shown):
    found = Results.load(HERE.parent / "results" / f"{file}.json").methods
    path = f"{'fills.zero.' if black else ''}negative_class_accuracy.top3"
    paper, centre = (found[name].figure(path) for name in ("paper", "centre"))
    assert (paper.low > centre.high) == shown
    if begin:
        assert f"{begin}{paper.mean:.2f} against {centre.mean:.2f}".replace("0.", ".") in STATEMENTS


PAGES = [HERE.parent / "README.md", HERE.parent / "CONTRIBUTING.md", *(HERE.parent / "docs").rglob("*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(HERE.parent).as_posix())
def test_links_lead_somewhere(page):
    """On every page: to a file that is there, and to a heading that it has."""
    own = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", own):
        if "://" in target:
            continue
        place, _, heading = target.partition("#")
        assert not place or (page.parent / place).exists(), target
        if heading:
            text = (page.parent / place).read_text(encoding="utf-8") if place else own
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
