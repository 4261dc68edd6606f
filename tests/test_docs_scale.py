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


@pytest.mark.parametrize("name", ["bulk-profile-cpu", "bulk-profile-h200"])
def test_parts_of_the_time(name):
    found = measured(name)["rows"]
    for row in found:
        shares = " | ".join(f"{100 * share:.1f} %" for share in row["shares"].values())
        assert f"| batch | {' | '.join(row['shares'])} |" in PAGE
        assert f"| {row['batch']} | {shares} |" in PAGE
    if len(found) > 1:
        assert f"Four at a time were {found[0]['ratio']:.2f} times as fast as one" in PAGE


def test_two_workers_against_one():
    rows = measured("bulk-cpu")["rows"]
    plain, one, two = rows
    times = f", {two['rate'] / one['rate']:.2f} times one worker"
    assert plain["ratio"] == plain["cpu_ratio"] == 1
    for name, row, more in (("one worker", one, ""), ("two workers", two, times)):
        line = f"| {name} on Ray | {row['ratio']:.2f}{more} | {row['cpu_ratio']:.2f} | {row['start']:.1f} |"
        assert line in PAGE
