"""Training in several real processes: it ends where one process does, and ends as a whole when one of them fails."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import device_cases
from device_cases import KIND, alone
from whytube.data.export import export_world
from whytube.errors import ArgumentError
from whytube.models import load_model
from whytube.models.stored import load_tensors
from whytube.training.devices import ALONE, Ranks, Share, together, whole_share

FOLDER = Path(__file__).parent
TRAIN = ("-m", "whytube", "train", "classifier", "--set", "size=[32,32]", "--set", "batch_size=4", "--test", 2)


@contextlib.contextmanager
def torchrun(*words, processes=2, cwd=None):
    """Start processes as a user does, with the modules of the tests at hand."""
    path = os.pathsep.join(filter(None, sys.path))
    line = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", processes, *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    given = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen([*map(str, line)], cwd=cwd, env=given, **pipes) as process:
        try:
            yield process
        finally:
            process.terminate()  # it then ends its children


def finished(*words, **settings):
    with torchrun(*words, **settings) as process:
        out, errors = process.communicate(timeout=240)
    if process.returncode and "EADDRINUSE" in errors:  # torchrun chose a free port, and another program was quicker
        return finished(*words, **settings)
    assert process.returncode == 0, errors
    return out


def assert_alike(found, expected, tolerance=1e-4):
    assert found.keys() == expected.keys()
    for name, value in found.items():
        worst = (value - expected[name]).abs().max() / expected[name].abs().max().clamp_min(1e-6)
        assert worst < tolerance, f"{name} differs by {worst}"


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """Give the folder of a run of one process, with its state of step 4 in `half`, and where it ended."""
    folder = tmp_path_factory.mktemp("one")
    return folder, alone("changed_clips", folder)


@pytest.fixture(scope="module")
def two(tmp_path_factory, one):
    """Train all cases in two processes, one start for all; `resumed` goes on from what one process left."""
    folder = tmp_path_factory.mktemp("two")
    shutil.copytree(one[0] / "half", folder / "resumed")
    finished(FOLDER / "device_cases.py", folder, "cpu", *device_cases.CASES)
    return folder


@pytest.mark.parametrize("case", device_cases.CASES)
def test_two_processes_end_where_one_does(one, two, tmp_path, case):
    expected = one[1] if case in ("changed_clips", "resumed") else alone(case, tmp_path)
    first, second = (load_tensors(two / f"{case}-{rank}.safetensors", kind=KIND)[0] for rank in (0, 1))
    assert all(torch.equal(value, second[name]) for name, value in first.items()), "the processes agree"
    assert_alike(first, expected)


def test_one_process_goes_on_from_what_two_left(one, two, tmp_path):
    shutil.copytree(two / "changed_clips" / "half", tmp_path / "run")
    assert_alike(alone("resumed", tmp_path / "run"), one[1])


def test_the_folder_is_as_one_process_leaves_it(one, two):
    files = [
        sorted(str(p.relative_to(folder)) for p in folder.rglob("*")) for folder in (one[0], two / "changed_clips")
    ]
    assert files[0] == files[1]
    headers = [load_tensors(f / "run.safetensors", kind="training run")[1] for f in (one[0], two / "changed_clips")]
    assert headers[0]["run"] == headers[1]["run"]


def test_the_cases_tell_other_trainings_apart(one, tmp_path):
    other = device_cases.ended("mixed_and_kept", ALONE, tmp_path, "cpu")
    with pytest.raises(AssertionError, match="differs by"):
        assert_alike(other, one[1])


@pytest.fixture(scope="module")
def dances(tmp_path_factory):
    return export_world(tmp_path_factory.mktemp("data") / "dances", count=12, size=32)


def test_from_the_shell(dances, tmp_path):
    """Both commands; the first process alone prints, and what it writes can be used."""
    told = json.loads(finished(*TRAIN, "--data", dances, "--out", "run", "--clips", 16, "--json", cwd=tmp_path))
    assert told["provenance"]["processes"] == 2
    assert told["history"]["records"][-1]["clips"] == 16
    explainer = ("-m", "whytube", "train", "explainer", "--data", dances, "--out", "run", "--clips", 16, "--json")
    small = ("--set", "batch_size=4", "--set", "masked_runs=96", "--set", "place_steps=2")
    told = json.loads(finished(*explainer, *small, cwd=tmp_path))
    assert told["history"]["records"][-1]["step"] == 4
    assert load_model(tmp_path / "run").response is not None


def test_a_process_that_fails_ends_all_with_one_message(dances, tmp_path):
    data = shutil.copytree(dances, tmp_path / "data")
    next(data.rglob("train_00006.mp4")).write_text("broken")
    with torchrun(*TRAIN, "--data", "data", "--out", "run", "--clips", 4000, cwd=tmp_path) as process:
        errors = process.communicate(timeout=120)[1]
    assert errors.count("error: ") == 1, errors
    assert "train_00006.mp4 is not a video that can be read" in errors
    assert "exitcode  : 2 " in errors
    assert process.returncode == 1, "torchrun's own"
    assert not list((tmp_path / "run").glob("*.safetensors"))


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_ends_all_with_one_line(dances, tmp_path, number):
    with torchrun(*TRAIN, "--data", dances, "--out", "run", "--clips", 40_000, cwd=tmp_path) as process:
        assert "by 2 processes" in process.stderr.readline()
        process.send_signal(number)
        errors = process.communicate(timeout=120)[1]
    assert [line for line in errors.splitlines() if line.startswith("interrupted")] == [
        "interrupted; nothing was saved yet"
    ]
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize("size", [1, 2, 3, 8])
@pytest.mark.parametrize("total", [1, 7, 8, 30])
def test_shares_are_the_whole_batch(size, total):
    shares = [Ranks(rank, size).share(total) for rank in range(size)]
    rows = [row for share in shares if share.weight for row in range(total)[share.rows]]
    assert rows == list(range(total))
    assert sum(share.weight for share in shares) == pytest.approx(1)
    assert max(share.count for share in shares) - min(share.count for share in shares) <= 1
    assert all(len(range(total)[share.rows]) == share.count for share in shares)


def test_one_process_has_all():
    assert ALONE.first
    assert ALONE.share(5) == whole_share(5) == Share(0, 5, 5)
    kept = torch.ones(3)
    assert ALONE.sum(kept) is kept
    assert ALONE.whole(kept, ALONE.share(3)) is kept
    assert ALONE.given(kept) is kept
    with together("cpu") as (ranks, device):
        assert (ranks, device) == (ALONE, torch.device("cpu"))


def test_wrong_settings(monkeypatch):
    with pytest.raises(ArgumentError, match="`batch_size` must be at least 3, a clip for each process, got 2"):
        Ranks(0, 3).check_batch(2)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(ArgumentError, match=r"cannot find the other processes: .*Start them with torchrun"), together():
        pass


GPU_CASES = ["changed_clips", "mixed_and_kept", "in_bfloat16", "response", "class_bias", "both_terms", "places"]


def check_ends(folder, device, cases, *, processes, tolerance):
    """Train all cases in processes, one start for all: each ends where this process does."""
    finished(FOLDER / "device_cases.py", folder / "some", device, *cases, processes=processes)
    for case in cases:
        ends = [load_tensors(folder / "some" / f"{case}-{n}.safetensors", kind=KIND)[0] for n in range(processes)]
        assert all(torch.equal(value, ends[-1][name]) for name, value in ends[0].items()), "the processes agree"
        assert_alike(ends[0], alone(case, folder / "one" / case, device.partition("+")[0]), tolerance)


def test_a_group_of_one_ends_where_no_group_does(tmp_path):
    cases = [case for case in device_cases.CASES if case != "resumed"]
    check_ends(tmp_path, "cpu+join", cases, processes=1, tolerance=1e-4)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_group_of_one_that_talks_by_nccl_ends_where_no_group_does(tmp_path):
    check_ends(tmp_path, "cuda+join", GPU_CASES, processes=1, tolerance=2e-2)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_two_processes_on_one_gpu_end_where_one_does(tmp_path):
    check_ends(tmp_path, "cuda+gloo", GPU_CASES, processes=2, tolerance=2e-2)


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_two_gpus_end_where_one_does(tmp_path):
    check_ends(tmp_path, "cuda", GPU_CASES, processes=2, tolerance=2e-2)
