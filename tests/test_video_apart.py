import gc
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import pytest
import torch

from layout_files import make_dataset
from video_files import make_video
from whytube.data.layout import read_dataset
from whytube.errors import VideoError
from whytube.video import apart, read_bytes, read_clip
from whytube.video.apart import Readers


@pytest.fixture
def readers():
    made = Readers()
    yield made
    made.close()


@pytest.fixture
def began(monkeypatch):
    """List the processes that were started."""
    found, real = [], subprocess.Popen

    def popen(*words, **settings):
        found.append(real(*words, **settings))
        return found[-1]

    monkeypatch.setattr(apart.subprocess, "Popen", popen)
    return found


def empty(frames=5, height=24, width=40):
    return torch.zeros(3, frames, height, width, dtype=torch.uint8)


def test_a_process_gives_the_bytes_and_places_of_read_clip(tmp_path, readers):
    path = make_video(tmp_path / "a.mp4")
    for size in ((24, 40), (48, 64), (96, 200)):
        apart_, here = empty(7, *size), empty(7, *size)
        found, expected = readers.read(path, apart_, threads=1), read_bytes(path, here, threads=1)
        assert torch.equal(apart_, here)
        assert torch.equal(apart_ / 255, read_clip(path, frames=7, size=size).frames)
        assert found.indices.tolist() == expected.indices.tolist()
        assert found.times.tolist() == expected.times.tolist()
        assert found.size == expected.size


def test_a_relative_path_is_of_this_process(tmp_path, readers, monkeypatch):
    path = make_video(tmp_path / "a.mp4")
    assert readers.read(path, empty(), threads=1)
    monkeypatch.chdir(tmp_path)
    assert readers.read("a.mp4", empty(), threads=1)


def test_processes_are_kept_as_many_as_are_asked_at_a_time(tmp_path, readers, began):
    path = make_video(tmp_path / "a.mp4", count=60)
    with ThreadPoolExecutor(2) as pool:
        outs = [empty() for _ in range(12)]
        assert all(pool.map(lambda out: readers.read(path, out, threads=1), outs))
    assert all(torch.equal(out, outs[0]) for out in outs)
    assert 1 <= len(began) <= 2
    assert all(process.poll() is None for process in began)
    readers.close()
    assert all(process.poll() == 0 for process in began)
    assert readers.read(path, empty(), threads=1) is None


def test_a_bad_video_is_none_and_the_process_goes_on(tmp_path, readers, began):
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(b"no video")
    assert readers.read(bad, empty(), threads=1) is None
    assert readers.read(make_video(tmp_path / "a.mp4"), empty(), threads=1)
    assert len(began) == 1


def test_who_is_killed_is_not_asked_again(tmp_path, readers, began):
    path = make_video(tmp_path / "a.mp4")
    assert readers.read(path, empty(), threads=1)
    began[0].kill()
    began[0].wait()
    assert readers.read(path, empty(), threads=1) is None
    assert readers.read(path, empty(), threads=1) is None
    assert len(began) == 1


def test_none_where_no_process_can_be_started(tmp_path, readers):
    with mock.patch.object(apart.subprocess, "Popen", side_effect=OSError("no room")):
        assert readers.read(make_video(tmp_path / "a.mp4"), empty(), threads=1) is None


def test_places_of_modules_that_are_no_text_are_passed_over(tmp_path, readers, monkeypatch):
    path = make_video(tmp_path / "a.mp4")
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path])  # as many a notebook does, and Python bears
    assert readers.read(path, empty(), threads=1) is not None


def test_whatever_goes_wrong_is_none(tmp_path, readers, monkeypatch):
    path = make_video(tmp_path / "a.mp4")
    monkeypatch.setattr(apart, "SCRIPT", "import os; os.write(0, b'x' * 64)")  # no answer that anybody understands
    assert readers.read(path, empty(), threads=1) is None


def test_a_process_that_does_not_end_is_made_to(tmp_path, readers, began, monkeypatch):
    monkeypatch.setattr(apart, "PATIENCE", 0.05)
    assert readers.read(make_video(tmp_path / "a.mp4"), empty(), threads=1)
    os.kill(began[0].pid, signal.SIGSTOP)
    readers.close()
    assert began[0].poll() == -signal.SIGKILL


def test_processes_end_with_a_parent_that_is_killed(tmp_path):
    script = (
        "import sys, time, torch; from whytube.video.apart import Readers; readers = Readers(); "
        "print(readers.read(sys.argv[1], torch.zeros(3, 2, 8, 8, dtype=torch.uint8), threads=1), flush=True); "
        "time.sleep(60)"
    )
    words = [sys.executable, "-c", script, make_video(tmp_path / "a.mp4")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parent:
        assert "Sampled" in parent.stdout.readline()
        parent.kill()
        assert parent.communicate(timeout=30) == ("", "")  # the end of errors comes when nobody can write any


def test_they_import_no_torch():
    script = "import sys; import whytube.video.apart; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout == b"False\n"


@pytest.fixture
def dataset(tmp_path):
    return read_dataset(make_dataset(tmp_path))


def test_a_source_reads_its_first_videos_here_and_the_others_apart(dataset, began, monkeypatch):
    monkeypatch.setattr("whytube.data.layout.clips.APART_AFTER", 2)
    source = dataset.source(frames=5, size=(24, 40), workers=2, cache_bytes=0)
    first = source.batch("train", [0, 1])
    assert not began
    second = source.batch("train", [0, 1])
    assert began
    assert torch.equal(first.clips, second.clips)
    for name in ("indices", "times", "sizes"):
        assert getattr(first, name).tolist() == getattr(second, name).tolist()
    del source
    gc.collect()
    assert all(process.poll() == 0 for process in began)


def test_errors_of_videos_read_apart_are_the_same(dataset, began, monkeypatch):
    source = dataset.source(frames=5, size=(24, 40), workers=1, cache_bytes=0)
    path = dataset.items("train")[0].path
    path.write_bytes(path.read_bytes()[:-900])
    messages = []
    for after in (64, 0):
        monkeypatch.setattr("whytube.data.layout.clips.APART_AFTER", after)
        with pytest.raises(VideoError, match=r"a\.mp4") as caught:
            source.batch("train", [0])
        messages.append(str(caught.value))
    assert began
    assert messages[0] == messages[1]
    assert source.batch("train", [1]).clips.any()
