"""Outputs that cannot be written: a full disk, a read-only one, missing rights; one line, exit code 2, nothing left."""

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys

import pytest

from whytube.data.world import World
from whytube.evaluation.results import Results
from whytube.explaining import explain
from whytube.video import write_video

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mounts and limits of Linux")
QUICK = ("--clips", "8", "--set", "batch_size=8", "--set", "masked_runs=0", "--device", "cpu")
FOLDER = {
    "save": ("explain", "clip.mp4", "--save", "{}/why.json"),
    "overlay": ("explain", "clip.mp4", "--overlay", "{}/why.mp4"),
    "report": ("report", "why.json", "--out", "{}/page.html"),
    "demo": ("demo", "--out", "{}/demo", "--count", "2"),
    "classifier": ("train", "classifier", "--out", "{}/run", "--test", "1", *QUICK),
    "explainer": ("train", "explainer", "--out", "{}/run", "--classifier", "demo", *QUICK),
    "history": (
        "train",
        "explainer",
        "--out",
        "run",
        "--classifier",
        "demo",
        "--save",
        "{}/log.json",
        "--overwrite",
        *QUICK,
    ),
    "evaluate": ("evaluate", "--effort", "1", "--count", "1", "--peers", "centre", "--out", "{}/results.json"),
    "export": ("data", "export", "--out", "{}/world", "--count", "4"),
    "import": ("data", "import", "olympic-sports", ".", "--train", "train", "--test", "test", "--out", "{}/index"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    video = write_video(folder / "clip.mp4", World(size=64).batch("test", [0]).clips[0], 8.0)
    explain(video).save(folder / "why.json")
    (folder / "high_jump").mkdir()
    for split in ("train", "test"):
        (folder / "high_jump" / f"{split}.seq").touch()
        (folder / split).write_text(f"high_jump/{split}\n")
    return folder


def command(*words, cwd, **more):
    environment = os.environ | {"COLUMNS": "500"}
    line = [sys.executable, "-m", "whytube", *map(str, words)]
    more = {"stdout": subprocess.PIPE, **more}
    return subprocess.run(line, cwd=cwd, stderr=subprocess.PIPE, text=True, env=environment, timeout=120, **more)


def lines(ended):
    """Return what was said, without what a run tells on its way."""
    passing = ("The demo model", "training: ", "evaluating", "02", "0")
    return [line for line in ended.stderr.splitlines() if not line.startswith(passing)]


@contextlib.contextmanager
def mounted(folder, options):
    """Give a small file system of its own; needs the right to mount."""
    libc = ctypes.CDLL(None, use_errno=True)
    folder.mkdir()
    if libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, options.encode()) != 0:
        pytest.skip(f"cannot mount here: {os.strerror(ctypes.get_errno())}")
    try:
        yield folder
    finally:
        assert libc.umount2(os.fsencode(folder), 2) == 0


def fill(folder):
    """Leave no room for anything but names."""
    with contextlib.suppress(OSError), (folder / "filler").open("wb", buffering=0) as filler:
        while filler.write(b"x" * 1024):
            pass


def left(folder):
    """Files that are half written."""
    return [path for path in folder.rglob("*") if path.name.endswith(".part")]


@pytest.mark.parametrize("name", FOLDER)
def test_a_full_disk(name, made, tmp_path):
    with mounted(tmp_path / "small", "size=16k") as small:
        fill(small)
        ended = command(*(word.format(small) for word in FOLDER[name]), cwd=made)
        assert ended.returncode == 2, ended.stderr
        assert len(lines(ended)) == 1, ended.stderr
        assert "No space left on device" in ended.stderr
        assert not left(small)


@pytest.mark.parametrize("name", FOLDER)
def test_a_read_only_disk(name, made, tmp_path):
    with mounted(tmp_path / "fixed", "ro") as fixed:
        ended = command(*(word.format(fixed) for word in FOLDER[name]), cwd=made)
        assert ended.returncode == 2, ended.stderr
        assert len(lines(ended)) == 1, ended.stderr
        assert "Read-only file system" in ended.stderr


def limited():
    """Let no file grow beyond 20 kB: what a full disk is in the middle of writing."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


@pytest.mark.parametrize("name", ["overlay", "report", "classifier", "explainer", "export"])
def test_no_room_in_the_middle_of_a_file(name, made, tmp_path):
    words = [word.format(tmp_path) for word in FOLDER[name]]
    words += ["--size", "224"] if name == "export" else []
    ended = command(*words, cwd=made, preexec_fn=limited)
    assert ended.returncode == 2, ended.stderr
    assert len(lines(ended)) == 1, ended.stderr
    assert "File too large" in ended.stderr
    assert not left(tmp_path)


@pytest.mark.parametrize("kind", ["classifier", "explainer"])
def test_curves_that_cannot_be_written(kind, made, tmp_path):
    with mounted(tmp_path / "small", "size=16k") as small:
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "tensorboard").symlink_to(small)
        fill(small)
        more = ("--classifier", "demo") if kind == "explainer" else ("--test", "1")
        ended = command("train", kind, "--out", tmp_path / "run", "--tensorboard", *more, *QUICK, cwd=made)
        assert ended.returncode == 2, ended.stderr
        assert "Traceback" not in ended.stderr
        assert len(lines(ended)) == 1, ended.stderr
        assert "No space left on device" in ended.stderr


@pytest.mark.skipif(os.name == "nt" or os.getuid() == 0, reason="root has every right; the mounts above refuse it")
def test_missing_rights(made, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    for name in ("save", "report", "classifier", "export"):
        ended = command(*(word.format(tmp_path / "closed") for word in FOLDER[name]), cwd=made)
        assert (ended.returncode, len(lines(ended))) == (2, 1), ended.stderr
        assert "Permission denied" in ended.stderr


@pytest.mark.parametrize("words", [("models", "list", "--json"), ("explain", "clip.mp4", "--json"), ("models", "list")])
def test_standard_output_that_is_full(words, made):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        ended = command(*words, cwd=made, stdout=full)
    assert ended.returncode == 2, ended.stderr
    assert [line.endswith("No space left on device") for line in lines(ended)] == [True]


def test_standard_output_that_is_closed(made):
    shell = ["/bin/sh", "-c", f"exec {sys.executable} -m whytube models list --json >&-"]
    ended = subprocess.run(shell, cwd=made, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (2, "error: cannot print the result: standard output is closed\n")
    for words in (("models", "list", "--json"), ("models", "list"), ("models", "info", "i3d-kinetics-400", "--json")):
        reader, writer = os.pipe()
        os.close(reader)
        ended = command(*words, cwd=made, stdout=writer)
        os.close(writer)
        assert (ended.returncode, ended.stderr) == (1, ""), "nobody reads on: quiet, as other programs are"


def test_standard_error_that_is_full(made):
    line = [sys.executable, "-m", "whytube", "explain", "nothing.mp4"]
    with open("/dev/full", "w") as full:  # noqa: PTH123
        ended = subprocess.run(line, cwd=made, stdout=subprocess.PIPE, stderr=full, text=True, timeout=120)
    assert (ended.returncode, ended.stdout) == (2, "")


def test_results_are_whole_or_not_there(made, tmp_path):
    words = ("evaluate", "--effort", "1", "--count", "1", "--peers", "centre", "--out", tmp_path / "results.json")
    assert command(*words, cwd=made).returncode == 0
    assert "ours" in Results.load(tmp_path / "results.json").methods
