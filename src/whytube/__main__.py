"""The program `whytube`, also as `python -m whytube`: what to do when it is stopped. The commands are in whytube.cli.

Ctrl-C, SIGTERM and SIGHUP become a KeyboardInterrupt, so that every `finally` runs. The program then says one line and
ends with 128 + the signal's number: 130, 143, 129. Nothing heavy is imported before this is arranged.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from types import FrameType

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
PATIENCE = 5.0
"""Seconds for cleaning up after a signal, in which further ones are not heard. Then it is given again."""


class Stop(KeyboardInterrupt):
    """A signal that ends the program. Whoever catches it on its way may add notes on what was kept.

    quiet: another process of the same training says the line.
    """

    quiet = False


class _Stopping:
    """What becomes of signals while a command runs."""

    def __init__(self) -> None:
        self.number, self.stop = 0, Stop()
        self.first, self.at = 0.0, -PATIENCE
        self.ending = False
        self.unraised = sys.getrefcount(self.stop)

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Stop the program, unless it is stopping already. An import is let finish: in its C++ a Stop may abort."""
        now = time.monotonic()
        if self.ending or now - self.at < PATIENCE:
            return
        if not self.number:
            self.number, self.first = number, now
        if _imports(frame) and now - self.first < PATIENCE:
            later = threading.Timer(0.02, os.kill, [os.getpid(), number])
            later.daemon = True
            later.start()
            return
        self.at = now
        threading.Thread(target=self._watch, daemon=True).start()
        raise self.stop

    def unraisable(self, problem: sys.UnraisableHookArgs) -> None:
        """Say what Python cannot pass on, e.g. out of a callback, unless a signal caused it."""
        if not self.number:
            sys.__unraisablehook__(problem)

    def _watch(self) -> None:
        """Give the signal again once the exception was lost: nothing holds it any more, and the program goes on.

        A library may have caught it, or Python could not pass it on.
        """
        last = self.at + PATIENCE
        while time.monotonic() < last:
            time.sleep(0.05)
            if sys.getrefcount(self.stop) <= self.unraised:
                break
        self.at = -PATIENCE
        os.kill(os.getpid(), self.number)


def _imports(frame: FrameType | None) -> bool:
    """Whether what was interrupted is part of an import."""
    while frame is not None and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back
    return frame is not None


SPINS = "10000"
"""How often a thread of GNU OpenMP, torch's, looks for work before it sleeps. By default it looks for milliseconds, so
that on a machine with other work two threads took up to six times the time of one; on an idle one it makes no
difference."""


def main() -> None:
    """Run the command line."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)  # before torch is imported
    stopping = _Stopping()
    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]  # as nohup arranges
    for number in heard:
        signal.signal(number, stopping.hear)
    sys.unraisablehook = stopping.unraisable
    try:
        from whytube.cli import main as run

        run()
    except BaseException:
        stopping.ending = bool(stopping.number)
        if not stopping.number:  # else: whatever this is, the signal caused it, perhaps in the middle of an import
            raise
    finally:
        for number in heard:  # all that is left is quick, and must not be disturbed
            signal.signal(number, signal.SIG_IGN if stopping.number else signal.SIG_DFL)
        if stopping.number:
            _end(stopping)


def _end(stopping: _Stopping) -> NoReturn:
    """Leave nothing half written, say one line, and end as the shell expects of a program that a signal stopped."""
    from whytube.files import remove_unfinished

    remove_unfinished()
    with contextlib.suppress(OSError, AttributeError):  # nobody may be listening
        if not stopping.stop.quiet:
            print("; ".join(["interrupted", *getattr(stopping.stop, "__notes__", [])]), file=sys.stderr, flush=True)
    sys.exit(128 + stopping.number)


if __name__ == "__main__":
    main()
