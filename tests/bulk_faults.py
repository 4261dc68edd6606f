"""Breaks bulk runs in every way that real ones break, and counts.

    python tests/bulk_faults.py [--videos 40] [--rounds 3] [--seed 0] [--only WORD] [--shard 1]
                                [--out results/bulk-faults.json]

Each fault is made for real, with processes, on a Ray cluster of three nodes: a worker killed, a node killed, the driver
killed and the command run again, Ctrl-C, a full disk, videos that are no videos (in every run), workers that run out of
memory, two drivers at a time. After each, every video must be in the answers exactly once or in the failures exactly
once, with the same answers as an undisturbed run, in all columns. Prints a row per fault.
"""

import argparse
import json
import math
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from bulk_cluster import Nodes, actors

SOURCE = Path(__file__).parent.parent / "src"
MODEL = '''
"""A tiny network with three words. `how.json` beside this file says what is wrong with the machine that it runs on."""
import json, os, pathlib, resource, signal, sys, time, torch, whytube

def how(name):
    file = pathlib.Path(__file__).with_name("how.json")
    return json.loads(file.read_text()).get(name, 0) if file.exists() else 0

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)  # with this one clips differ in class and word
        self.body = torch.nn.Conv3d(3, 4, 3, stride=(1, 2, 2), padding=1)
        self.head = torch.nn.Linear(4, 3)
    def forward(self, clips):
        if float(clips.detach().float().mean((1, 2, 3, 4)).max()) > 1.0:  # a clip that is nearly white
            if not how("gigabytes"):
                os.kill(os.getpid(), signal.SIGKILL)  # as the system does when memory ends
            if how("least"):  # the process may not have more
                resource.setrlimit(resource.RLIMIT_DATA, (how("least"), -1))
            try:
                torch.ones(how("gigabytes"), 1 << 28)
                time.sleep(20)
            finally:
                resource.setrlimit(resource.RLIMIT_DATA, (-1, -1))
        time.sleep(how("slow"))
        return self.head(self.body(clips).relu().mean((2, 3, 4)) * 100)

def build():
    from whytube.explainer.explainer import Explainer
    from whytube.explainer.scores import build_scores

    classifier = whytube.wrap(Net().eval(), classes=("red", "green", "blue"), frames=4, size=(16, 16),
                              mean=(0.5,) * 3, std=(0.4,) * 3)
    table = torch.tensor([[1, 1, 0], [0, 1, 1], [1, 0, 1]]).bool()
    return Explainer(classifier, build_scores(classifier, 3).eval(), ("warm", "bright", "cold"), table, "ours")
'''


SMALL_SHARDS = """
import whytube.bulk.output as output
output.SHARD = {}
from whytube.cli import main
main()
"""
DEADLY = "clip_003.mp4"


def make_videos(folder, count, *, poison=False):
    """Write clips of coloured noise, every seventh of them damaged; poison: one is white."""
    from whytube.video import write_video

    folder.mkdir(parents=True)
    for number in range(count):
        path = folder / f"clip_{number:03d}.mp4"
        if number % 7 == 6:
            path.write_bytes(b"no video at all")
            continue
        rng = np.random.default_rng(number)
        frames = (rng.random((6, 24, 32, 3)) * 90 + rng.random((1, 1, 1, 3)) * 120).astype(np.uint8)
        if poison and path.name == DEADLY:
            frames[:] = 255
        write_video(path, frames, 8.0)
    return folder


class Bulk:
    """The command, in this process (workers=0), on a Ray of its own, or on a cluster (nodes).

    shard: videos of a shard, None for as many as always. With few, workers are given several shards at a time.
    """

    def __init__(self, folder, *, workers=2, nodes=None, shard=None):
        self.folder, self.workers, self.nodes, self.shard = Path(folder), workers, nodes, shard
        self.model = self.folder / "tiny.py"
        self.model.write_text(MODEL)

    def start(self, videos, out, *, workers=None, limit=None, model=None, cwd=None, **how):
        self.tell(**how)
        workers = self.workers if workers is None else workers
        command = ["-m", "whytube"] if self.shard is None else ["-c", SMALL_SHARDS.format(self.shard)]
        words = [sys.executable, *command, "bulk", str(videos), "--model", f"{model or self.model}:build"]
        words += ["--out", str(out), "--workers", str(workers), "--json", "--effort", "2", "-k", "1"]
        if workers and self.nodes is not None:
            words += ["--ray", self.nodes.address]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(SOURCE)}

        def limited():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # then a write beyond it fails, as on a full disk
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        return subprocess.Popen(
            words,
            env=environment,
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=limited if limit else None,
        )

    def tell(self, **how):
        """Say what is wrong with the machine, also to a run that works: it never finds half a file."""
        new = self.model.with_name("how.json.new")
        new.write_text(json.dumps(how))
        new.replace(self.model.with_name("how.json"))

    def run(self, videos, out, **how):
        process = self.start(videos, out, **how)
        said, told = process.communicate(timeout=540)
        return process.returncode, said, told

    def actors(self, process):
        """Find the processes of the workers of a run."""
        return actors(process.pid if self.nodes is None else self.nodes.process.pid)


