import json
from pathlib import Path

import pytest
import torch

import whytube
from benchmarks import subpath
from benchmarks.subpath import compose_by_index
from whytube.subpath.reference import compose

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("radius", [0, 2])
def test_the_composition_by_index_is_the_composition(fixed, radius):
    base = torch.randn((6, 3, 5, 4, 7), generator=torch.Generator().manual_seed(0))
    values, grads = [], []
    for layer in (compose, compose_by_index):
        scores = base.clone().requires_grad_()
        value = layer(scores, radius=radius, fixed=fixed)
        value.sum().backward()
        values.append(value.detach())
        grads.append(scores.grad)
    assert torch.equal(*values)
    assert torch.equal(*grads)


def test_prints_a_table_and_writes_json(tmp_path, capsys):
    out = tmp_path / "deep" / "bench.json"
    subpath.main(["--quick", "--device", "cpu", "--out", str(out)])
    report = json.loads(out.read_text())
    assert capsys.readouterr().out.strip() == subpath.table(report).strip()
    assert (report["benchmark"], len(report["rows"])) == ("subpath", 5)
    assert report["provenance"]["versions"]["whytube"] == whytube.__version__


@pytest.mark.parametrize("name", ["subpath-h200", "subpath-cpu"])
def test_documented_tables_come_from_results(name):
    report = json.loads((ROOT / "results" / f"{name}.json").read_text())
    assert subpath.table(report) in (ROOT / "docs" / "subpath.md").read_text()


def test_a_check_passes_and_can_fail(monkeypatch, capsys):
    with pytest.raises(SystemExit, match="0"):
        subpath.main(["--device", "cpu", "--check"])
    assert capsys.readouterr().out == "kernel `cpu` agrees with the reference\n"
    monkeypatch.setattr(subpath, "min_subpath_difference", subpath.max_subpath_difference)
    with pytest.raises(SystemExit, match="1"):
        subpath.main(["--device", "cpu", "--check"])
    assert "free forms, all negatives: value, cells, gradient" in capsys.readouterr().out


def test_an_unknown_device_is_an_error(capsys):
    with pytest.raises(SystemExit, match="2"):
        subpath.main(["--device", "gpu9"])
    assert "unknown device 'gpu9'" in capsys.readouterr().err
