"""Breaks bulk runs in every way that real ones break, and counts.

    python tests/bulk_faults.py [--videos 40] [--rounds 3] [--seed 0]

Each fault is made for real, with processes: a worker killed, the driver killed and the command run again, Ctrl-C, a
full disk, videos that are no videos, a video that kills every worker (as a lack of memory does), two drivers at a
time. After each, every video must be in the answers exactly once or in the failures exactly once, with the same answers
as an undisturbed run. Prints a row per fault.
"""

import argparse
import json
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

SOURCE = Path(__file__).parent.parent / "src"
MODEL = '''
"""A tiny network; a clip that is nearly white kills its process, as the system does when memory ends."""
import os, signal, time, torch, whytube

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.body = torch.nn.Conv3d(3, 4, 3, padding=1)
        self.head = torch.nn.Linear(4, 3)
    def forward(self, clips):
        if float(clips.detach().float().mean((1, 2, 3, 4)).max()) > 1.0:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(float(os.environ.get("SLOW", "0")))
        return self.head(self.body(clips).relu().mean((2, 3, 4)) * 20)

def build():
    return whytube.wrap(Net().eval(), classes=("red", "green", "blue"), frames=4, size=(16, 16),
                        mean=(0.5,) * 3, std=(0.4,) * 3)
'''


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
        if poison and number == 3:
            frames[:] = 255
        write_video(path, frames, 8.0)
    return folder


class Bulk:
    """The command, with its environment."""

    def __init__(self, folder, *, workers=2):
        self.folder, self.workers = Path(folder), workers
        self.model = self.folder / "tiny.py"
        self.model.write_text(MODEL)

    def start(self, videos, out, *, slow=0.0, workers=None, limit=None):
        words = [sys.executable, "-m", "whytube", "bulk", str(videos), "--model", f"{self.model}:build"]
        words += ["--out", str(out), "--workers", str(self.workers if workers is None else workers), "--json"]
        words += ["--effort", "2", "-k", "1"]
        environment = os.environ | {"SLOW": str(slow), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(SOURCE)}

        def limited():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # then a write beyond it fails, as on a full disk
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        return subprocess.Popen(
            words,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=limited if limit else None,
        )

    def run(self, videos, out, **how):
        process = self.start(videos, out, **how)
        said, told = process.communicate(timeout=540)
        return process.returncode, said, told


def answers(out):
    """Answers and failures by video, and how often each came."""
    from pyarrow import dataset

    found = {}
    for table, columns in (("reasons", ["video", "positive", "negative", "p_positive"]), ("failures", ["video"])):
        for row in dataset.dataset(sorted((out / table).glob("*.parquet"))).to_table(columns=columns).to_pylist():
            value = (row["positive"], row["negative"], round(row["p_positive"], 4)) if table == "reasons" else "failed"
            found.setdefault(row["video"], []).append(value)
    return found


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


