"""Memory of bulk runs: over many rows, and over long videos. The command itself is run, as users run it.

    python benchmarks/bulk_memory.py rows [1000 100000] [--workers 2] [--out results/bulk-rows-cpu.json]
    python benchmarks/bulk_memory.py long [120 7200] [--out results/bulk-long-cpu.json]

rows: manifests with so many rows, which point at the same six clips. Every row is explained; the network is tiny, so
that the engine is what is measured. Counts the answers afterwards. long: videos of so many seconds (H.264, 96 x 64
pixels, 8 frames per second) in windows of 4 s with `demo`, each in a process of its own. Memory is the largest resident
size that the system saw (VmHWM). A driver's was also read at each tenth of its run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from measure import publish, ray_workers
from pyarrow import dataset

from whytube.versions import provenance
from whytube.video import write_video

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

TINY = """
import torch, whytube

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.body = torch.nn.Conv3d(3, 4, 3, padding=1)
        self.head = torch.nn.Linear(4, 3)
    def forward(self, clips):
        return self.head(self.body(clips).relu().mean((2, 3, 4)) * 20)

def build():
    return whytube.wrap(Net().eval(), classes=("red", "green", "blue"), frames=4, size=(16, 16),
                        mean=(0.5,) * 3, std=(0.4,) * 3)
"""
FPS, SIZE, WINDOW = 8, (64, 96), 4


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("rows", "long"))
    parser.add_argument("sizes", type=int, nargs="*", help="numbers of rows, or seconds of video")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure = _rows if options.what == "rows" else _long
        sizes = options.sizes or ([1000, 100_000] if options.what == "rows" else [120, 7200])
        runs = []
        for size in sizes:
            runs.append(measure(Path(folder), size, options.workers))
            print(json.dumps(runs[-1]), file=sys.stderr, flush=True)
    report = {"what": options.what, "runs": runs, "provenance": provenance(torch.device("cpu"))}
    head = "rows | driver, MB | largest worker, MB" if options.what == "rows" else "seconds of video | windows | MB"
    columns = ("rows", "driver_mb", "worker_mb") if options.what == "rows" else ("seconds", "windows", "driver_mb")
    lines = [f"| {head} |", "| --- | --- | --- |"]
    lines += ["| " + " | ".join(str(run[name]) for name in columns) + " |" for run in runs]
    ratio = runs[-1]["driver_mb"] / runs[0]["driver_mb"]
    report["ratio"] = round(ratio, 3)
    publish(report, "\n".join([*lines, f"last over first: {ratio:.2f}"]), options.out)


def _rows(folder: Path, rows: int, workers: int) -> dict[str, Any]:
    """Run a manifest of so many rows."""
    (folder / "tiny.py").write_text(TINY)
    for number in range(6):
        rng = np.random.default_rng(number)
        frames = (rng.random((6, 24, 32, 3)) * 90 + rng.random((1, 1, 1, 3)) * 120).astype(np.uint8)
        write_video(folder / f"clip_{number}.mp4", frames, 8.0)
    manifest, out = folder / f"{rows}.csv", folder / f"out-{rows}"
    manifest.write_text("video\n" + "".join(f"clip_{row % 6}.mp4\n" for row in range(rows)))
    words = [str(manifest), "--model", f"{folder / 'tiny.py'}:build", "--effort", "1", "-k", "1"]
    found = _run([*words, "--out", str(out), "--workers", str(workers)], out, rows)
    answers = dataset.dataset(sorted((out / "reasons").glob("*.parquet"))).to_table(columns=["row"])["row"]
    once = len(answers) == rows == len(answers.unique())
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "whytube", "query", str(out), "--json"], check=True, capture_output=True)
    files = sum(1 for _ in out.rglob("*.parquet"))
    size = sum(path.stat().st_size for path in out.rglob("*.parquet")) >> 20
    told = {"rows": rows, "each_row_once": once, "files": files, "out_mb": size}
    return told | {"query_s": round(time.perf_counter() - began, 1)} | found


def _long(folder: Path, seconds: int, _: int) -> dict[str, Any]:
    """Run one video of so many seconds in windows."""
    path = write_video(folder / f"{seconds}.mp4", _frames(seconds), FPS)
    out = folder / f"out-{seconds}"
    words = [str(path), "--model", "demo", "--effort", "1", "--window", str(WINDOW), "--workers", "0"]
    found = _run([*words, "--out", str(out)], out, 1)
    del found["worker_mb"], found["driver_mb_at_tenths"]  # it has no workers, and one shard
    windows = dataset.dataset(sorted((out / "reasons").glob("*.parquet"))).to_table(columns=["start", "end"])
    last = max(windows["end"].to_pylist())
    return {
        "seconds": seconds,
        "windows": len(windows),
        "last_time": round(last, 3),
        "bytes": path.stat().st_size,
    } | found


def _frames(seconds: int) -> Iterator[NDArray[np.uint8]]:
    """Yield pictures in which a square goes round over a slowly changing ground."""
    rows, columns = np.mgrid[: SIZE[0], : SIZE[1]]
    for number in range(seconds * FPS):
        ground = 60 + 30 * np.sin(rows / 9 + number / 40) + 20 * np.cos(columns / 11)
        picture = np.repeat(ground[..., None], 3, 2)
        y, x = (
            int((side - 16) * (0.5 + 0.5 * wave(number / 25)))
            for side, wave in zip(SIZE, (np.sin, np.cos), strict=True)
        )
        picture[y : y + 16, x : x + 16] = (220, 80 + 100 * (number // 200 % 2), 40)
        yield picture.astype(np.uint8)


def _run(words: list[str], out: Path, rows: int) -> dict[str, Any]:
    """Run `whytube bulk`; returns the largest sizes of the driver and of its workers in MB, and what it said."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "whytube", "bulk", *words, "--json"],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    driver, workers, course = 0.0, 0.0, {}
    while process.poll() is None:
        driver = max(driver, _peak(process.pid))
        workers = max([workers, *(_peak(pid) for pid in ray_workers())])
        shards = sum(1 for _ in (out / "reasons").glob("shard-*")) if (out / "reasons").exists() else 0
        course.setdefault(shards, round(driver))
        time.sleep(1)
    said = json.loads(process.communicate()[0])
    if process.returncode or said["videos"] != rows or said["failed"]:
        raise SystemExit(f"the run went wrong: exit {process.returncode}, {said}")
    tenths = [course[min(course, key=lambda shards: abs(shards - max(course) * tenth / 10))] for tenth in range(1, 11)]
    seconds = round(time.perf_counter() - began)
    told = {"driver_mb": round(driver), "worker_mb": round(workers), "driver_mb_at_tenths": tenths}
    return told | {"run_s": seconds, "explained": said["explained"]}


def _peak(pid: int) -> float:
    """Largest resident size of a process so far in MB; 0 where it is gone."""
    try:
        lines = (Path("/proc") / str(pid) / "status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


if __name__ == "__main__":
    main()
