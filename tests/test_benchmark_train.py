import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import train
from whytube.errors import WhytubeError
from whytube.explainer import values

CPU = torch.device("cpu")
ROOT = Path(__file__).parents[1]


def test_a_quick_run_agrees_and_reports():
    report = train.run(CPU, quick=True)
    assert report["benchmark"] == "train"
    assert report["sizes"]["batch"] == 2
    times = report["milliseconds"]
    assert set(times) == {"ours", "straightforward", "ratio"}
    assert times["ratio"] == pytest.approx(times["straightforward"] / times["ours"])
    assert set(report["extra_bytes"]) == {"ours", "straightforward"}
    assert report["provenance"]["seed"] == 0
    json.dumps(report)


def test_the_table_says_what_was_measured():
    report = {
        "milliseconds": {"ours": 2.0, "straightforward": 10.0, "ratio": 5.0},
        "extra_bytes": {"ours": 2**20, "straightforward": 3 * 2**20},
        "sizes": {"batch": 2},
        "provenance": {"device": "a machine", "commit": "abc"},
    }
    text = train.table(report)
    assert "| ours | 2.00 ms | 1 MiB |" in text
    assert "| straightforward | 10.00 ms | 3 MiB |" in text
    assert "5.0 x faster, memory 3.0 x less; a machine, commit abc" in text
    report["extra_bytes"] = {"ours": None, "straightforward": None}
    assert "| ours | 2.00 ms | unknown |" in train.table(report)


def test_the_comparison_has_a_row_per_size_and_leaves_none_behind():
    before = values.VOLUME_BYTES
    rows = train.compare(CPU, quick=True).splitlines()
    assert len(rows) == 2 + 5
    assert rows[2].startswith("| 96 MiB |")
    assert rows[-1].startswith("| 256 MiB |")
    assert before == values.VOLUME_BYTES


def test_the_profile_names_operations():
    assert "aten::bmm" in train.profile(CPU, quick=True)


def test_a_step_that_disagrees_is_not_measured(monkeypatch):
    monkeypatch.setattr(train, "class_term", lambda *args: 1.1 * train.straightforward(*args))
    with pytest.raises(WhytubeError, match="disagree"):
        train.run(CPU, quick=True)


def test_the_program_prints_a_table_and_writes_json(tmp_path):
    """Run as a user does, from another folder."""
    out = tmp_path / "train.json"
    words = [sys.executable, ROOT / "benchmarks" / "train.py", "--quick", "--device", "cpu", "--out", out]
    result = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == train.table(json.loads(out.read_text())).strip()


@pytest.mark.parametrize("name", ["train-h200", "train-cpu"])
def test_documented_tables_come_from_results(name):
    report = json.loads((ROOT / "results" / f"{name}.json").read_text())
    assert train.table(report) in (ROOT / "docs" / "training.md").read_text()
