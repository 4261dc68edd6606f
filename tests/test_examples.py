"""The examples run, with less data than they show."""

import importlib
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "examples"


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def test_your_own_model(example, tmp_path, capsys):
    sentences = example("your_own_model").main(tmp_path, count=40, steps=2, clips=30)
    assert all(sentence.startswith(("classified as ", "guessed as ")) for sentence in sentences)
    printed = capsys.readouterr().out
    assert printed.startswith("layers stem, body\n")
    assert all(sentence in printed for sentence in sentences)


def test_its_twin_agrees(example, tmp_path, capsys):
    example("your_own_model_by_hand").main(tmp_path, count=40, steps=2, clips=30)
    assert capsys.readouterr().out.endswith("both ways\n")


def shown(notebook):
    """List what every cell shows: kinds of output and their words, no embedded files; numbers may differ a little."""
    rows = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = {"stream": output.get("text", "")} | dict(output.get("data", {}))
            texts = {kind: "" if kind.startswith("image/") else str(text) for kind, text in data.items()}
            plain = {kind: re.sub(r"base64,[^\"]*", "", text) for kind, text in texts.items()}
            rows.append({kind: re.sub(r"[0-9.]+", "#", text) for kind, text in plain.items()})
    return rows


# ipykernel and its libraries warn of what they will change in themselves.
@pytest.mark.filterwarnings("default")
def test_the_notebook_shows_what_it_shows_when_run():
    committed = nbformat.read(FOLDER / "explain.ipynb", as_version=4)
    nbformat.validate(committed)
    fresh = nbformat.read(FOLDER / "explain.ipynb", as_version=4)
    for cell in fresh.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    NotebookClient(fresh, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}}).execute()
    assert shown(fresh) == shown(committed)
    kinds = [kind for row in shown(fresh) for kind in row]
    assert {"text/html", "image/png"} <= set(kinds)
    assert (FOLDER / "explain.ipynb").stat().st_size < 400_000
