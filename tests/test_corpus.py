"""Odd and damaged videos, through the command line: each gives a result or one clear line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import corpus
import corpus_files


def test_every_video_gives_a_result_or_one_clear_line():
    words = [sys.executable, str(Path(corpus.__file__)), "--count", "120"]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=900)
    figures = json.loads(ran.stdout)
    assert figures["failures"] == []
    assert ran.returncode == 0, ran.stderr
    for kind in ("read", "explain", "check"):
        results, lines = figures["results"][kind], figures["clear lines"][kind]
        assert results + lines == figures["videos"] == 120
        assert min(results, lines) > 20, "some of both"


def test_the_same_seed_makes_the_same_videos(tmp_path):
    def contents(name, seed):
        folder = tmp_path / name
        made = corpus_files.make(folder, 40, seed)[len(corpus_files.SPECIAL) :]
        return [
            (p.relative_to(folder), p.read_bytes() if p.is_file() else sorted(p.iterdir()) and p.name) for _, p in made
        ]

    assert contents("a", 3) == contents("b", 3)
    assert contents("a2", 3) != contents("c", 4)


GOOD = {"code": 0, "out": "{}", "err": "", "seconds": 1.0, "megabytes": 300}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, None),
        ({"code": 1}, "exit code 1"),
        ({"code": -9}, "exit code -9"),
        ({"seconds": 11.0}, "took 11 s"),
        ({"megabytes": 1025}, "took 1025 MB"),
        ({"out": "{} and more"}, "standard output is no JSON"),
        ({"err": "a warning\n"}, "something beside the result"),
        ({"code": 2, "out": "", "err": "error: one line\n"}, None),
        ({"code": 2, "out": "", "err": "error: two\nlines\n"}, "not one clear line"),
        ({"code": 2, "out": "", "err": ""}, "not one clear line"),
        ({"code": 2, "err": "error: one line\n"}, "a result and an error"),
    ],
)
def test_a_broken_promise_is_seen(change, told):
    assert corpus.broken("explain", GOOD | change) == told


def test_a_command_that_fails_is_told_apart():
    def raises():
        raise RuntimeError("no reason")

    runs = dict(corpus.run_all([("good", lambda: print("[]")), ("bad", raises), ("ends", lambda: sys.exit(2))]))
    assert (runs["good"]["code"], runs["good"]["out"]) == (0, "[]\n")
    assert runs["bad"]["code"] == 1
    assert "RuntimeError: no reason" in runs["bad"]["err"]
    assert runs["ends"]["code"] == 2
