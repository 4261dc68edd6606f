import io
import sys
import time

import pytest
from rich.console import Console

from whytube.cli.profile import Profile, process_age


def test_stages_add_up_and_those_measured_within_are_taken_out():
    began = time.perf_counter()
    profile = Profile()
    profile.spent("load")
    time.sleep(0.02)
    profile.spent("other", of_which={"search": 0.015, "load": 0.001})
    assert list(profile.seconds) == ["load", "search", "other"]
    assert profile.seconds["search"] == 0.015
    assert 0.02 <= sum(profile.seconds.values()) <= time.perf_counter() - began
    out = io.StringIO()
    profile.show(Console(file=out, width=60))
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert lines[0] == ["seconds", "share"]
    assert lines[-1] == ["total", f"{sum(profile.seconds.values()):.2f}", "100", "%"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_age_of_a_process_grows_with_time():
    first = process_age()
    time.sleep(0.05)
    second = process_age()
    assert first is not None
    assert second is not None
    assert 0 < first < second
