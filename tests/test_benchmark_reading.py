import json
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
import torch

from benchmarks import reading

ROOT = Path(__file__).parents[1]


def test_a_quick_run_reports_every_way():
    report = json.loads(json.dumps(reading.run(torch.device("cpu"), quick=True, workers=[1, 2])))
    rows = report["rows"]
    found = [("kept", 2), ("memory", 2), ("ahead", 1), ("ahead", 2), ("in turn", 2)]
    assert [(row["way"], row["workers"]) for row in rows] == found
    kept, memory, turn = rows[0], rows[1], rows[-1]
    assert kept["waiting"] == kept["beyond_kept"] == 0, "no clip is read"
    assert (memory["in_memory"], turn["in_memory"]) == (1, 0)
    assert 0 < turn["waiting"] <= 1
    assert turn["beyond_kept"] == pytest.approx(1 - kept["seconds_per_step"] / turn["seconds_per_step"])
    assert all(row["idle"] is None for row in rows), "there is no GPU"


def test_it_reads_as_a_training_does(monkeypatch):
    monkeypatch.setattr(reading, "training_workers", lambda: 3)
    assert {row["workers"] for row in reading.run(torch.device("cpu"), quick=True)["rows"]} == {3}


def test_the_gpu_waits_between_the_work_of_two_steps():
    class Event:
        def __init__(self, at):
            self.at = at

        def elapsed_time(self, other):
            return other.at - self.at

    gaps = reading.Gaps()
    assert gaps.idle(2, 1.0) is None
    gaps.events = [(Event(0), Event(900)), (Event(1000), Event(1100)), (Event(2000), Event(2300))]
    with mock.patch("torch.cuda.synchronize"):
        assert gaps.idle(2, 2.0) == pytest.approx(0.2), "of the last two steps"


def test_the_table_says_what_was_measured():
    numbers = {"workers": 16, "seconds_per_step": 0.5, "waiting": 0.25, "idle": 0.1, "beyond_kept": 0.2, "in_memory": 1}
    rows = [numbers | {"way": way} for way in reading.WAYS]
    rows[0]["idle"] = None
    report = {"rows": rows, "preset": "i3d", "steps": 3, "batch": 2, "data": "mine", "cores": 16}
    text = reading.table(report | {"provenance": {"device": "a machine", "commit": "abc"}})
    assert "| kept on the device |  | 0.50 | 25 % |  |  |" in text
    assert "| read ahead, decoded each time | 16 | 0.50 | 25 % | 10 % | 20 % of the time |" in text
    assert "i3d, 3 steps of 2 clips, mine, of which memory holds 100 %; 16 cores, a machine, commit abc." in text


def test_the_program_takes_videos_of_ones_own(tmp_path):
    made, out = tmp_path / "dances", tmp_path / "reading.json"
    reading.export_world(made, count=6, size=32)
    words = [
        sys.executable,
        ROOT / "benchmarks" / "reading.py",
        "--quick",
        "--device",
        "cpu",
        "--out",
        out,
        "--data",
        made,
    ]
    result = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    report = json.loads(out.read_text())
    assert report["data"] == "dances"
    assert result.stdout.strip() == reading.table(report).strip()


def test_the_documented_table_comes_from_results():
    report = json.loads((ROOT / "results" / "reading-cpu.json").read_text())
    assert reading.table(report) in (ROOT / "docs" / "training.md").read_text()
