"""What tests let a limited child process do."""

import os
import signal
import time
from pathlib import Path

from whytube.errors import ArgumentError, VideoError


def add(a, b):
    return a + b


def pid():
    return os.getpid()


def refuse(kind):
    raise {"video": VideoError("this is damaged", advice="pass `salvage=True`"), "other": ArgumentError("no")}[kind]


def fail():
    raise RuntimeError("a bug, at /some/path")


def eat(megabytes):
    return len(bytearray(megabytes << 20))


def sleep():
    time.sleep(600)


def spin():
    while True:
        pass


def crash():
    os.kill(os.getpid(), signal.SIGSEGV)


def write(path, megabytes):
    with Path(path).open("wb") as file:
        for _ in range(megabytes):
            file.write(bytes(1 << 20))
