"""Training in several real processes: it ends where one process does, and ends as a whole when one of them fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import device_cases
from whytube.models.stored import load_tensors

FOLDER = Path(__file__).parent


def torchrun(*words, processes=2, cwd=None):
    """Start processes as a user does, with the modules of the tests at hand."""
    path = os.pathsep.join(filter(None, sys.path))
    line = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    return subprocess.Popen(
        [*line, *map(str, words)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
    )


def finished(*words, **settings):
    process = torchrun(*words, **settings)
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return out, errors


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Train all cases in two processes, one start for all."""
    folder = tmp_path_factory.mktemp("two")
    finished(FOLDER / "device_cases.py", folder, *device_cases.CASES)
    return folder


@pytest.mark.parametrize("case", device_cases.CASES)
def test_two_processes_end_where_one_does(results, tmp_path, case):
    one = device_cases.alone(case, tmp_path)
    first, second = (load_tensors(results / f"{case}-{rank}.safetensors", kind=device_cases.KIND)[0] for rank in (0, 1))
    assert one.keys() == first.keys() == second.keys()
    for name, value in first.items():
        assert torch.equal(value, second[name]), f"{name}: the processes have the same"
        worst = (value - one[name]).abs().max() / one[name].abs().max().clamp_min(1e-6)
        print(case, name, float(worst))
        assert worst < 1e-4, name
