import threading
import time
from pathlib import Path

from whytube.cache import cache_folder, cached_weights, one_at_a_time


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("WHYTUBE_CACHE", str(tmp_path))
    assert cached_weights("i3d") == tmp_path / "weights" / "i3d.safetensors"
    monkeypatch.delenv("WHYTUBE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "whytube"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "whytube"


def test_one_at_a_time(tmp_path):
    inside, most = 0, 0
    guard = threading.Lock()

    def work():
        nonlocal inside, most
        with one_at_a_time(tmp_path / "lock"):
            with guard:
                inside += 1
                most = max(most, inside)
            time.sleep(0.01)
            with guard:
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (inside, most) == (0, 1)
