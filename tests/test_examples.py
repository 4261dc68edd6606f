"""The examples run, with less data than they show."""

import importlib
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
    """List the kinds of output of all cells; words may differ: half precision depends on the processor."""
    return [
        sorted({"stream"} if "text" in output else output.get("data", {}))
        for cell in notebook.cells
        for output in cell.get("outputs", ())
    ]


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
    for notebook in (fresh, committed):
        assert "classified as quickstep, not charleston" in str(notebook.cells)
    kinds = [kind for row in shown(fresh) for kind in row]
    assert {"text/html", "image/png"} <= set(kinds)
    assert (FOLDER / "explain.ipynb").stat().st_size < 400_000
