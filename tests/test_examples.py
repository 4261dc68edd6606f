"""The examples run, with less data than they show."""

import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def test_your_own_model(example, tmp_path, capsys):
    sentences = example("your_own_model").main(tmp_path, count=40, steps=2, clips=30)
    assert all(sentence.startswith("classified as ") for sentence in sentences)
    printed = capsys.readouterr().out
    assert printed.startswith("layers stem, body\n")
    assert all(sentence in printed for sentence in sentences)


def test_its_twin_agrees(example, tmp_path, capsys):
    example("your_own_model_by_hand").main(tmp_path, count=40, steps=2, clips=30)
    assert capsys.readouterr().out.endswith("both ways\n")
