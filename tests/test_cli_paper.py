"""The paper's own form and its own run from the command line, with tiny networks."""

import json
import sys
from pathlib import Path

import pytest

from whytube.cli import main
from whytube.models import load_model

ROOT = Path(__file__).resolve().parents[1]
REAL = ROOT.parent / "shared" / "data" / "ucf101_24"
SMALL = ("--set", "width=0.0625", "--set", "frames=4", "--set", "size=[32,32]")
BRIEF = ("--clips", "4", "--set", "batch_size=2", "--device", "cpu")
JUDGED = ("--effort", "1", "--device", "cpu", "--json")


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Run a command in an empty folder, which must succeed; returns what it printed."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["whytube", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        assert end.value.code == 0, said.err
        return said.out

    return call


@pytest.mark.parametrize("objective", ["paper", "ours"])
def test_the_single_shape_is_trained_and_judged(call, objective):
    call("train", "classifier", "--preset", "c3d-resnet-small", "--out", "run", "--test", "4", *SMALL, *BRIEF)
    trained = ("--out", "run", "--objective", objective, "--shapes", "single", "--set", "masked_runs=0", *BRIEF)
    call("train", "explainer", *trained)
    forms = load_model("run").scores.forms
    assert (len(forms.grids), len(forms.shapes), forms.count) == (1, 1, 1), "one map, one shape: K = 1"
    cell = [side / cells for side, cells in zip(forms.size, forms.grids[0][1:], strict=True)]
    options = ("--count", "2", "--negatives", "1", "--peers", "centre", "--area", "1", *JUDGED)
    found = json.loads(call("evaluate", "--model", "run", *options))
    assert set(found["methods"]) == {objective, "centre"}
    if objective == "paper":  # a box is a cell of the map, so a tube of n frames has n times the area of one
        lengths = found["methods"]["paper"]["tube_lengths"]
        frames = sum(n * many for n, many in enumerate(lengths)) / sum(lengths)
        pixels = frames / 4 * cell[0] * cell[1] / (32 * 32)
        assert found["methods"]["paper"]["tube_area"] == pytest.approx(pixels)


def commands_of_the_page():
    """Return the commands for UCF101-24 on docs/jhmdb.md, without `whytube`."""
    text = (ROOT / "docs" / "jhmdb.md").read_text(encoding="utf-8")
    lines = [line.split()[1:] for line in text.splitlines() if line.startswith("    whytube ")]
    return [words for words in lines if "ucf" in words or "ucf101-24" in words]


def test_the_page_has_the_whole_run():
    assert [tuple(words[:2]) for words in commands_of_the_page()] == [
        *(("data", "import"), ("data", "check"), ("train", "classifier")),
        *(("train", "explainer"), ("train", "explainer"), ("evaluate", "--config")),
    ]


@pytest.mark.slow
@pytest.mark.skipif(not REAL.is_dir(), reason="the data set is not at hand")
def test_the_papers_run_on_the_real_videos(call, tmp_path):
    """Every command as printed, with options that make it short."""
    places = {
        "UCF-101": REAL / "videos",
        "corrected_boxes.pkl": REAL / "corrected_boxes.pkl",
        "splits": REAL / "splits",
        "configs/ucf101-24-c3d.toml": ROOT / "configs" / "ucf101-24-c3d.toml",
    }
    short = {"train classifier": (*SMALL, *BRIEF), "train explainer": ("--lr", "1e-4", *BRIEF)}
    for words in commands_of_the_page():
        kind = " ".join(words[:2])
        more = JUDGED if words[0] == "evaluate" else short.get(kind, ())
        said = call(*(places.get(word, word) for word in words), *more)
    found = json.loads(said)
    assert (tmp_path / "ucf.json").exists()
    assert found["provenance"]["settings"]["clips"] == 6
    assert found["provenance"]["settings"]["area"] == 1
    rows = {"paper-sgd", "paper", "paper-sgd+verified", "paper+verified", "detector-box", "centre"}
    assert rows <= set(found["methods"])
    assert "zero" in found["methods"]["paper"]["fills"]
