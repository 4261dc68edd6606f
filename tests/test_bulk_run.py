"""Bulk runs in this process and on Ray, and what breaks them: each video exactly once, whatever happens.

`python tests/bulk_faults.py` makes every fault several times.
"""

import copy
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import bulk_faults
import whytube.bulk.run
from bulk_cluster import Nodes
from bulk_faults import Bulk, answers, make_videos, shards, undisturbed
from whytube.bulk.listing import Listed, list_videos
from whytube.bulk.output import Asked, Output
from whytube.bulk.run import Summary, _at_a_time, _shares, run_bulk
from whytube.bulk.work import Outcome
from whytube.cli import app
from whytube.errors import ArgumentError, DataError, WhytubeError


@pytest.fixture(scope="module")
def bulk(tmp_path_factory):
    return Bulk(tmp_path_factory.mktemp("bulk"))


@pytest.fixture(scope="module")
def videos(bulk):
    return make_videos(bulk.folder / "videos", 20)


@pytest.fixture(scope="module")
def plain(bulk, videos):
    return undisturbed(bulk, videos, bulk.folder / "plain")


def test_one_process(plain, videos):
    found, summary = plain
    assert summary == {"videos": 20, "explained": 18, "failed": 2, "before": 0}
    assert {Path(video).name for video, rows in found.items() if "error" in rows[0]} == {"clip_006.mp4", "clip_013.mp4"}
    assert all(len(rows) == 1 for rows in found.values())


def test_a_run_goes_on_and_takes_new_videos(bulk, tmp_path):
    folder = make_videos(tmp_path / "videos", 3)
    asked = Asked(model=f"{bulk.model}:build", model_hash="", k=1, effort=2)
    told = []

    def run():
        return run_bulk(
            list_videos(str(folder)),
            asked,
            tmp_path / "out",
            versions={},
            workers=0,
            progress=lambda *n: told.append(n),
        )

    first = run()
    again = run()
    make_videos(tmp_path / "more", 1)
    (tmp_path / "more" / "clip_000.mp4").rename(folder / "new.mp4")
    third = run()
    assert (first.explained, first.before) == (3, 0)
    assert (again.explained, again.before) == (0, 3)
    assert (third.explained, third.before, third.videos) == (1, 3, 4)
    assert told == [(0, 3), (3, 3), (3, 4), (4, 4)], "how many there are, and how many are done"


def test_gpus_are_shared_among_workers():
    there = {"CPU": 8.0, "GPU": 2.0}
    assert _shares(there, None, "cpu") == (8, 0, "cpu")
    assert _shares(there, 3, "cpu") == (3, 0, "cpu")
    assert _shares(there, None, "cuda") == (2, 1, "cuda")
    assert _shares(there, 1, "cuda") == (1, 1, "cuda")
    assert _shares(there, 5, "cuda") == (5, 1 / 3, "cuda")
    with pytest.raises(ArgumentError, match="has no GPU"):
        _shares({"CPU": 8.0}, None, "cuda")


def test_a_worker_is_given_a_few_shards_at_a_time_where_there_are_many():
    assert [_at_a_time(shards, 2) for shards in (1, 16, 31, 32, 64, 2000)] == [1, 1, 1, 2, 4, 8]


def test_auto_takes_the_gpus_of_the_cluster():
    assert _shares({"CPU": 8.0, "GPU": 2.0}, None, "auto") == (2, 1, "cuda")
    assert _shares({"CPU": 8.0, "GPU": 2.0}, 4, "auto") == (4, 1 / 2, "cuda")
    assert _shares({"CPU": 8.0}, None, "auto") == (8, 0, "cpu")


@pytest.mark.parametrize(
    ("words", "device"),
    [
        (["--ray", "auto"], "auto"),
        (["--ray", "auto", "--device", "cuda"], "cuda"),
        (["--ray", "auto", "--device", "cpu"], "cpu"),
        ([], "cpu"),
    ],
)
def test_a_driver_without_a_gpu_leaves_the_device_to_the_cluster(tmp_path, monkeypatch, words, device):
    """Only where Ray is started here this machine says whether there is a GPU."""
    asked_for = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(
        whytube.bulk.run, "run_bulk", lambda *_, device, **__: asked_for.append(device) or Summary(1, 1, 0, 0)
    )
    make_videos(tmp_path / "videos", 1)
    words = ["bulk", str(tmp_path / "videos"), "--out", str(tmp_path / "out"), *words]
    assert CliRunner().invoke(app, words, catch_exceptions=False).exit_code == 0
    assert asked_for == [device]


