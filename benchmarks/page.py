"""The page under load: many requests at once, how quickly others are answered meanwhile, and memory over many requests.

python benchmarks/page.py [--model demo] [--at-once 50] [--requests 500] [--quick] [--out FILE.json]

It starts `whytube serve` in a process of its own, with a new store, and asks it as browsers do.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a program finds only its own folder

from benchmarks.measure import options, publish
from whytube.versions import provenance

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES = ("/healthz", "/", "/api/model", "/api/videos")
GOAL = 200.0
"""Milliseconds within which others are to be answered while explanations run."""


def run(model: str = "demo", *, at_once: int = 50, requests: int = 500, quick: bool = False) -> dict[str, Any]:
    """Measure a server with one model."""
    if quick:
        at_once, requests = 3, 8
    with tempfile.TemporaryDirectory() as folder, serving(model, folder) as (client, pid):
        video = client.post("/api/examples/gavotte").raise_for_status().json()["id"]
        burst = _burst(client, video, at_once)
        memory = _memory(client, pid, video, requests)
    return {
        "benchmark": "page",
        "model": model,
        "burst": burst,
        "memory": memory,
        "provenance": provenance(torch.device("cpu")),
    }


@contextlib.contextmanager
def serving(model: str, folder: str) -> Iterator[tuple[httpx.Client, int]]:
    """Run a server; give a client and the process id."""
    words = [sys.executable, "-m", "whytube", "serve", "--model", model, "--store", folder, "--port", "0"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = next(word for word in process.stdout.readline().split() if word.startswith("http://"))
        pool = httpx.Limits(max_connections=None)
        with httpx.Client(base_url=address.rstrip("/"), timeout=600, limits=pool) as client:
            yield client, process.pid
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _burst(client: httpx.Client, video: str, count: int) -> dict[str, Any]:
    """Ask `count` different questions at once; ask for pages until all are answered."""

    def ask(number: int) -> dict[str, Any]:
        body = {"kind": "explain", "video": video, "effort": 2, "k": 1, "area": 0.05 + number / 1000}
        began = time.perf_counter()
        answer = client.post("/api/jobs", json=body)
        return {"status": answer.status_code, "ms": 1e3 * (time.perf_counter() - began), "job": answer.json()}

    times: dict[str, list[float]] = {path: [] for path in PAGES}
    began, ended = time.perf_counter(), threading.Event()
    watcher = threading.Thread(target=_watch, args=(client, times, ended))
    watcher.start()
    with ThreadPoolExecutor(count) as threads:
        asked = list(threads.map(ask, range(count)))
        jobs = list(threads.map(lambda one: _final(client, one["job"]["id"]), asked))
    ended.set()
    watcher.join()
    return {
        "at_once": count,
        "accepted": sum(one["status"] in (200, 202) for one in asked),
        "with_position": sum(one["job"]["position"] is not None or one["job"]["status"] != "queued" for one in asked),
        "largest_position": max(one["job"]["position"] or 0 for one in asked),
        "answered": sum(job["status"] == "done" for job in jobs),
        "seconds": time.perf_counter() - began,
        "asking_ms": _spread([one["ms"] for one in asked]),
        "meanwhile_ms": {path: _spread(found) for path, found in times.items()},
    }


def _watch(client: httpx.Client, times: dict[str, list[float]], ended: threading.Event) -> None:
    while not ended.wait(0.05):
        for path, found in times.items():
            began = time.perf_counter()
            client.get(path).raise_for_status()
            found.append(1e3 * (time.perf_counter() - began))


def _final(client: httpx.Client, job: str) -> dict[str, Any]:
    """Follow a job to its end."""
    with client.stream("GET", f"/api/jobs/{job}/events") as lines:
        for _ in lines.iter_lines():
            pass
    found: dict[str, Any] = client.get(f"/api/jobs/{job}").json()
    return found


def _memory(client: httpx.Client, pid: int, video: str, count: int) -> dict[str, Any]:
    """Resident megabytes of the server and of all its processes, before and after many requests of every kind."""
    content = client.get(f"/api/videos/{video}/play").content

    def once(number: int) -> None:
        kind = number % 5
        if kind == 0:
            client.get("/")
        elif kind == 1:
            client.post("/api/videos", files={"file": ("again.mp4", content)}).raise_for_status()
        elif kind == 2:
            body = {
                "kind": "what_if",
                "video": video,
                "tube": {"frames": [0, 15], "boxes": [[0, 0, 9 + number, 99]] * 2},
            }
            _final(client, client.post("/api/jobs", json=body).raise_for_status().json()["id"])
        elif kind == 3:
            client.get("/api/videos").raise_for_status()
        else:
            client.get(f"/api/videos/{video}/play", headers={"range": "bytes=0-999"}).raise_for_status()

    for number in range(count // 5):  # what is loaded once is loaded now
        once(number)
    before = resident(pid)
    for number in range(count):
        once(number + count)
    after = resident(pid)
    return {"requests": count, "before_mb": before, "after_mb": after}


def resident(pid: int) -> dict[str, float]:
    """Resident megabytes of a process, and of it with all that it began."""
    pids, every = [pid], []
    while pids:
        one = pids.pop()
        every.append(one)
        for path in Path(f"/proc/{one}/task").glob("*/children"):
            pids += [int(child) for child in path.read_text().split()]
    sizes = [_rss(one) for one in every]
    return {"server": sizes[0], "all": sum(sizes)}


def _rss(pid: int) -> float:
    with contextlib.suppress(OSError, StopIteration):  # it may just have ended
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) / 1024
    return 0.0


def _spread(times: list[float]) -> dict[str, float]:
    """Median, 95th percentile and maximum."""
    if len(times) < 2:
        return dict.fromkeys(("p50", "p95", "max"), times[0] if times else 0.0)
    cuts = statistics.quantiles(times, n=20, method="inclusive")
    return {"p50": statistics.median(times), "p95": cuts[18], "max": max(times)}


def table(report: dict[str, Any]) -> str:
    """Write a report as Markdown."""
    burst, memory, origin = report["burst"], report["memory"], report["provenance"]
    rows = [
        f"{burst['at_once']} questions at once to {report['model']}: {burst['accepted']} accepted, "
        f"{burst['with_position']} with their position (up to {burst['largest_position']}), "
        f"{burst['answered']} answered, in {burst['seconds']:.0f} s",
        "",
        "| milliseconds | p50 | p95 | max |",
        "| --- | ---: | ---: | ---: |",
        _row("asking, all at once", burst["asking_ms"]),
        *(_row(f"`{path}` meanwhile (goal: below {GOAL:.0f})", times) for path, times in burst["meanwhile_ms"].items()),
        "",
        f"memory over {memory['requests']} requests: server {memory['before_mb']['server']:.0f} -> "
        f"{memory['after_mb']['server']:.0f} MB, with all its processes {memory['before_mb']['all']:.0f} -> "
        f"{memory['after_mb']['all']:.0f} MB",
        f"{origin['device']}, commit {origin['commit']}",
    ]
    return "\n".join(rows)


def _row(name: str, times: dict[str, float]) -> str:
    return f"| {name} | {times['p50']:.0f} | {times['p95']:.0f} | {times['max']:.0f} |"


def main() -> None:
    """Read the options, measure, print."""
    parser = options(__doc__)
    parser.add_argument("--model", default="demo")
    parser.add_argument("--at-once", type=int, default=50)
    parser.add_argument("--requests", type=int, default=500)
    given = parser.parse_args()
    report = run(given.model, at_once=given.at_once, requests=given.requests, quick=given.quick)
    publish(report, table(report), given.out)


if __name__ == "__main__":
    main()
