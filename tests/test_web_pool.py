"""Workers: they are killed, they hang, and the server is stopped, while they have jobs."""

import os
import signal
from pathlib import Path

import pytest

from web_server import serving, until

LONG = 512
"""Tubes that take longer to try than any test here waits."""
OTHER = """
import torch
import whytube

def build():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv3d(3, 4, 3, padding=1), torch.nn.AdaptiveAvgPool3d((4, 4, 4)),
                              torch.nn.Flatten(), torch.nn.Linear(256, 3))
    return whytube.wrap(net, classes=("up", "down", "aside"), frames=8, size=(32, 32), mean=(0.5,) * 3, std=(0.5,) * 3)
"""


def children(pid):
    listed = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(child) for text in listed for child in text.split()]


def worker(server):
    """Find the worker process: while no video is decoded, the only child of the process that all are forks of."""
    found = [inner for outer in children(server.process.pid) for inner in children(outer)]
    return found[0] if len(found) == 1 else None


@pytest.fixture
def running(tmp_path):
    with serving(tmp_path) as server:
        server.video = server.example()["id"]
        yield server


def start(server, effort=LONG):
    job = server.ask(kind="explain", video=server.video, effort=effort).json()["id"]
    until(lambda: server.get(f"/api/jobs/{job}").json()["status"] == "running", 120)
    return job


def test_a_job_is_tried_again_once_when_its_worker_dies(running):
    job, first = start(running), worker(running)
    os.kill(first, signal.SIGKILL)
    until(lambda: worker(running) not in (None, first), 120)
    until(lambda: running.get(f"/api/jobs/{job}").json()["status"] == "running", 120)
    os.kill(worker(running), signal.SIGKILL)
    ended = running.follow(job)[-1][1]
    assert ended["status"] == "failed"
    assert "ended twice" in ended["error"]
    assert running.done(kind="classify", video=running.video)["status"] == "done", "a new worker is there"


def test_a_worker_that_does_not_stop_is_killed(running):
    """A stopped process hears nothing: cancelling it needs its end."""
    job, first = start(running), worker(running)
    os.kill(first, signal.SIGSTOP)
    assert running.client.delete(f"/api/jobs/{job}").json()["status"] == "cancelled"
    until(lambda: worker(running) not in (None, first), 120)
    assert running.done(kind="classify", video=running.video)["status"] == "done"


@pytest.mark.slow
def test_what_was_asked_goes_on_after_a_restart_also_with_another_model(tmp_path):
    with serving(tmp_path / "store") as first:
        first.video = first.example()["id"]
        result, old = first.explained(first.video), first.done(kind="classify", video=first.video)
        document = first.get(f"/api/results/{result}").json()
        job = start(first, effort=4)
        tube = {"frames": [0, 15], "boxes": [[0, 0, 90, 90]] * 2}
        waiting = first.ask(kind="what_if", video=first.video, tube=tube).json()
        assert first.stop() == 0
        assert first.errors == ""
    (tmp_path / "other.py").write_text(OTHER)
    with serving(tmp_path / "store", "--model", f"{tmp_path / 'other.py'}:build") as second:
        assert second.get("/api/model").json()["words"] is False
        assert second.follow(job)[-1][1]["status"] == "done"
        asked = second.follow(waiting["id"])[-1][1]
        assert asked["status"] == "done"
        told = second.get(f"/api/results/{asked['result']}").json()["document"]
        assert set(told["probabilities"]) == {"up", "down", "aside"}, "whoever is there answers"
        assert second.get(f"/api/results/{result}").json() == document, "a shared link stays"
        assert second.get(f"/r/{result}").status_code == 200
        new = second.done(kind="classify", video=first.video)
        assert new["id"] != old["id"], "another model, another answer"
        assert second.get("/api/examples").json() == {"examples": []}, "it does not know the dances"
    with serving(tmp_path / "store") as third:
        assert third.done(kind="classify", video=first.video) == old, "nothing is computed twice"
        assert third.ask(kind="explain", video=first.video, effort=2, k=1).json()["result"] == result
