"""Bulk runs in this process and on Ray, and what breaks them: each video exactly once, whatever happens.

`python tests/bulk_faults.py` makes every fault several times.
"""

import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

import bulk_faults
from bulk_faults import Bulk, make_videos, undisturbed
from whytube.bulk.listing import Listed, list_videos
from whytube.bulk.output import Asked
from whytube.bulk.run import _shares, run_bulk
from whytube.cli import app
from whytube.errors import ArgumentError, WhytubeError


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
    assert {Path(video).name for video, rows in found.items() if rows == ["failed"]} == {"clip_006.mp4", "clip_013.mp4"}
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
    assert told == [(3, 3), (4, 4)]


def test_gpus_are_shared_among_workers():
    there = {"CPU": 8.0, "GPU": 2.0}
    assert _shares(there, None, "cpu") == (8, 0)
    assert _shares(there, 3, "cpu") == (3, 0)
    assert _shares(there, None, "cuda") == (2, 1)
    assert _shares(there, 1, "cuda") == (1, 1)
    assert _shares(there, 5, "cuda") == (5, 1 / 3)
    with pytest.raises(ArgumentError, match="has no GPU"):
        _shares({"CPU": 8.0}, None, "cuda")


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
        (["--out", "out", "--workers", "2", "--device", "cuda:0"], "there is no CUDA device|gives each worker a GPU"),
    ],
)
def test_wrong_words_leave_nothing_behind(tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    make_videos(tmp_path / "videos", 1)
    with pytest.raises(WhytubeError, match=said):
        CliRunner().invoke(app, ["bulk", "videos", *words], catch_exceptions=False)
    assert [path.name for path in tmp_path.iterdir()] == ["videos"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", ["files that may not grow, run again", "a worker killed", "a video that kills every worker"]
)
def test_faults(bulk, videos, plain, tmp_path, fault):
    assert bulk_faults.check(fault, bulk, videos, plain[0], tmp_path, random.Random(0)) == ""


@pytest.mark.slow
def test_a_killed_driver_and_two_at_a_time_in_one_process(bulk, videos, plain, tmp_path):
    alone, rng = Bulk(tmp_path, workers=0), random.Random(0)  # which also names the folder of each
    alone.model = bulk.model
    for fault in ("the driver killed, run again", "two drivers at a time"):
        assert bulk_faults.check(fault, alone, videos, plain[0], tmp_path, rng) == ""


def test_the_check_of_faults_can_fail(bulk, videos, plain, tmp_path, monkeypatch):
    """An answer that is missing, or comes twice, is noticed."""
    undone = dict(plain[0])
    first = next(iter(undone))
    undone[first] = 2 * undone[first]
    monkeypatch.setitem(bulk_faults.FAULTS, "none", lambda bulk, videos, out, rng: ("", bulk.run(videos, out)[2]))
    alone = Bulk(tmp_path, workers=0)
    alone.model = bulk.model
    assert bulk_faults.check("none", alone, videos, undone, tmp_path, random.Random(0)).startswith("answers differ")
    assert bulk_faults.check("none", alone, videos, plain[0], tmp_path, random.Random(1)) == ""
