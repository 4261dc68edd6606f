import os
import sys

import pytest

from whytube.weights.pip_settings import PYPI, PipSettings, read_pip_settings


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)  # then pip reads no other file either


def test_without_settings_it_is_pypi():
    assert read_pip_settings() == PipSettings()
    assert PipSettings().indexes == (PYPI,)


def test_files_and_variables_of_pip_count(monkeypatch, tmp_path):
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = https://mirror.example/simple\nextra-index-url = https://b.example\n  https://c.example\n"
        "trusted-host = mirror.example\ntimeout = 7\n[download]\nproxy = http://proxy.example\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("PIP_FIND_LINKS", "/a /b")
    found = read_pip_settings()
    assert found.indexes == ("https://mirror.example/simple", "https://b.example", "https://c.example")
    assert (found.trusted_hosts, found.timeout, found.proxy) == (("mirror.example",), 7.0, "http://proxy.example")
    assert found.find_links == ("/a", "/b")
    monkeypatch.setenv("PIP_INDEX_URL", "https://stronger.example")
    assert read_pip_settings().indexes[0] == "https://stronger.example"
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert read_pip_settings().indexes == ()


def test_without_pip_its_variables_still_count(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/simple")
    assert read_pip_settings().indexes == ("https://mirror.example/simple",)
