"""Readers: processes that read videos, so that the threads of this one keep Python's interpreter lock.

Reading a clip takes that lock hundreds of times, for each packet and each frame: with many reading threads, the thread
that launches the work of a GPU waits for it.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from whytube.video.read import Sampled, read_pixels

if TYPE_CHECKING:
    import torch

SCRIPT = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from whytube.video.apart import serve; serve()"
NICE = 5
"""How far they step back behind this process, which uses what they read."""
PATIENCE = 5.0
"""Seconds after which a process that is told to end is made to."""


class Readers:
    """As many processes as there are calls of `read` at a time; they are started when they are needed, and kept.

    They import no torch, and end with this process, however it ends.
    """

    def __init__(self) -> None:
        self._idle: list[_Reader] = []
        self._lock = Lock()
        self._usable = os.name == "posix" and bool(sys.executable) and not getattr(sys, "frozen", False)

    def read(self, path: str | os.PathLike[str], out: torch.Tensor, *, threads: int) -> Sampled | None:
        """Do what `read_bytes` does; None where that did not work, whatever the reason: call `read_bytes` to know."""
        with self._lock:
            if not self._usable:
                return None
            reader = self._idle.pop() if self._idle else None
        try:
            reader = reader or _Reader()
            sampled = reader.read(str(Path(path).absolute()), out, threads)
        except Exception:  # it could not be started, or was ended; a second try might fail as well
            if reader is not None:
                reader.close()
            self.close()
            return None
        with self._lock:
            if self._usable:
                self._idle.append(reader)
                return sampled
        reader.close()
        return sampled

    def close(self) -> None:
        """End the processes; from now on `read` gives None."""
        with self._lock:
            self._usable, idle = False, self._idle
            self._idle = []
        for reader in idle:
            reader.close()


class _Reader:
    """One process. Requests and answers are pickled, pixels follow as they are."""

    def __init__(self) -> None:
        path = json.dumps([place for place in sys.path if isinstance(place, str)])  # Python passes over others, too
        self._socket, theirs = socket.socketpair()
        self._messages = Connection(os.dup(self._socket.fileno()))
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", SCRIPT, path],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
                    process_group=0,  # Ctrl-C is for us alone
                )
        except BaseException:
            self._messages.close()
            self._socket.close()
            raise

    def read(self, path: str, out: torch.Tensor, threads: int) -> Sampled | None:
        self._messages.send((path, tuple(out.shape), threads))
        sampled: Sampled | None = self._messages.recv()
        rest = out.numpy().data.cast("B") if sampled is not None else memoryview(b"")
        while rest:  # one call for the whole clip, during which others have the lock
            count = self._socket.recv_into(rest, 0, socket.MSG_WAITALL)
            if not count:
                raise EOFError
            rest = rest[count:]
        return sampled

    def close(self) -> None:
        self._messages.close()
        self._socket.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def serve() -> None:
    """Answer the requests of a _Reader, at the other end of standard input, until it is closed."""
    os.nice(NICE)
    with socket.socket(fileno=0) as pixels, Connection(os.dup(0)) as messages, suppress(OSError, EOFError):
        while True:
            path, shape, threads = messages.recv()
            out = np.empty(shape, dtype=np.uint8)
            try:
                sampled = read_pixels(path, out, threads=threads)
            except Exception:  # the other side then reads the video itself, and has the same error
                messages.send(None)
            else:
                messages.send(sampled)
                pixels.sendall(out.data.cast("B"))
