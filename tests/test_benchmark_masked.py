import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import masked, masked_variants

CPU = torch.device("cpu")
ROOT = Path(__file__).parents[1]


def test_a_quick_run_agrees_and_reports():
    report = masked.run(CPU, quick=True)
    rows = report["models"]["tiny"]["rows"]
    assert tuple(rows) == masked.ROWS
    assert all(row["clips_per_second"] > 0 for row in rows.values())
    assert rows["ours, exact"]["error_of_effect"] < 1e-3
    assert rows["ours, to search"]["error_of_effect"] < 0.1
    assert 0 < rows["ours, exact"]["network_share"] <= 1
    json.dumps(report)


def test_the_table_says_what_was_measured():
    row = {"clips_per_second": 2.0, "error_of_effect": 0.0}
    ours = {"clips_per_second": 9.0, "error_of_effect": 0.012, "network_share": 0.91}
    report = {
        "tubes": 3,
        "models": {"demo": {"precision": "bfloat16", "rows": {"one by one": row, "ours, to search": ours}}},
        "provenance": {"device": "a machine", "commit": "abc"},
    }
    text = masked.table(report)
    assert "| demo | one by one | 2.0 | 1.0 | 0 % |  |" in text
    assert "| demo | ours, to search (bfloat16) | 9.0 | 4.5 | 1.2 % | 91 % |" in text
    assert "a machine, commit abc" in text


def test_typical_tubes_are_small_and_inside_in_part():
    boxes = masked.typical_tubes(50, 32, (144, 192), torch.Generator().manual_seed(0))
    area = ((boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])).mean(1) / (144 * 192)
    assert area.max() < 0.1
    lengths = (boxes[..., 2] > 0).sum(1)
    assert lengths.min() >= 9
    assert lengths.max() > 25


def test_every_way_gives_the_same_logits():
    report = masked_variants.run(CPU, seed=0, quick=True)
    ways = [(row["precision"], row["way"]) for row in report["ways"]]
    assert ways == [(p, way) for p in masked_variants.PRECISIONS for way in ("plain", "ours")]
    for row in report["ways"]:
        assert row["largest_error"] < (1e-4 if row["precision"] in ("float32", "tf32") else 0.5), row
        assert row["milliseconds_a_clip"] > 0
    text = masked_variants.table(report)
    assert text.count("\n") == len(ways) + 3
    assert "| float16 | ours | " in text


@pytest.mark.parametrize("more", [[], ["--variants"]])
def test_the_program_prints_a_table_and_writes_json(tmp_path, more):
    """Run as a user does, from another folder."""
    out = tmp_path / "masked.json"
    words = [sys.executable, ROOT / "benchmarks" / "masked.py", "--quick", "--device", "cpu", "--out", out, *more]
    result = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == masked.table(json.loads(out.read_text())).strip()