def answers(out):
    """Answers and failures by video, with all their columns, and how often each came."""
    from pyarrow import dataset

    found = {}
    for table in ("reasons", "failures"):
        for row in dataset.dataset(sorted((out / table).glob("*.parquet"))).to_table().to_pylist():
            found.setdefault(row["video"], []).append(row)
    return found


def alike(one, other):
    """Whether two answers say the same. Numbers may differ by rounding: clips are asked about in other batches."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-3, abs_tol=1e-4)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other


def differences(found, expected):
    """Say which videos have other answers than expected, or none, or some twice; "" where all is well."""
    wrong = sorted(v for v in found.keys() | expected.keys() if not alike(found.get(v), expected.get(v)))
    return f"answers differ: {[(v, found.get(v), expected.get(v)) for v in wrong[:2]]}" if wrong else ""


def named(found, without=()):
    """Answers by the name of the video alone, to compare copies of it in two folders."""
    plain = {}
    for video, rows in found.items():
        name = Path(video).name
        text = json.dumps(rows).replace(json.dumps(video)[1:-1], name)
        if name not in without:
            plain[name] = json.loads(text)
    return plain


def reasons(out):
    """Why videos failed."""
    from pyarrow import dataset

    rows = dataset.dataset(sorted((out / "failures").glob("*.parquet"))).to_table().to_pylist()
    return {row["video"]: row["error"] for row in rows}


def shards(out):
    return len(list((out / "reasons").glob("*.parquet")))


def wait_for(condition, seconds=300):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def kill_group(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def begun(bulk, videos, out, rng, **how):
    """Start a run and wait until it is somewhere in its course."""
    process = bulk.start(videos, out, slow=0.05, **how)
    wait_for(lambda: process.poll() is not None or ((out / "reasons").exists() and shards(out) >= 1))
    time.sleep(rng.random())
    return process


def ended(process):
    told = process.communicate(timeout=540)[1]
    return ("" if process.returncode == 0 else f"exit {process.returncode}"), told


def again(bulk, videos, out):
    code, _, told = bulk.run(videos, out)
    return ("" if code == 0 else f"exit {code} the second time"), told


def nothing(bulk, videos, out, rng):
    return ended(bulk.start(videos, out))


def worker_killed(bulk, videos, out, rng):
    process = begun(bulk, videos, out, rng)
    found = bulk.actors(process)
    if not found:
        return "there was no worker to kill", ended(process)[1]
    os.kill(found[0], signal.SIGKILL)
    return ended(process)


def node_killed(bulk, videos, out, rng):
    process = begun(bulk, videos, out, rng)
    found = bulk.actors(process)
    if not found:
        return "there was no node to kill", ended(process)[1]
    bulk.nodes.kill(found[0])
    return ended(process)


def driver_killed(bulk, videos, out, rng):
    process = begun(bulk, videos, out, rng)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return again(bulk, videos, out)


def interrupted(bulk, videos, out, rng):
    process = begun(bulk, videos, out, rng)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    if process.returncode not in (0, 130):
        return f"Ctrl-C gave exit {process.returncode}", ""
    return again(bulk, videos, out)


def limited_files(bulk, videos, out, rng):
    code, _, told = bulk.run(videos, out, workers=0, limit=4096)
    if code != 2 or "cannot write" not in told:
        return f"exit {code} on a full disk", told
    return again(bulk, videos, out)


def full_disk(bulk, videos, out, rng):
    """Write to a disk of 40 KiB (root may mount one), which workers on all nodes find full."""
    out.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40k", "none", out], check=True)
    try:
        code, _, told = bulk.run(videos, out)
        if code != 2 or "cannot write" not in told:
            return f"exit {code} on a full disk", told
        subprocess.run(["mount", "-o", "remount,size=64m", out], check=True)
        wrong, told = again(bulk, videos, out)
        for path in out.rglob("*.parquet"):  # kept for `answers`, after the disk is gone
            kept = out.parent / f"{out.name}-kept" / path.relative_to(out)
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(path.read_bytes())
    finally:
        subprocess.run(["umount", out], check=True)
    if not wrong:
        out.rmdir()
        (out.parent / f"{out.name}-kept").rename(out)
    return wrong, told


def poisoned(bulk, videos, out, rng, why="3 workers died of it", **how):
    white = make_videos(out.parent / f"white-{out.name}", 12, poison=True)
    code, _, told = bulk.run(white, out, **how)
    found = answers(out)
    bad = [video for video, rows in found.items() if len(rows) != 1]
    deadly = reasons(out).get(str(white / DEADLY), "")
    if code or bad or len(found) != 12 or why not in deadly:
        return f"exit {code}, {bad}, {len(found)} videos, the deadly one {deadly}", told
    return "own videos", told


def too_large(bulk, videos, out, rng):
    return poisoned(bulk, videos, out, rng, "memory", gigabytes=4, least=2 << 30)


def monitored(bulk, videos, out, rng):
    """Ray's own monitor kills the worker whose clip takes 5 GB once 3 more than now are used."""
    import psutil

    memory = psutil.virtual_memory()
    limit = {"RAY_memory_usage_threshold": f"{(memory.total - memory.available + (3 << 30)) / memory.total:.3f}"}
    with Nodes(2, environment=limit | {"RAY_memory_monitor_refresh_ms": "50"}) as nodes:
        return poisoned(Bulk(bulk.folder, nodes=nodes, shard=bulk.shard), videos, out, rng, gigabytes=5)


