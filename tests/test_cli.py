"""The command line from the outside: a process, its output, its exit code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import whytube
from whytube.benchmark import subpath

ROOT = Path(__file__).parent.parent


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "whytube", *words], capture_output=True, text=True, cwd=ROOT)


def test_version_and_help():
    assert run("--version").stdout.strip() == f"whytube {whytube.__version__}"
    for words in (["--help"], ["bench", "subpath", "--help"], ["demo", "--help"]):
        result = run(*words)
        assert result.returncode == 0
        assert "Usage" in result.stdout


def test_bench_prints_a_table_and_writes_json(tmp_path):
    out = tmp_path / "deep" / "bench.json"
    result = run("bench", "subpath", "--quick", "--device", "cpu", "--json", str(out))
    assert result.returncode == 0, result.stderr
    report = json.loads(out.read_text())
    assert result.stdout.strip() == subpath.table(report)
    assert {row["job"] for row in report["rows"]} >= {"value and path", "forward + backward"}
    assert report["provenance"]["versions"]["whytube"] == whytube.__version__
    assert all(row["ratio"] > 0 for row in report["rows"] if row["composition"])


def test_a_wrong_device_is_named():
    result = run("bench", "subpath", "--device", "gpu9")
    assert result.returncode == 2
    assert "unknown device 'gpu9'" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", ["h200", "cpu"])
def test_documented_bench_tables_come_from_results(name):
    report = json.loads((ROOT / "results" / f"subpath-{name}.json").read_text())
    page = (ROOT / "docs" / "subpath.md").read_text()
    assert subpath.table(report) in page
