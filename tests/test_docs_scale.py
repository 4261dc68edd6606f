"""Tables of docs/scale.md are those of the files under results/."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "scale.md").read_text()


def measured(name):
    found = json.loads((ROOT / "results" / f"{name}.json").read_text())
    assert found["provenance"]["commit"][:7] in PAGE
    return found


def test_every_fault_is_in_its_table():
    rows = measured("bulk-faults")["rows"]
    assert len(rows) == 11
    for row in rows:
        assert f"| {row['fault']} | {row['times']} | {row['right']} |" in PAGE


def test_memory():
    for run in measured("bulk-rows-cpu")["runs"]:
        assert run["each_row_once"]
        assert f"| {run['rows']:,} | {run['driver_mb']} | {run['worker_mb']} | {run['files']:,} | yes |" in PAGE
    long = measured("bulk-long-cpu")
    for run in long["runs"]:
        assert f"| {run['seconds']} | {run['windows']} | {run['driver_mb']} |" in PAGE
    assert f"{long['ratio']:.2f} times as much" in PAGE


@pytest.mark.parametrize("part", ["decode", "classifier", "layer", "verification"])
def test_parts_of_the_time(part):
    for row in measured("bulk-profile-cpu")["rows"]:
        assert f" {100 * row['shares'][part]:.1f} % " in PAGE
