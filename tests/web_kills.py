"""Kills a server in the middle of uploads and explanations: `python tests/web_kills.py --count 20 --seed 0`.

Whatever was acknowledged, a video, a job or a result, must be there after the next start, whole; and nothing half
written may stay. Ends with exit code 1 if something was lost.
"""

import argparse
import random
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
import numpy as np

from web_server import Server
from whytube.video import write_video


class Client(threading.Thread):
    """Uploads and asks until the server is gone; remembers what was acknowledged. A patient one reads its answers."""

    def __init__(self, server, folder, number, *, patient):
        super().__init__()
        self.patient = patient
        self.base, self.folder, self.number = server.base, folder, number
        self.videos, self.jobs, self.results = {}, [], {}

    def run(self):
        rng = np.random.default_rng(self.number)
        try:
            with httpx.Client(base_url=self.base, timeout=120) as client:
                for n in range(1000):
                    self._once(client, rng, n)
        except httpx.TransportError:
            return  # it was killed

    def _once(self, client, rng, n):
        frames = (rng.random((8, 32, 32, 3)) * 255).astype(np.uint8)
        path = write_video(self.folder / f"{self.number}-{n}.mp4", iter(frames), 8.0, preset="ultrafast")
        answer = client.post("/api/videos", files={"file": (path.name, path.read_bytes())})
        video = answer.json()
        self.videos[video["id"]] = video
        if not self.patient and n % 4:  # the worker is slower than uploads: leave it time for those who wait
            return
        for effort in (1, 2)[: 1 if self.patient else 2]:
            job = client.post("/api/jobs", json={"kind": "explain", "video": video["id"], "effort": effort, "k": 1})
            self.jobs.append(job.json()["id"])
        while self.patient:
            now = client.get(f"/api/jobs/{self.jobs[-1]}").json()
            if now["status"] == "done":
                self.results[now["result"]] = client.get(f"/api/results/{now['result']}").json()
                return
            time.sleep(0.02)


def lost(server, client, *, wait):
    """List what was acknowledged and is not there; wait: for the end of all jobs."""
    found = []
    for ident, video in client.videos.items():
        if server.get(f"/api/videos/{ident}").json() != video:
            found.append(f"video {ident}")
        if server.get(f"/api/videos/{ident}/play").content[4:8] != b"ftyp":
            found.append(f"what is played of {ident}")
    for ident in client.jobs:
        job = server.get(f"/api/jobs/{ident}")
        ended = server.follow(ident)[-1][1] if wait and job.status_code == 200 else job.json()
        if ended.get("status") not in (("done",) if wait else ("queued", "running", "done")):
            found.append(f"job {ident}: {ended}")
    for ident, result in client.results.items():
        if server.get(f"/api/results/{ident}").json() != result:
            found.append(f"result {ident}")
    return found


def start(store):
    """Start a server where another one was killed; give it, and what that left half written."""
    server = Server(store, "--queue", 100_000)
    half = [*(store / "incoming").iterdir(), *store.rglob(".*.part")]
    return server, [f"left half written: {path}" for path in half]


def run(count, seed, seconds=6.0):
    """Kill a server `count` times while two clients work; returns what was acknowledged in all, and what was lost.

    Every next server is asked for everything that was ever acknowledged; the last one ends all jobs.
    """
    rng, folder = random.Random(seed), Path(tempfile.mkdtemp(prefix="kills"))
    everybody, missing = [], []
    server, _ = start(folder / "store")
    try:
        for number in range(count):
            clients = [Client(server, folder, rng.randrange(1 << 30), patient=patient) for patient in (True, False)]
            for client in clients:
                client.start()
            time.sleep(rng.uniform(0.0, seconds))
            server.kill()
            for client in clients:
                client.join()
            everybody += clients
            server, half = start(folder / "store")
            last = number == count - 1
            missing += half + [text for client in everybody for text in lost(server, client, wait=last)]
    finally:
        if not server.client.is_closed:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    told = {name: sum(len(getattr(client, name)) for client in everybody) for name in ("videos", "jobs", "results")}
    return told, missing


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20, help="how many kills")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=6.0, help="latest moment of a kill")
    options = parser.parse_args()
    told, missing = run(options.count, options.seed, options.seconds)
    print(f"{options.count} kills; acknowledged: {told}; lost: {len(missing)}")
    print("\n".join(missing))
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
