import json
import subprocess
import sys
from pathlib import Path

import torch

from benchmarks import many, many_device

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


def test_what_is_measured_on_a_gpu_runs_here_too():
    """With the clock of this machine, and without memory."""
    device = torch.device("cpu")
    classifier = many._network(4, device, 0, quick=True)
    fits = many_device.fits_on_device(classifier, 9, device, [(2, 4), (None, 2)], batch=2)
    assert [(fit["classes"], fit["negatives"], fit["steps"]) for fit in fits] == [(4, 2, 4), (4, 3, 2)]
    rows = []
    for fit in fits:
        told = {"step": many_device.measured(lambda: None, device, repeats=1)}
        for name in ("paper", "ours"):
            asked = many._explainer(classifier, 9, name, 0)
            told[name] = many_device.pair_on_device(asked, device, repeats=1)
            assert told[name]["seconds"] > 0
        rows.append({"classes": 4, "attributes": 9, "negatives": fit["negatives"], "device": told})
    for numbers in (*fits, *(row["device"][name] for row in rows for name in ("step", "paper", "ours"))):
        assert numbers["allocated"] is numbers["reserved"] is None
        numbers |= {"allocated": many_device.GIB, "reserved": 2 * many_device.GIB}
    fits[0]["seconds_per_step"] = 0.25
    lines = many_device.device_table(rows, fits)
    assert lines[3].startswith("| 4 x 9 | 2 | ")
    assert "| 250.0; 1.00 / 2.00 |" in lines[3]
