import json
import subprocess
import sys
from pathlib import Path

import torch

from benchmarks import many

ROOT = Path(__file__).parents[1]


def test_a_quick_run_counts_the_same_every_time_and_writes_it_down(tmp_path):
    """Run as a user does, from another folder."""
    out = tmp_path / "many.json"
    sizes = ["--classes", "30", "--attributes", "45", "--negatives", "3"]
    words = [sys.executable, ROOT / "benchmarks" / "many.py", "--quick", "--device", "cpu", *sizes, "--out", out]
    result = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    report = json.loads(out.read_text())
    assert result.stdout.strip() == many.table(report).strip()
    again = many.run(torch.device("cpu"), sizes=(30, 45), negatives=3, quick=True)
    every, few, more, few_of_more = report["rows"]
    assert [(row["classes"], row["attributes"], row["negatives"]) for row in report["rows"]] == [
        (24, 40, 23),
        (24, 40, 3),
        (30, 45, 29),
        (30, 45, 3),
    ]
    for one, other in zip(report["rows"], again["rows"], strict=True):
        assert one["bytes"] == other["bytes"]
        assert one["gigaflops"] == other["gigaflops"]
    assert few["gigaflops"]["step"] == few_of_more["gigaflops"]["step"] < every["gigaflops"]["step"]
    assert few["bytes"]["step"] < every["bytes"]["step"] < more["bytes"]["step"]
    assert few["gigaflops"]["ours"] == few_of_more["gigaflops"]["ours"]


def test_the_documented_table_comes_from_results():
    report = json.loads((ROOT / "results" / "many-cpu.json").read_text())
    assert many.table(report) in (ROOT / "docs" / "training.md").read_text()
