import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import reading

ROOT = Path(__file__).parents[1]


def test_a_quick_run_reports_every_way():
    report = json.loads(json.dumps(reading.run(torch.device("cpu"), quick=True)))
    assert report["ways"].keys() == reading.WAYS.keys()
    kept, turn = report["ways"]["kept"], report["ways"]["in turn"]
    assert kept["waiting"] == kept["beyond_kept"] == 0, "no clip is read"
    assert 0 < turn["waiting"] <= 1
    assert turn["beyond_kept"] == pytest.approx(1 - kept["seconds_per_step"] / turn["seconds_per_step"])


def test_the_table_says_what_was_measured():
    numbers = {"seconds_per_step": 0.5, "waiting": 0.25, "beyond_kept": 0.2}
    report = {"ways": dict.fromkeys(reading.WAYS, numbers), "preset": "i3d", "steps": 3, "batch": 2, "data": "mine"}
    text = reading.table(report | {"provenance": {"device": "a machine", "commit": "abc"}})
    assert "| kept on the device | 0.50 | 25 % |  |" in text
    assert "| read ahead | 0.50 | 25 % | 20 % of the time |" in text
    assert "i3d, 3 steps of 2 clips, mine; a machine, commit abc." in text


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