def actors(driver):
    """Find the processes of the pool's workers below a driver."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if b"MapWorker" in words:
            found.append(int(entry.name))
    return [pid for pid in found if _descends(pid, driver)]


def _descends(pid, driver):
    while pid > 1:
        if pid == driver:
            return True
        try:
            pid = int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False


def worker_killed(bulk, videos, out, rng):
    process = bulk.start(videos, out, slow=0.05)
    if not wait_for(lambda: actors(process.pid) and shards(out) >= 1 if (out / "reasons").exists() else False):
        return "the run did not begin", process.communicate()[1]
    time.sleep(rng.random())
    for pid in actors(process.pid)[:1]:
        os.kill(pid, signal.SIGKILL)
    told = process.communicate(timeout=540)[1]
    return ("" if process.returncode == 0 else f"exit {process.returncode}"), told


def driver_killed(bulk, videos, out, rng):
    process = bulk.start(videos, out, slow=0.05)
    wait_for(lambda: (out / "reasons").exists() and shards(out) >= 1)
    time.sleep(rng.random())
    kill_group(process)
    code, _, told = bulk.run(videos, out)
    return ("" if code == 0 else f"exit {code} the second time"), told


def interrupted(bulk, videos, out, rng):
    process = bulk.start(videos, out, slow=0.05)
    wait_for(lambda: (out / "reasons").exists() and shards(out) >= 1)
    time.sleep(rng.random())
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    if process.returncode not in (0, 130):
        return f"Ctrl-C gave exit {process.returncode}", ""
    code, _, told = bulk.run(videos, out)
    return ("" if code == 0 else f"exit {code} the second time"), told


def full_disk(bulk, videos, out, rng):
    code, _, told = bulk.run(videos, out, workers=0, limit=4096)
    if code != 2 or "cannot write" not in told:
        return f"exit {code} on a full disk", told
    code, _, told = bulk.run(videos, out)
    return ("" if code == 0 else f"exit {code} once there was room"), told


def poisoned(bulk, videos, out, rng):
    white = make_videos(out.parent / "white", 12, poison=True)
    code, _, told = bulk.run(white, out)
    found = answers(out)
    bad = [video for video, rows in found.items() if len(rows) != 1]
    deadly = found.get(str(white / "clip_003.mp4"))
    if code or bad or len(found) != 12 or deadly != ["failed"]:
        return f"exit {code}, {bad}, {len(found)} videos, the deadly one {deadly}", told
    return "own videos", told


def two_drivers(bulk, videos, out, rng):
    process = bulk.start(videos, out, slow=0.05)
    wait_for(lambda: (out / ".lock").exists() and (out / "run.json").exists())
    os.kill(process.pid, signal.SIGSTOP)  # so that it is not done before the other one begins
    code, _, told = bulk.run(videos, out)
    os.kill(process.pid, signal.SIGCONT)
    first = process.communicate(timeout=540)[1]
    if code != 2 or "another bulk run is writing" not in told:
        return f"the second driver ended with {code}", told
    return ("" if process.returncode == 0 else f"exit {process.returncode} of the first"), first


FAULTS = {
    "a worker killed": worker_killed,
    "the driver killed, run again": driver_killed,
    "Ctrl-C, run again": interrupted,
    "a full disk, run again with room": full_disk,
    "a video that kills every worker": poisoned,
    "two drivers at a time": two_drivers,
}


def check(name, bulk, videos, expected, folder, rng):
    """Make one fault; returns what went wrong, "" for nothing."""
    out = folder / f"out-{rng.randrange(10**9)}"
    wrong, told = FAULTS[name](bulk, videos, out, rng)
    if wrong == "own videos":
        return ""
    if wrong:
        return f"{wrong}: {told[-600:]}"
    found = answers(out)
    if found != expected:
        return (
            f"answers differ: {[(v, found.get(v), rows) for v, rows in expected.items() if found.get(v) != rows][:3]}"
        )
    return ""


def undisturbed(bulk, videos, out):
    code, said, told = bulk.run(videos, out, workers=0)
    assert code == 0, told
    return answers(out), json.loads(said)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--videos", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, broken = random.Random(options.seed), 0
    with tempfile.TemporaryDirectory() as folder:
        bulk = Bulk(folder)
        videos = make_videos(Path(folder) / "videos", options.videos)
        expected, _ = undisturbed(bulk, videos, Path(folder) / "plain")
        print(
            f"| fault | {options.videos} videos, times | each video exactly once, same answers |\n| --- | --- | --- |"
        )
        for name in FAULTS:
            wrong = [check(name, bulk, videos, expected, Path(folder), rng) for _ in range(options.rounds)]
            broken += sum(map(bool, wrong))
            print(f"| {name} | {options.rounds} | {options.rounds - sum(map(bool, wrong))} |", flush=True)
            for text in filter(None, wrong):
                print(text, file=sys.stderr)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
