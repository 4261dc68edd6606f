"""Odd and damaged videos through the door; `python tests/web_corpus.py` takes them all."""

import numpy as np
import pytest

import web_corpus
from corpus_files import make
from whytube.video import write_video


@pytest.mark.slow
def test_odd_videos_are_taken_or_refused_clearly(server, tmp_path):
    found = {}
    for _, path in make(tmp_path, 60, 3)[::2]:
        what, wrong = web_corpus.problem(server, path)
        assert wrong is None, path
        found.setdefault(what, []).append(path)
    assert found["taken"]
    assert found["422"]
    assert list((server.store / "incoming").iterdir()) == []
    assert server.get("/healthz").status_code == 200


def test_a_bomb_is_refused_by_what_it_would_become(server, tmp_path):
    """Few bytes, many frames: what is small when it comes and large when it is decoded."""
    frames = (np.zeros((16, 16, 3), np.uint8) for _ in range(20_000))
    path = write_video(tmp_path / "long.mp4", frames, 240.0, preset="ultrafast")
    assert path.stat().st_size < 2 << 20
    refused = server.upload(path)
    assert refused.status_code == 422
    assert "has 20000 frames; expected at most 18000" in refused.json()["detail"]
    assert list((server.store / "incoming").iterdir()) == []


def test_the_table_tells_what_broke():
    figures = {"found": {"taken": 3, "422": 2}, "failures": [("x.mp4", "not clear")], "slowest": 1.0}
    told = web_corpus.table(figures | {"memory": [90, 91], "seconds": 5.0})
    assert "| 422 | 2 |\n| taken | 3 |\n| broken | 1 |" in told
    assert "server 90 MB at the start and 91 MB at the end" in told
    assert told.endswith("x.mp4: not clear")
