"""Runs whytube over odd and damaged videos: `python tests/corpus.py --count 2000` prints what became of them as JSON.

Every video is read, explained (`whytube explain --json`) and checked (`whytube data check --json`). Each of these is
the command itself with its own standard output, standard error and exit code, in a process of its own, forked from one
that has imported everything. Ends with exit code 1 if one of them broke a promise of docs/reliability.md.
"""

import argparse
import collections
import contextlib
import functools
import gc
import io
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from corpus_files import make

SECONDS, MEGABYTES = 10, 1024
"""The most that a command may take."""
NOTICE = "The demo model knows only the 24 dances of the embedded world.\n"


def run_command(words):
    """Run the command line; returns its exit code, output, seconds and the most megabytes it had."""
    return next(run_all([(tuple(words), lambda: command(words))]))[1]


def command(words):
    """Become `whytube` with these words."""
    from whytube.cli import main

    sys.argv = ["whytube", *map(str, words)]
    main()


def read(path):
    """Read a video in every way; what is refused by one and not by all is told on standard error."""
    from whytube.errors import VideoError
    from whytube.video import iter_windows, probe, read_clip

    told = []
    for act in (
        lambda: read_clip(path, frames=4, max_pixels=1 << 22) if path.suffix != ".gif" else None,
        lambda: read_clip(path, size=(32, 32), salvage=True),
        lambda: probe(path),
        lambda: [None for _ in iter_windows(path, size=(16, 16))],
        lambda: [None for _ in iter_windows(path, size=(16, 16), salvage=True)],
    ):
        try:
            act()
        except VideoError as error:
            told.append(str(error))
    if told:
        print(f"error: {told[0]}", file=sys.stderr)
        sys.exit(2)


@functools.cache
def prepare():
    """Import everything and compile the kernel once, before the first fork, by commands that work."""
    import torch

    from whytube.data.world import World
    from whytube.video import write_video

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
        (Path(folder) / "thing").mkdir()
        video = write_video(Path(folder) / "thing" / "dance.mp4", World(size=64).batch("test", [0]).clips[0], 8.0)
        for words in (
            ["explain", video, "--overlay", f"{folder}/why.mp4", "--json"],
            ["data", "check", folder, "--json"],
        ):
            with contextlib.suppress(SystemExit), contextlib.redirect_stderr(said):
                command(words)
    gc.freeze()


def run_all(tasks, jobs=2):
    """Run (name, function) each in a fork of this process; yields the name and what became of it."""
    prepare()
    waiting, running = collections.deque(tasks), {}
    while waiting or running:
        while waiting and len(running) < jobs:
            name, function = waiting.popleft()
            folder = tempfile.mkdtemp()
            running[_fork(function, folder)] = (name, folder, time.monotonic())
        for pid, (name, folder, began) in list(running.items()):
            ended, status, usage = os.wait4(pid, os.WNOHANG)
            seconds = time.monotonic() - began
            if not ended and seconds > 3 * SECONDS:
                os.kill(pid, signal.SIGKILL)
            if ended:
                del running[pid]
                out, err = (Path(folder, stream).read_text(encoding="utf-8") for stream in ("out", "err"))
                shutil.rmtree(folder)
                peak = usage.ru_maxrss // 1024
                code = os.waitstatus_to_exitcode(status)
                yield name, {"code": code, "out": out, "err": err, "seconds": seconds, "megabytes": peak}
        time.sleep(0.002)


def _fork(function, folder):
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        for number, stream in ((1, "out"), (2, "err")):
            os.dup2(os.open(Path(folder, stream), os.O_CREAT | os.O_WRONLY, 0o600), number)
        sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
        resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))
        function()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # a child must not go on as its parent
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def broken(kind, ran):
    """Which promise a run broke, or None."""
    err = ran["err"].replace(NOTICE, "")
    if ran["code"] not in (0, 2):
        return f"exit code {ran['code']}"
    if ran["seconds"] > SECONDS:
        return f"took {ran['seconds']:.0f} s"
    if ran["megabytes"] > MEGABYTES:
        return f"took {ran['megabytes']} MB"
    if ran["out"]:
        try:
            json.loads(ran["out"])
        except ValueError:
            return "standard output is no JSON"
    if kind == "check":
        return None if ran["out"] and not err else "no report, or something beside it"
    if ran["code"] == 0:
        return None if not err and bool(ran["out"]) == (kind == "explain") else "something beside the result"
    if not err.startswith("error: ") or err.count("\n") != 1 or not err[:-1].isprintable():
        return "not one clear line"
    return "a result and an error" if ran["out"] else None


def tasks(folder, count, seed):
    """List what to run, as (kind, video) and a function."""
    for number, (data, path) in enumerate(make(folder, count, seed)):
        extra = [[], [], ["--salvage"], ["--salvage", "--overlay", data / "why.mp4"]][number * 7 % 32 // 9]
        words = ["explain", "--effort", "1", "--json", *extra, "--", path]
        yield ("read", path), lambda path=path: read(path)
        yield ("explain", path), lambda words=words: command(words)
        yield ("check", path), lambda data=data: command(["data", "check", "--json", data])


def run(count, seed):
    """Make the corpus and run everything over it; returns figures and failures."""
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="corpus"))
    figures = {
        "videos": count,
        "results": collections.Counter(),
        "clear lines": collections.Counter(),
        "most megabytes": 0,
        "most seconds": 0.0,
        "failures": [],
    }
    try:
        for (kind, path), ran in run_all(list(tasks(folder, count, seed))):
            problem = broken(kind, ran)
            if problem:
                told = {"kind": kind, "video": ascii(path.relative_to(folder).as_posix()), "problem": problem}
                figures["failures"].append(told | {"err": ran["err"][-800:], "out": ran["out"][-200:]})
            else:
                figures["results" if ran["code"] == 0 else "clear lines"][kind] += 1
            figures["most megabytes"] = max(figures["most megabytes"], ran["megabytes"])
            figures["most seconds"] = max(figures["most seconds"], round(ran["seconds"], 2))
    finally:
        shutil.rmtree(folder)
    return figures | {"seconds": round(time.monotonic() - began, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="how many videos")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    figures = run(options.count, options.seed)
    print(json.dumps(figures, indent=1))
    sys.exit(1 if figures["failures"] else 0)


if __name__ == "__main__":
    main()
