"""Starts real servers for tests: `whytube serve` in a process of its own, asked by httpx."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx


class Server:
    """A running `whytube serve`, and a client that asks it."""

    def __init__(self, store, *words, env=None):
        self.store = store
        command = [sys.executable, "-m", "whytube", "serve", "--store", str(store), "--port", "0", *map(str, words)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})}
        )
        self.line = self.process.stdout.readline()
        if "http://" not in self.line:
            raise AssertionError(f"no server: {self.line}{self.process.stderr.read()}")
        self.address = next(word for word in self.line.split() if word.startswith("http://"))
        self.base, _, self.token = self.address.partition("/#token=")
        self.base = self.base.rstrip("/")
        self.client = httpx.Client(base_url=self.base, timeout=120)

    def get(self, path, **options):
        return self.client.get(path, **options)

    def upload(self, path, name=None):
        with Path(path).open("rb") as file:
            return self.client.post("/api/videos", files={"file": (name or path.name, file)})

    def example(self, name="gavotte"):
        return self.client.post(f"/api/examples/{name}").raise_for_status().json()

    def ask(self, **body):
        return self.client.post("/api/jobs", json=body)

    def follow(self, job):
        """Give all events of a job, as (name, data)."""
        found = []
        with self.client.stream("GET", f"/api/jobs/{job}/events") as lines:
            name = None
            for line in lines.iter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    found.append((name, json.loads(line.removeprefix("data: "))))
        return found

    def done(self, **body):
        """Ask, wait, and give the job as it ended."""
        job = self.ask(**body).raise_for_status().json()
        return self.follow(job["id"])[-1][1]

    def explained(self, video, **more):
        """Explain with little effort; give the id of the result."""
        job = self.done(kind="explain", video=video, effort=2, k=1, **more)
        assert job["status"] == "done", job
        return job["result"]

    def kill(self):
        """End it as a power cut would, with its children."""
        self.process.kill()
        self._gone()

    def stop(self):
        """End it as an operator does; gives the exit code and what it said."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        finally:
            self._gone()
        return self.process.returncode

    def _gone(self):
        self.client.close()
        self.process.kill()
        self.process.wait()
        self.errors = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()


def run_apart(coroutine):
    """Run a coroutine in a thread of its own: Playwright keeps an event loop in this one while its browser is open."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, coroutine).result()


@contextlib.contextmanager
def serving(store, *words, env=None):
    """Run a server for a block."""
    server = Server(store, *words, env=env)
    try:
        yield server
    finally:
        if not server.client.is_closed:
            server.stop()


def until(true, seconds=30.0):
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise AssertionError("it did not happen in time")
        time.sleep(0.02)
