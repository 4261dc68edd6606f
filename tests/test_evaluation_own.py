"""`evaluate --method FILE.py:NAME`: anybody's method in the same table, and what is wrong with it told."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from toy_squares import WORDS, Adder, Squares
from whytube.errors import ArgumentError, ModelError
from whytube.evaluation import evaluate
from whytube.evaluation.methods import Centre, load_method
from whytube.evaluation.state import method_fingerprint

EXAMPLE = Path(__file__).parent.parent / "examples" / "my_method.py"

FILE = """
import torch
from whytube.search.verify import Regions

def regions(question, k, value=4.0):
    cases = (*question.negative.shape, k)
    boxes = torch.full((*cases, question.clips.shape[2], 4), value)
    boxes[..., 2:] += 8
    return Regions(boxes, torch.full(cases, -1), torch.zeros(cases))

class Base:
    name = "mine"
    def __init__(self, classifier, attribute_names, table):
        assert table.shape == (len(classifier.classes), len(attribute_names))
        self.classifier = classifier
    def __call__(self, question, k):
        return regions(question, k)

class Runs(Base):
    def __call__(self, question, k):
        with torch.no_grad():
            self.classifier(question.clips)
            self.classifier(question.clips[:1])
        return regions(question, k)

class Random(Base):
    def __call__(self, question, k):
        return regions(question, k, float(torch.rand(()) * 20))

class NoName(Base):
    name = None

class Nan(Base):
    def __call__(self, question, k):
        return regions(question, k, torch.nan)

class Short(Base):
    def __call__(self, question, k):
        return regions(question, k + 1)

class Nothing(Base):
    def __call__(self, question, k):
        return None

class Raises(Base):
    def __call__(self, question, k):
        return 1 / 0

class Sees(Base):
    def with_truth(self, question, truth, k):
        return regions(question, k)

def function(classifier, attribute_names, table):
    return Base(classifier, attribute_names, table)

def bare(classifier, attribute_names, table):
    return lambda question, k: regions(question, k)

def none():
    pass

THING = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "their_method.py"
    path.write_text(FILE)
    return path


def made(file, name):
    return load_method(f"{file}:{name}", Adder(), attribute_names=WORDS, table=Squares.table)


def measured(method):
    return evaluate([method], Adder(), Squares(3), fills=("mean",), negatives=2, k=1)


def test_functions_and_classes_make_methods(file):
    for name in ("function", "Base"):
        results = measured(made(file, name))
        assert results.methods["mine"].figure("tube_area").mean == pytest.approx(1 / 16)
        assert results.methods["mine"].figure("masked_clips").mean == 0


def test_what_it_runs_is_counted(file):
    model = Adder()
    method = load_method(f"{file}:Runs", model, attribute_names=WORDS, table=Squares.table)
    found = evaluate([method], model, Squares(3), fills=("mean",), negatives=2)
    assert found.methods["mine"].figure("masked_clips").mean == pytest.approx(4 / 6, abs=1e-6)
    assert found.to_dict()["methods"]["mine"]["masked_clips"] == pytest.approx(4 / 6, abs=1e-6)


def test_its_random_numbers_are_the_same_again(file):
    torch.manual_seed(3)
    first = measured(made(file, "Random"))
    assert measured(made(file, "Random")).to_dict() == first.to_dict()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Bose", "unknown name in their_method.py 'Bose'. Did you mean 'Base'?"),
        ("THING", "THING in .*their_method.py must be a function or a class, got int"),
        ("none", r"their_method.py failed with TypeError: none\(\) takes 0 positional arguments but 3 were given"),
        ("bare", "bare in .* must give a method, an object with a `name` .*, got function"),
        ("NoName", "NoName in .* must give a method"),
        ("Sees", "Sees in .* must give a method without `with_truth`"),
    ],
)
def test_what_gives_no_method_is_refused(file, name, message):
    with pytest.raises((ModelError, ArgumentError), match=message):
        made(file, name)


def test_a_file_must_be_there(tmp_path):
    for text, message in (
        (f"{tmp_path / 'gone.py'}:Base", "there is no such file"),
        ("Base", "expected FILE.py:NAME"),
        ("their_method.py", "expected FILE.py:NAME"),
    ):
        with pytest.raises(ModelError, match=message):
            load_method(text, Adder(), attribute_names=WORDS, table=Squares.table)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Nan", "`boxes of 'mine'` must be finite"),
        ("Short", r"`boxes of 'mine'` must be of shape \(3, 2, 1, 4, 4\), got \(3, 2, 2, 4, 4\)"),
        ("Nothing", "`answer of 'mine'` must be whytube.search.verify.Regions, got NoneType"),
        ("Raises", r"their_method.py failed with ZeroDivisionError: division by zero \(line \d+ of their_method.py\)"),
    ],
)
def test_answers_that_cannot_be_judged_are_refused(file, name, message):
    with pytest.raises((ModelError, ArgumentError), match=message):
        measured(made(file, name))


def test_another_version_of_the_file_is_another_method(file):
    before = method_fingerprint(made(file, "Base"))
    assert method_fingerprint(made(file, "Base")) == before
    file.write_text(FILE + "# changed\n")
    assert method_fingerprint(made(file, "Base")) != before


def run(*words):
    command = [sys.executable, "-m", "whytube", "evaluate", "--effort", "2", "--count", "2", "--device", "cpu"]
    command += ["--fills", "mean"]
    return subprocess.run([*command, *map(str, words)], capture_output=True, text=True)


def test_the_example_runs(tmp_path):
    out = tmp_path / "results.json"
    ran = run("--peers", "centre", "--method", f"{EXAMPLE}:Grid", "-k", 2, "--out", out)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(out.read_text())
    grid = found["methods"]["grid"]
    assert grid["masked_clips"] == pytest.approx(16 / 3, abs=1e-5), "16 cells for three questions about a clip"
    assert grid["tube_area"] == pytest.approx(1 / 16)
    assert grid["concept_accuracy"]["top1"] is None
    assert len(grid["ranks"]) == 2
    assert "grid" in found["comparisons"]["ours"]
    assert found["methods"]["ours"]["masked_clips"] > 0
    assert found["provenance"]["settings"]["area"] == 0.1


def test_the_command_says_what_is_wrong(file):
    for words, message in (
        (("--method", f"{file}:Nan"), "must be finite"),
        (("--method", f"{file}:Bose"), "Did you mean 'Base'?"),
        (("--method", "nowhere.py:Base"), "there is no such file"),
        (("--peers", "centre", "--area", "0"), "--area must be a fraction of the clip, more than 0"),
    ):
        ran = run(*words)
        assert ran.returncode == 2, ran.stderr
        assert message in ran.stderr.replace("\n", " ")


def test_names_must_differ(file):
    named = Centre(WORDS, name="mine")
    with pytest.raises(ArgumentError, match="each with a name of its own"):
        evaluate([named, made(file, "Base")], Adder(), Squares(3))
