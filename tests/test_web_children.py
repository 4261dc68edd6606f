import os
import threading

import pytest

from web_server import until
from whytube.errors import VideoError
from whytube.web.children import run_limited, stop_children
from whytube.web.settings import Limits

LIMITS = Limits(decoding=60, memory=512 << 20)


def run(name, *values, limits=LIMITS, largest=8 << 20):
    return run_limited(f"limited_work:{name}", *values, limits=limits, largest=largest)


def test_it_runs_elsewhere_and_nothing_is_left():
    assert run("add", 2, 3) == 5
    child = run("pid")
    assert child != os.getpid()
    assert run("pid") != child
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_refusals_come_back_without_their_advice():
    with pytest.raises(VideoError) as told:
        run("refuse", "video")
    assert str(told.value) == "this is damaged"
    with pytest.raises(VideoError, match=r"^no$"):
        run("refuse", "other")


def test_a_bug_is_logged_and_not_told(caplog):
    with pytest.raises(VideoError, match=r"^this video could not be read\. Convert it to H\.264 mp4$"):
        run("fail")
    assert "RuntimeError: a bug" in caplog.text


def test_memory_is_bounded():
    assert run("eat", 64) == 64 << 20
    with pytest.raises(VideoError, match="needs more than 512 MiB of memory"):
        run("eat", 4096)


@pytest.mark.parametrize("work", ["sleep", "spin"])
def test_time_is_bounded(work):
    with pytest.raises(VideoError, match=r"took more than 0\.5 seconds"):
        run(work, limits=Limits(decoding=0.5))


def test_a_crash_is_a_clear_line():
    with pytest.raises(VideoError, match="broke its decoder"):
        run("crash")


def test_files_are_bounded(tmp_path):
    run("write", str(tmp_path / "small"), 4)
    with pytest.raises(VideoError):
        run("write", str(tmp_path / "large"), 64)
    assert (tmp_path / "large").stat().st_size <= 8 << 20


def test_the_end_of_the_server_ends_them():
    found = []

    def work():
        try:
            run("sleep")
        except VideoError as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()

    def ended():
        stop_children()
        return not thread.is_alive()

    until(ended)
    assert len(found) == 1
