"""Runs one function in a short-lived child process with limits: whatever a video does to its codec happens there.

Children are forks of one process that has imported torch and the codec, and nothing else (multiprocessing's fork
server), so that one starts in milliseconds. The server itself never imports them.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import resource
import signal
import traceback
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whytube.errors import VideoError, WhytubeError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerProcess

    from whytube.web.settings import Limits

PRELOADED = [
    "whytube.web.decoding",
    "whytube.web.drawing",
    "whytube.web.worker",
    "whytube.web.asking",
    "whytube.web.drafting",
    "whytube.web.teaching",
    "whytube.web.exchange",
]
NICE = 5
"""How far children and workers step back behind the server, which answers requests."""

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(PRELOADED)
log = logging.getLogger("whytube.web")
_running: set[ForkServerProcess] = set()


def run_limited(place: str, *values: Any, limits: Limits, largest: int) -> Any:
    """Call MODULE:FUNCTION in a child; return what it returns.

    A VideoError says what was refused, or which limit ended it. largest: bytes of a file that it may write.
    """
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(
        target=_child, args=(theirs, place, values, limits.memory, limits.decoding, largest), daemon=True
    )
    process.start()
    _running.add(process)
    theirs.close()
    try:
        if not ours.poll(limits.decoding):
            raise VideoError(f"this video took more than {limits.decoding:g} seconds to read. Give a shorter one")
        how, found = ours.recv()
    except (EOFError, OSError):
        process.join(1)
        log.warning("a child process ended with %s in %s", process.exitcode, place)
        raise VideoError(
            "reading this video took too much memory or time, or broke its decoder. Convert it to H.264 mp4"
        ) from None
    finally:
        ours.close()
        _running.discard(process)
        process.kill()
        process.join()
        process.close()
    if how == "done":
        return found
    if how == "broken":
        log.error("%s failed:\n%s", place, found)
        raise VideoError("this video could not be read. Convert it to H.264 mp4")
    raise VideoError(found)


def stop_children() -> None:
    """Kill all children: the server ends."""
    for process in list(_running):
        with contextlib.suppress(ValueError):  # it has just ended by itself
            process.kill()


def _child(pipe: Connection, place: str, values: tuple[Any, ...], memory: int, seconds: float, largest: int) -> None:
    """Limit this process, call the function, send what became of it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends it
    module, _, name = place.partition(":")
    function = getattr(import_module(module), name)
    try:
        _limit(memory, seconds, largest)
        message = ("done", function(*values))
    except MemoryError:
        message = ("refused", f"this video needs more than {memory >> 20} MiB of memory. Make it smaller")
    except WhytubeError as error:
        message = ("refused", str(error.bare if isinstance(error, VideoError) else error))
    except Exception:
        message = ("broken", traceback.format_exc())
    with contextlib.suppress(OSError):
        pipe.send(message)
    os._exit(0)  # at once: nothing of this process is needed any more, and a codec's threads may hang


def _limit(memory: int, seconds: float, largest: int) -> None:
    with contextlib.suppress(OSError):
        os.nice(NICE)
    pages = Path("/proc/self/statm")
    if pages.exists():  # on Linux; elsewhere the address space cannot be limited
        used = int(pages.read_text().split()[0]) * resource.getpagesize()
        _lower(resource.RLIMIT_AS, used + memory)
    _lower(resource.RLIMIT_CPU, int(2 * seconds) + 1)
    _lower(resource.RLIMIT_FSIZE, largest)
    _lower(resource.RLIMIT_CORE, 0)


def _lower(what: int, value: int) -> None:
    """Set a limit, no higher than the one that is there."""
    hard = resource.getrlimit(what)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(what, (value, value))