def test_the_command_says_where_failures_are_told(tmp_path):
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / "broken.mp4").write_bytes(b"no video")
    out = tmp_path / "out"
    words = ["bulk", str(tmp_path / "videos"), "--out", str(out), "--workers", "0"]
    first = CliRunner().invoke(app, words, catch_exceptions=False).stdout
    again = CliRunner().invoke(app, words, catch_exceptions=False).stdout
    assert f"0 explained, 1 failed, 0 done before, of 1; {out / 'failures'} and" in " ".join(first.split())
    assert " ".join(again.split()).endswith("0 explained, 0 failed, 1 done before, of 1")


def test_a_folder_that_is_called_like_a_shipped_model_is_none(tmp_path, monkeypatch):
    """`make demo` makes a folder `demo`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()
    make_videos(tmp_path / "videos", 1)
    words = ["bulk", "videos", "--model", "demo", "--out", "out", "--workers", "0", "--effort", "1", "--json"]
    said = CliRunner().invoke(app, words, catch_exceptions=False).stdout
    assert json.loads(said)["explained"] == 1
    assert json.loads((tmp_path / "out" / "run.json").read_text())["model"] == "demo"


def test_wrong_ways_to_run_are_refused(tmp_path):
    asked = Asked(model="demo", model_hash="")
    with pytest.raises(ArgumentError, match="give one of them"):
        run_bulk([Listed("a.mp4")], asked, tmp_path / "out", versions={}, workers=0, ray="auto")
    with pytest.raises(ArgumentError, match=r"nothing answers at 127\.0\.0\.1:1 "):
        run_bulk([Listed("a.mp4")], asked, tmp_path / "out", versions={}, workers=1, ray="127.0.0.1:1")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--out", "s3://bucket/answers"], "must be a folder, not an address"),
        (["--out", "out", "--workers", "-1"], "`workers` must be"),
        (["--out", "out", "--window", "0"], "`window` must be"),
        (["--out", "out", "--negatives", "wlk"], "unknown class 'wlk'"),
        (["--out", "out", "--negatives", ","], "`negatives` must be"),
        (["--out", "out", "--negatives", "label"], "videos has none: give a manifest with a column `class`"),
        (["--out", "out", "--workers", "2", "--device", "cuda:0"], "there is no CUDA device|gives each worker a GPU"),
    ],
)
def test_wrong_words_leave_nothing_behind(tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    make_videos(tmp_path / "videos", 1)
    with pytest.raises(WhytubeError, match=said):
        CliRunner().invoke(app, ["bulk", "videos", *words], catch_exceptions=False)
    assert [path.name for path in tmp_path.iterdir()] == ["videos"]


def test_labels_that_the_model_lacks(tmp_path):
    """None that it knows is an error; some are told."""
    make_videos(tmp_path / "videos", 1)
    (video,) = (tmp_path / "videos").iterdir()
    manifest = tmp_path / "list.csv"

    def asked(*classes):
        rows = "".join(f"{video},{name}\n" for name in classes)
        manifest.write_text(f"video,class\n{rows}")
        words = ["bulk", str(manifest), "--out", str(tmp_path / "out"), "--negatives", "label", "--workers", "0"]
        return CliRunner().invoke(app, [*words, "--effort", "1"], catch_exceptions=False)

    with pytest.raises(WhytubeError, match=r"has only others, as 'nope': give a manifest with a column `class`"):
        asked("nope")
    found = asked("nope", "Jive")
    assert found.exit_code == 0
    assert "1 of 2 videos have no class that the model knows: they are asked about the runner-up" in found.output


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        "files that may not grow, run again",
        "a worker killed",
        "a video that kills every worker",
        "a video too large for a worker's memory",
    ],
)
def test_faults(bulk, videos, plain, tmp_path, fault):
    assert bulk_faults.check(fault, bulk, videos, plain[0], tmp_path, random.Random(0)) == ""


@pytest.mark.slow
def test_a_worker_with_several_shards_in_hand_is_killed(bulk, videos, plain, tmp_path):
    """It has read videos of its next shard already, and answers of the one before are there."""
    assert _at_a_time(len(plain[0]), 1) == 2
    small = Bulk(bulk.folder, workers=1, shard=1)
    assert bulk_faults.check("a worker killed", small, videos, plain[0], tmp_path, random.Random(0)) == ""


@pytest.mark.slow
def test_workers_with_several_shards_in_hand_find_the_disk_full(bulk, videos, plain, tmp_path):
    """The run stops while Ray works on, and must end with its own exit code."""
    (tmp_path / "disk").mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "none", tmp_path / "disk"], capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    subprocess.run(["umount", tmp_path / "disk"], check=True)
    with Nodes(2) as nodes:
        joined, rng = Bulk(bulk.folder, nodes=nodes, shard=1), random.Random(0)
        for _ in range(3):
            assert bulk_faults.check("a full disk, run again with room", joined, videos, plain[0], tmp_path, rng) == ""


@pytest.mark.slow
def test_a_killed_driver_and_two_at_a_time_in_one_process(bulk, videos, plain, tmp_path):
    alone, rng = Bulk(tmp_path, workers=0), random.Random(0)  # which also names the folder of each
    alone.model = bulk.model
    for fault in ("the driver killed, run again", "two drivers at a time"):
        assert bulk_faults.check(fault, alone, videos, plain[0], tmp_path, rng) == ""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_driver_on_ray_is_stopped_in_the_middle_and_the_same_command_finishes(
    bulk, videos, plain, tmp_path, monkeypatch, how
):
    """Ctrl-C goes to the whole group of processes, as a terminal sends it; a kill, too. SIGTERM goes to the command."""
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")  # a cluster that nobody asked to join
    one, out = Bulk(bulk.folder, workers=1), tmp_path / "out"
    process = one.start(videos, out, slow=0.2)
    assert bulk_faults.wait_for(lambda: process.poll() is not None or shards(out) == 1)
    one.tell(slow=10)  # a worker lives on for seconds, and must not finish the second one meanwhile
    assert process.poll() is None, process.communicate()
    workers = one.actors(process)
    (os.kill if how == signal.SIGTERM else os.killpg)(process.pid, how)
    told = process.communicate(timeout=120)[1]
    assert process.returncode == (-how if how == signal.SIGKILL else 128 + how), told
    assert "Traceback" not in told
    assert "SIGTERM received" not in told, "Ray's own handler"
    assert how == signal.SIGKILL or told.endswith("interrupted; the same command goes on with what is done\n")
    assert workers
    assert bulk_faults.wait_for(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
    assert shards(out) == 1
    code, said, told = one.run(videos, out)
    assert code == 0, told
    told = json.loads(said)
    assert told["before"] in (4, 16), "Ray may begin with either shard"
    assert told["videos"] == told["before"] + told["explained"] + told["failed"] == 20
    assert bulk_faults.differences(answers(out), plain[0]) == ""


@pytest.mark.slow
def test_workers_in_other_folders_write_where_the_command_was_given(bulk, videos, plain, tmp_path):
    """A worker's folder is that of `ray start`; an older run of that name in it must not be taken for this one."""
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(bulk.folder / "plain", elsewhere / "answers")
    with Nodes(1, folder=elsewhere) as nodes:
        joined = Bulk(bulk.folder, workers=1, nodes=nodes)
        code, said, told = joined.run(videos, "answers", model=joined.model.name, cwd=bulk.folder)
    assert code == 0, told
    assert json.loads(said) == plain[1]
    assert bulk_faults.differences(answers(bulk.folder / "answers"), plain[0]) == ""


