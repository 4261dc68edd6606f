"""SIGTERM and Ctrl-C in real processes: one line, the conventional exit code, no partial file, no traceback."""

import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from whytube.data.world import World
from whytube.explaining import explain
from whytube.training.loop import claimed
from whytube.video import write_video

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
LONG = {
    "explain": ("explain", "clip.mp4", "--save", "out/why.json", "--overlay", "out/why.mp4"),
    "report": ("report", *["why.json"] * 40, "--out", "out/page.html"),
    "demo": ("demo", "--out", "out", "--count", "96"),
    "export": ("data", "export", "--out", "out/world", "--count", "2000"),
    "classifier": ("train", "classifier", "--out", "out", "--data", "world"),
    "explainer": ("train", "explainer", "--out", "out", "--classifier", "demo"),
    "evaluate": ("evaluate", "--out", "out/results.json", "--count", "960"),
}


@pytest.fixture
def folder(tmp_path):
    video = write_video(tmp_path / "clip.mp4", World(size=64).batch("test", [0]).clips[0], 8.0)
    explain(video).save(tmp_path / "why.json")
    (tmp_path / "out").mkdir()
    return tmp_path


def begin(words, cwd):
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-m", "whytube", *words], cwd=cwd, stdout=pipe, stderr=pipe, text=True)


def check_end(process, number, cwd):
    stderr = process.communicate(timeout=60)[1]
    assert "Traceback" not in stderr
    assert "Exception ignored" not in stderr
    assert not list(cwd.rglob("*.part")), "nothing half written"
    if process.returncode == 0:  # it was done before the signal came
        return False
    assert process.returncode in (CODES[number], -number), stderr
    if process.returncode > 0:
        assert stderr.splitlines()[-1].startswith("interrupted")
        assert sum(line.startswith("interrupted") for line in stderr.splitlines()) == 1
    return True


def wait_for_steps(process):
    """Wait until a training has said what it will take; its first step follows."""
    assert process.stderr.readline().startswith("training: ")
    time.sleep(0.5)


@pytest.mark.parametrize("number", CODES)
@pytest.mark.parametrize("name", LONG)
def test_at_random_moments(name, number, folder):
    moments = random.Random(f"{name}{number}")
    for latest in (0.3, 4.0):
        process = begin(LONG[name], folder)
        time.sleep(moments.uniform(0.1, latest))
        process.send_signal(number)
        check_end(process, number, folder)
        shutil.rmtree(folder / "out")  # a file that was finished before the signal is whole, and stays
        (folder / "out").mkdir()


@pytest.mark.parametrize("number", CODES)
def test_what_was_kept_is_said_and_goes_on(number, folder):
    words = ("train", "classifier", "--out", "out", "--clips", "2000")
    process = begin(words, folder)
    wait_for_steps(process)
    process.send_signal(number)
    stderr = process.communicate(timeout=60)[1]
    assert process.returncode == CODES[number]
    left = {path.name for path in (folder / "out").iterdir()}
    assert left <= {".lock", "run.safetensors"}
    kept = "--resume goes on from the last saved state" if "run.safetensors" in left else "nothing was saved yet"
    assert stderr.splitlines()[-1] == f"interrupted; {kept}"


def test_a_second_signal_does_not_disturb_the_first(folder):
    process = begin(LONG["export"], folder)
    while not list((folder / "out").glob(".world.*.part/videos/*/*.mp4")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    for _ in range(20):
        process.send_signal(signal.SIGINT)
        time.sleep(0.002)
    stderr = process.communicate(timeout=60)[1]
    assert stderr == "interrupted\n"
    assert process.returncode in CODES.values(), "which of two comes first is the system's choice"
    assert list((folder / "out").iterdir()) == []


SWALLOWED = """
import os, signal, sys, time
sys.argv = ["whytube", "--version"]
import whytube.cli
from whytube import __main__ as program

class Closing:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.05)

def run():
    Closing()
    time.sleep(30)
    print("not stopped")

whytube.cli.main = run
program.main()
"""


CAUGHT = """
import os, signal, sys, time
sys.argv = ["whytube", "--version"]
import whytube.cli
from whytube import __main__ as program

def run():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1)
    except BaseException:
        pass
    begun = time.monotonic()
    try:
        time.sleep(15)
    finally:
        print("soon" if time.monotonic() - begun < program.PATIENCE / 2 else "late")

program.PATIENCE = 8
whytube.cli.main = run
program.main()
"""


def test_a_signal_that_a_library_caught(tmp_path):
    ended = subprocess.run([sys.executable, "-c", CAUGHT], capture_output=True, text=True, timeout=20, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (143, "soon\n", "interrupted\n")


IMPORTING = """
import os, signal, sys, time
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(0.2)
print("imported")
"""


def test_an_import_is_let_finish(tmp_path):
    (tmp_path / "heavy.py").write_text(IMPORTING)
    code = CLEANING.replace("os.kill(os.getpid(), signal.SIGTERM)", "import heavy").replace(
        "time.sleep(1)", "time.sleep(9)", 1
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=20, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (143, "imported\ncleaned\n", "interrupted\n")


CLEANING = """
import os, signal, sys, time
sys.argv = ["whytube", "--version"]
import whytube.cli
from whytube import __main__ as program

def run():
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1)
    finally:
        time.sleep(1)
        print("cleaned")

whytube.cli.main = run
program.main()
"""


def test_cleaning_up_is_not_disturbed():
    ended = subprocess.run([sys.executable, "-c", CLEANING], capture_output=True, text=True, timeout=20, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (143, "cleaned\n", "interrupted\n")


def test_a_signal_where_python_cannot_pass_it_on(tmp_path):
    ended = subprocess.run([sys.executable, "-c", SWALLOWED], capture_output=True, text=True, timeout=20, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (143, "", "interrupted\n")


def test_the_second_training_into_a_folder_refuses_until_the_first_is_gone(folder):
    first = begin(("train", "classifier", "--out", "out"), folder)
    try:
        wait_for_steps(first)
        second = begin(("train", "explainer", "--out", "out", "--classifier", "demo"), folder)
        stderr = second.communicate(timeout=60)[1]
        assert second.returncode == 2
        assert (
            stderr.splitlines()[-1] == "error: another training is writing to out; wait for it or choose another folder"
        )
    finally:
        first.kill()
        first.communicate(timeout=60)
    with claimed(folder / "out") as free:
        assert free == folder / "out"
