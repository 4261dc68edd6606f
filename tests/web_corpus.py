"""Uploads odd and damaged videos to a real server: `python tests/web_corpus.py --count 2000` prints a table.

Each must give a video that plays, with its classes, or a 4xx with one line; the server must live, and hold no more
memory at the end. Ends with exit code 1 if one broke that.
"""

import argparse
import collections
import shutil
import sys
import tempfile
import time
from pathlib import Path

from corpus_files import make
from web_server import serving


def problem(server, path):
    """Say what became of a video, "taken" or the status, and what is wrong with that or None."""
    if not path.is_file() or path.is_symlink():
        return "no file", None
    name = path.name.encode("utf-8", "replace").decode()
    answer = server.upload(path, name=name)
    if answer.status_code in (200, 201):
        video = answer.json()["id"]
        played = server.get(f"/api/videos/{video}/play")
        if played.status_code != 200 or played.content[4:8] != b"ftyp":
            return "taken", "it does not play"
        said = server.done(kind="classify", video=video)
        return "taken", None if said["status"] == "done" else f"its classes: {said['error']}"
    if not 400 <= answer.status_code < 500:
        return str(answer.status_code), "not a clear refusal"
    told = answer.json()["detail"]
    if not told or not told.isprintable() or str(server.store) in told or "traceback" in told.lower():
        return str(answer.status_code), f"not one clear line: {told!r}"
    return str(answer.status_code), None


def resident(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) // 1024


def run(count, seed):
    """Upload a corpus; returns figures and failures."""
    folder = Path(tempfile.mkdtemp(prefix="corpus"))
    found, failures, slowest, began = collections.Counter(), [], 0.0, time.monotonic()
    try:
        with serving(folder / "store") as server:
            memory = [resident(server.process.pid)]
            for _, path in make(folder / "videos", count, seed):
                before = time.monotonic()
                what, wrong = problem(server, path)
                slowest = max(slowest, time.monotonic() - before)
                found[what] += 1
                if wrong:
                    failures.append((ascii(path.relative_to(folder).as_posix()), wrong))
            memory.append(resident(server.process.pid))
            alive = server.get("/healthz").status_code == 200
            left = list((folder / "store" / "incoming").iterdir())
        seconds = time.monotonic() - began
    finally:
        shutil.rmtree(folder)
    if not alive or left:
        failures.append(("the server", f"alive: {alive}, left half received: {len(left)}"))
    return {"found": found, "failures": failures, "slowest": slowest, "memory": memory, "seconds": seconds}


def table(figures):
    rows = ["| what became of it | videos |", "| --- | ---: |"]
    rows += [f"| {what} | {number} |" for what, number in sorted(figures["found"].items())]
    rows.append(f"| broken | {len(figures['failures'])} |")
    first, last = figures["memory"]
    rows.append(
        f"\nslowest {figures['slowest']:.1f} s, server {first} MB at the start and {last} MB at the end, "
        f"{figures['seconds']:.0f} s in all"
    )
    return "\n".join([*rows, *(f"{name}: {wrong}" for name, wrong in figures["failures"])])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=240, help="how many videos")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    figures = run(options.count, options.seed)
    print(table(figures))
    sys.exit(1 if figures["failures"] else 0)


if __name__ == "__main__":
    main()
