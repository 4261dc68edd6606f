import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "benchmarks" / "answer.py"


def test_it_tells_how_long_an_answer_takes_and_where(tmp_path):
    """In a process of its own: it replaces functions by timed ones."""
    out = tmp_path / "answer.json"
    words = [sys.executable, PROGRAM, "--quick", "--device", "cpu", "--out", out]
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    assert "| 1 | 1 | " in done.stdout
    (row,) = json.loads(out.read_text())["rows"]
    assert 0 < row["seconds"] < row["command"]
    assert 0 < row["network"] < 1
    assert sum(row["shares"].values()) == pytest.approx(1, abs=0.01)
    for part in ("classifier", "verification", "predictions", "tubes"):
        assert row["shares"][part] > 0, part
