import json
from pathlib import Path

import pytest

from benchmarks import features

ROOT = Path(__file__).parents[1]


def test_a_quick_run_counts_runs_and_compares_weights(tmp_path, capsys):
    out = tmp_path / "features.json"
    features.main(["--quick", "--device", "cpu", "--preset", "c3d-resnet-small", "--out", str(out)])
    report = json.loads(out.read_text())
    assert capsys.readouterr().out.strip() == features.table(report)
    assert report["runs"] == {"kept": 1 + 4, "plain": 1 + 8 * 4 + 16}, "one clip for the shapes of the maps"
    assert report["largest difference"] < 1e-3


@pytest.mark.parametrize("name", ["features-demo-cpu", "features-i3d-cpu"])
def test_what_is_documented_comes_from_results(name):
    report = json.loads((ROOT / "results" / f"{name}.json").read_text())
    assert features.table(report) in (ROOT / "docs" / "training.md").read_text()