def two_drivers(bulk, videos, out, rng):
    process = bulk.start(videos, out, slow=0.05)
    wait_for(lambda: (out / ".lock").exists() and (out / "run.json").exists())
    os.kill(process.pid, signal.SIGSTOP)  # so that it is not done before the other one begins
    code, _, told = bulk.run(videos, out, slow=0.05)
    os.kill(process.pid, signal.SIGCONT)
    wrong, first = ended(process)
    if code != 2 or "another bulk run is writing" not in told:
        return f"the second driver ended with {code}", told
    return wrong, first


FAULTS = {
    "none but damaged videos": nothing,
    "a worker killed": worker_killed,
    "a node killed": node_killed,
    "the driver killed, run again": driver_killed,
    "Ctrl-C, run again": interrupted,
    "a full disk, run again with room": full_disk,
    "files that may not grow, run again": limited_files,
    "a video that kills every worker": poisoned,
    "a video too large for a worker's memory": too_large,
    "a video whose workers Ray's memory monitor kills": monitored,
    "two drivers at a time": two_drivers,
}


def check(name, bulk, videos, expected, folder, rng):
    """Make one fault; returns what went wrong, "" for nothing."""
    out = folder / f"out-{rng.randrange(10**9)}"
    wrong, told = FAULTS[name](bulk, videos, out, rng)
    if wrong == "own videos":  # copies of the first ones, and the deadly one
        found = named(answers(out), [DEADLY])
        return differences(found, {name: rows for name, rows in named(expected, [DEADLY]).items() if name in found})
    if wrong:
        return f"{wrong}: {told[-600:]}"
    return differences(answers(out), expected)


def undisturbed(bulk, videos, out):
    code, said, told = bulk.run(videos, out, workers=0)
    assert code == 0, told
    return answers(out), json.loads(said)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="faults whose name has this in it")
    parser.add_argument("--shard", type=int, default=1, help="videos of a shard: with 1, each worker has some in hand")
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    options = parser.parse_args()
    rng, rows = random.Random(options.seed), []
    with tempfile.TemporaryDirectory() as folder, Nodes(3) as nodes:
        bulk = Bulk(folder, nodes=nodes, shard=options.shard)
        videos = make_videos(Path(folder) / "videos", options.videos)
        expected, _ = undisturbed(bulk, videos, Path(folder) / "plain")
        print(
            f"| fault | times, {options.videos} videos | each video exactly once, same answers |\n| --- | --- | --- |"
        )
        for name in (name for name in FAULTS if options.only in name):
            wrong = [check(name, bulk, videos, expected, Path(folder), rng) for _ in range(options.rounds)]
            rows.append({"fault": name, "times": options.rounds, "right": wrong.count("")})
            print(f"| {name} | {options.rounds} | {wrong.count('')} |", flush=True)
            for text in filter(None, wrong):
                print(text, file=sys.stderr, flush=True)
    if options.out:
        import ray
        import torch

        from whytube.versions import provenance

        told = {"videos": options.videos, "shard": options.shard, "nodes": 3, "rows": rows, "ray": ray.__version__}
        told["provenance"] = provenance(torch.device("cpu"), seed=options.seed)
        options.out.write_text(json.dumps(told, indent=1) + "\n")
    sys.exit(1 if any(row["right"] < row["times"] for row in rows) else 0)


if __name__ == "__main__":
    main()
