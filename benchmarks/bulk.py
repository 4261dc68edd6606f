"""Videos per second of bulk runs, against a plain loop over `explain` in one process.

    python benchmarks/bulk.py [--videos 48] [--workers 1 2] [--model demo] [--effort 6] [--out results/bulk.json]

Every run explains the same clips of the embedded world. The plain loop loads the model once and explains one video
after the other, with one torch thread, as a worker has. Times of bulk runs are from the first finished shards to the
last: what starting Ray and the models takes is told apart. Says how much memory the driver took at most, and the CPU
time of a video, which means something also where others use the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from pathlib import Path

import torch
from measure import cpu_seconds, ray_workers

from whytube import explain, load_model
from whytube.bulk import output
from whytube.bulk.listing import Listed, list_videos
from whytube.bulk.run import run_bulk
from whytube.data.export import export_world
from whytube.versions import provenance, versions


def main() -> None:
    """Measure and print."""
    options = _options()
    output.SHARD = options.shard
    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        export_world(Path(folder) / "world", count=min(options.videos, 96), size=64)
        found = list_videos(str(Path(folder) / "world" / "videos"))
        listed = [found[place % len(found)] for place in range(options.videos)]
        rows.append({"run": "plain loop", **_plain(listed, options)})
        for workers in options.workers:
            rows.append(
                {"run": f"bulk, {workers} on Ray", **_bulk(listed, options, Path(folder) / str(workers), workers)}
            )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        "| run | videos per second | over the plain loop | CPU seconds per video, over the plain loop | start-up in s |"
    )
    print("| --- | --- | --- | --- | --- |")
    for row in rows:
        row["ratio"] = round(row["rate"] / rows[0]["rate"], 3)
        row["cpu_ratio"] = round(row["cpu"] / rows[0]["cpu"], 3)
        print(
            f"| {row['run']} | {row['rate']:.2f} | {row['ratio']:.2f} | {row['cpu_ratio']:.2f} | {row['start']:.1f} |"
        )
    print(f"driver: {peak:.0f} MB at most")
    if options.out:
        told = {
            "rows": rows,
            "load": os.getloadavg()[0],
            "videos": options.videos,
            "driver_mb": round(peak),
            "effort": options.effort,
        }
        told["provenance"] = provenance(torch.device("cpu"), seed=0)
        Path(options.out).write_text(json.dumps(told, indent=1) + "\n")


def _plain(listed: list[Listed], options: argparse.Namespace) -> dict[str, float]:
    began = time.perf_counter()
    model = load_model(options.model)
    explain(listed[0].video, model, effort=options.effort)
    start, spent = time.perf_counter(), time.process_time()
    for one in listed:
        explain(one.video, model, effort=options.effort)
    cpu = (time.process_time() - spent) / len(listed)
    return {"rate": len(listed) / (time.perf_counter() - start), "start": start - began, "cpu": cpu}


def _bulk(listed: list[Listed], options: argparse.Namespace, out: Path, workers: int) -> dict[str, float]:
    asked = output.Asked(model=options.model, model_hash="", effort=options.effort)
    marks: list[tuple[float, int, float]] = []
    began = time.perf_counter()

    def progress(done: int, _: int) -> None:
        if done:  # before that, Ray and the models start
            marks.append((time.perf_counter(), done, sum(map(cpu_seconds, ray_workers()))))

    run_bulk(listed, asked, out, versions=versions(), workers=workers, progress=progress)
    (first, before, spent), (last, after, all_spent) = marks[workers - 1], marks[-1]
    counted = after - before
    rate, cpu = counted / (last - first), (all_spent - spent) / counted
    return {"rate": rate, "start": marks[0][0] - began, "cpu": cpu, "counted": counted}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=int, default=48)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--model", default="demo")
    parser.add_argument("--effort", type=int, default=6)
    parser.add_argument("--shard", type=int, default=4)
    parser.add_argument("--out", help="also write the figures as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    main()
