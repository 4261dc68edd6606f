import shutil
import subprocess
from pathlib import Path

import pytest
import torch

import whytube
from whytube import versions


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """Ask for the commit anew in every test: a process does so once."""
    monkeypatch.delenv("WHYTUBE_COMMIT", raising=False)
    versions.commit.cache_clear()
    yield
    versions.commit.cache_clear()


def git(folder, *words):
    name = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
    done = subprocess.run(["git", *name, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Return a repository of its own with the module in it, committed."""
    copy = shutil.copy(Path(versions.__file__), tmp_path)
    monkeypatch.setattr(versions, "__file__", str(copy))
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "versions.py")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    return tmp_path


def test_commit_of_a_checkout(checkout):
    assert versions.commit() == git(checkout, "rev-parse", "--short=12", "HEAD")


def test_a_plus_marks_files_that_differ_from_the_commit(checkout):
    (checkout / "new.txt").touch()
    assert not versions.commit().endswith("+"), "files that git does not know do not count"
    versions.commit.cache_clear()
    with (checkout / "versions.py").open("a") as file:
        file.write("\n")
    assert versions.commit() == git(checkout, "rev-parse", "--short=12", "HEAD") + "+"


def test_an_installed_package_has_no_commit(checkout):
    git(checkout, "rm", "--quiet", "--cached", "versions.py")
    assert versions.commit() is None, "somebody else's repository"
    versions.commit.cache_clear()
    shutil.rmtree(checkout / ".git")
    assert versions.commit() is None, "no repository at all"


def test_a_copy_of_the_tree_may_say_where_it_came_from(checkout, monkeypatch):
    monkeypatch.setenv("WHYTUBE_COMMIT", "0123456789ab")
    assert versions.commit() == "0123456789ab"
    assert versions.provenance(torch.device("cpu"))["commit"] == "0123456789ab"


def test_provenance_says_what_computed():
    origin = versions.provenance(torch.device("cpu"), seed=3)
    assert set(origin) == {"commit", "device", "threads", "seed", "versions"}
    assert origin["seed"] == 3
    assert origin["threads"] == torch.get_num_threads()
    assert origin["device"]
    assert origin["versions"]["whytube"] == whytube.__version__
    assert origin["versions"]["torch"] == torch.__version__
