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
    """Uploads and asks until the server is gone; remembers what was acknowledged."""

    def __init__(self, server, folder, number):
        super().__init__()
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
        for effort in (1, 2):
            job = client.post("/api/jobs", json={"kind": "explain", "video": video["id"], "effort": effort, "k": 1})
            self.jobs.append(job.json()["id"])
        now = client.get(f"/api/jobs/{self.jobs[-2]}").json()
        if now["status"] == "done":
            self.results[now["result"]] = client.get(f"/api/results/{now['result']}").json()


def lost(server, client):
    """List what was acknowledged and is not there."""
    found = []
    for ident, video in client.videos.items():
        if server.get(f"/api/videos/{ident}").json() != video:
            found.append(f"video {ident}")
        if server.get(f"/api/videos/{ident}/play").content[4:8] != b"ftyp":
            found.append(f"what is played of {ident}")
    for ident in client.jobs:
        ended = server.follow(ident)[-1][1] if server.get(f"/api/jobs/{ident}").status_code == 200 else {}
        if ended.get("status") != "done":
            found.append(f"job {ident}: {ended}")
    for ident, result in client.results.items():
        if server.get(f"/api/results/{ident}").json() != result:
            found.append(f"result {ident}")
    return found


def kill_once(store, folder, rng, seconds):
    """Let two clients work, kill the server at a random moment, and look at what the next one has."""
    server = Server(store, "--queue", 100_000)
    clients = [Client(server, folder, rng.randrange(1 << 30)) for _ in range(2)]
    for client in clients:
        client.start()
    time.sleep(rng.uniform(0.0, seconds))
    server.kill()
    for client in clients:
        client.join()
    again = Server(store, "--queue", 100_000)
    try:
        missing = [text for client in clients for text in lost(again, client)]
        missing += [f"left half received: {path}" for path in (store / "incoming").iterdir()]
        missing += [f"left half written: {path}" for path in store.rglob(".*.part")]
    finally:
        again.stop()
    told = {name: sum(len(getattr(client, name)) for client in clients) for name in ("videos", "jobs", "results")}
    return told, missing


def run(count, seed, seconds=6.0):
    """Kill a server `count` times; returns what was acknowledged in all, and what was lost."""
    rng, folder = random.Random(seed), Path(tempfile.mkdtemp(prefix="kills"))
    told, missing = {"videos": 0, "jobs": 0, "results": 0}, []
    try:
        for _ in range(count):
            some, gone = kill_once(folder / "store", folder, rng, seconds)
            told = {name: told[name] + some[name] for name in told}
            missing += gone
    finally:
        shutil.rmtree(folder, ignore_errors=True)
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
