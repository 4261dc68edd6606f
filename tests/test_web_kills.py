"""Nothing that was acknowledged is lost by kill -9; `python tests/web_kills.py` does it at twenty moments."""

import pytest

import web_kills


@pytest.mark.slow
def test_kill_9_loses_nothing_acknowledged():
    told, missing = web_kills.run(2, seed=0, seconds=8.0)
    assert missing == []
    assert told["videos"] > 0
    assert told["jobs"] > 0