def test_a_worker_that_cannot_load_the_model_says_so_in_one_line(videos, tmp_path):
    """As on a machine of a cluster that lacks something, here in a Ray of the run's own."""
    broken = Bulk(tmp_path, workers=1)
    lacks = 'def build():\n    if "ray" in sys.modules:\n        raise RuntimeError("no such thing on this machine")\n'
    broken.model.write_text(broken.model.read_text().replace("def build():\n", lacks))
    code, said, told = broken.run(videos, tmp_path / "out")
    assert (code, said) == (2, ""), told
    error = told.splitlines()[-1]
    assert error.startswith("error: a worker on ")
    assert f"could not load {broken.model}:build: " in error
    assert "no such thing on this machine" in error
    assert "Traceback" not in told


def test_a_run_whose_answers_went_elsewhere_says_so(bulk, videos, tmp_path, monkeypatch):
    listed, asked = list_videos(str(videos))[:2], Asked(model=f"{bulk.model}:build", model_hash="", k=1, effort=2)
    monkeypatch.setattr(whytube.bulk.run, "_here", lambda *_: (Outcome(0, explained=2) for _ in "a"))
    monkeypatch.setattr(whytube.bulk.run, "LATE", 0.0)
    with pytest.raises(
        DataError, match=r"the answers of 1 shards are not in .*out: do all workers write to this folder"
    ):
        run_bulk(listed, asked, tmp_path / "out", versions={}, workers=0)


def test_answers_that_are_seen_late_are_waited_for(bulk, videos, tmp_path, monkeypatch):
    """As on a network file system, which shows what another machine wrote after a while."""
    real, asked_for = Output.done, []

    def late(output):
        asked_for.append(real(output))
        return set()

    monkeypatch.setattr(Output, "done", late)
    listed, asked = list_videos(str(videos))[:2], Asked(model=f"{bulk.model}:build", model_hash="", k=1, effort=2)
    assert run_bulk(listed, asked, tmp_path / "out", versions={}, workers=0).explained == 2
    assert asked_for == [set(), {0}]


