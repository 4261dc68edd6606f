import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent.parent / "benchmarks" / "bulk.py"


@pytest.mark.slow
def test_videos_are_counted_from_the_first_shard_on(tmp_path):
    pytest.importorskip("ray")
    out = tmp_path / "bulk.json"
    words = ["--videos", "3", "--shard", "1", "--workers", "1", "--out", str(out)]
    said = subprocess.run([sys.executable, PROGRAM, *words], capture_output=True, text=True, check=True).stdout
    plain, one = json.loads(out.read_text())["rows"]
    assert (plain["run"], plain["ratio"], one["run"]) == ("plain loop", 1, "bulk, 1 on Ray")
    assert one["counted"] == 2, "the first shard ends what is told as the start"
    assert f"| bulk, 1 on Ray | {one['rate']:.2f} | {one['ratio']:.2f} |" in said
