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
"""Seconds for cleaning up after a signal, in which further ones are not heard. Then it is given again: a library may
have caught it and gone on."""


class Stop(KeyboardInterrupt):
    """A signal that ends the program. Whoever catches it on its way may add notes on what was kept.

    quiet: another process of the same training says the line.
    """

    quiet = False


class _Stopping:
    """What becomes of signals while a command runs."""

    def __init__(self) -> None:
        self.number, self.stop, self.at = 0, Stop(), -PATIENCE

    def hear(self, number: int, _: FrameType | None) -> None:
        """Stop the program, unless it is stopping already."""
        if time.monotonic() - self.at >= PATIENCE:
            self.number, self.at = number, time.monotonic()
            self._again(PATIENCE)
            raise self.stop

    def swallowed(self, problem: sys.UnraisableHookArgs) -> None:
        """Stop again: the first time the program was where Python cannot pass on an exception, e.g. in a callback."""
        if isinstance(problem.exc_value, Stop):
            self.at = -PATIENCE
            self._again(0.01)
        elif not self.number:
            sys.__unraisablehook__(problem)

    def _again(self, seconds: float) -> None:
        """Give the signal again after a while; once the program is ending, it is ignored."""
        later = threading.Timer(seconds, os.kill, [os.getpid(), self.number])
        later.daemon = True
        later.start()


def main() -> None:
    """Run the command line."""
    stopping = _Stopping()
    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]  # as nohup arranges
    for number in heard:
        signal.signal(number, stopping.hear)
    sys.unraisablehook = stopping.swallowed
    try:
        from whytube.cli import main as run

        run()
    except BaseException:
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