def test_reading_ahead_leaves_no_marks_where_a_run_is_stopped_between_two_shards(bulk, videos, tmp_path, monkeypatch):
    monkeypatch.setattr("whytube.bulk.output.SHARD", 2)
    asked = Asked(model=f"{bulk.model}:build", model_hash="", k=1, effort=2)

    def stop(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_bulk(list_videos(str(videos))[:6], asked, tmp_path / "out", versions={}, workers=0, progress=stop)
    assert not list((tmp_path / "out" / "attempts").iterdir())


@pytest.mark.parametrize("address", ["nonsense", "http://host", "host:port"])
def test_an_address_that_is_none_is_refused_before_anything_is_written(bulk, tmp_path, address):
    asked = Asked(model=f"{bulk.model}:build", model_hash="")
    with pytest.raises(ArgumentError, match="`ray` must be the address of a cluster, HOST:PORT, or auto, got"):
        run_bulk([Listed("/v/a.mp4")], asked, tmp_path / "out", versions={}, ray=address)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_node_of_a_cluster_is_killed(bulk, videos, plain, tmp_path):
    quick = {"period_ms": 300, "timeout_ms": 3000, "failure_threshold": 2, "initial_delay_ms": 0}  # else Ray waits 15 s
    environment = {f"RAY_health_check_{name}": str(value) for name, value in quick.items()}
    with Nodes(2, environment=environment) as nodes:
        joined = Bulk(bulk.folder, nodes=nodes)
        assert bulk_faults.check("a node killed", joined, videos, plain[0], tmp_path, random.Random(0)) == ""


def test_the_check_of_faults_can_fail(bulk, videos, plain, tmp_path, monkeypatch):
    """An answer that is missing, comes twice, or has another reason, is noticed."""
    monkeypatch.setitem(bulk_faults.FAULTS, "none", lambda bulk, videos, out, rng: ("", bulk.run(videos, out)[2]))
    alone = Bulk(tmp_path, workers=0)
    alone.model = bulk.model
    assert bulk_faults.check("none", alone, videos, plain[0], tmp_path, random.Random(1)) == ""
    first, last = str(videos / "clip_000.mp4"), str(videos / "clip_006.mp4")
    for change in (
        lambda found: found.pop(first),
        lambda found: found[first].append(found[first][0]),
        lambda found: found[first][0].update(negative="other"),
        lambda found: found[first][0]["reasons"].pop(),
        lambda found: found[first][0]["reasons"][0]["boxes"][0].__setitem__(0, -1.0),
        lambda found: found[first][0]["reasons"][0]["frames"].__setitem__(0, 99),
        lambda found: found[first][0]["reasons"][0].update(attribute="other"),
        lambda found: found[first][0]["reasons"][0].update(score=9.0),
        lambda found: found[first][0]["reasons"][0]["evidence"][0].update(positive_after=0.0123),
        lambda found: found[last][0].update(error="other"),
    ):
        found = copy.deepcopy(plain[0])
        change(found)
        assert bulk_faults.differences(found, plain[0]).startswith("answers differ")
    near = copy.deepcopy(plain[0])
    near[first][0]["reasons"][0]["score"] += 1e-6
    assert bulk_faults.differences(near, plain[0]) == ""


@pytest.fixture
def without_ray(bulk, videos, tmp_path):
    """Give the command, in a process that finds no Ray."""
    hide = (
        "import sys, importlib.util as u; find = u.find_spec; sys.modules['ray'] = None; "
        "u.find_spec = lambda name, *rest: None if name.partition('.')[0] == 'ray' else find(name, *rest); "
        "from whytube.__main__ import main; sys.argv[0] = 'whytube'; main()"
    )
    words = ["bulk", str(videos), "--model", f"{bulk.model}:build", "--out", str(tmp_path / "out")]
    words += ["--json", "--effort", "2", "-k", "1"]
    bulk.model.with_name("how.json").unlink(missing_ok=True)

    def run(*more):
        ended = subprocess.run([sys.executable, "-c", hide, *words, *more], capture_output=True, text=True, timeout=300)
        return ended.returncode, ended.stdout, ended.stderr

    return run


def test_without_ray_the_same_work_is_done_in_one_process(without_ray, plain, tmp_path):
    code, said, told = without_ray()
    assert code == 0, told
    assert json.loads(said) == plain[1]
    assert bulk_faults.differences(answers(tmp_path / "out"), plain[0]) == ""


@pytest.mark.parametrize("words", [["--workers", "2"], ["--ray", "auto"]])
def test_without_ray_workers_are_refused(without_ray, tmp_path, words):
    code, said, told = without_ray(*words)
    assert (code, said) == (2, "")
    assert told.startswith("error: Ray is not installed: pip install 'whytube[bulk]', or run in this process with")
    assert "--workers 0" in told
    assert told.count("\n") == 1
    assert not (tmp_path / "out").exists()
