"""`--profile`: where the time of a command went, from the start of the process on."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console


class Profile:
    """Seconds by stage, in the order they were spent."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def spent(self, stage: str, *, of_which: Mapping[str, float] | None = None) -> None:
        """Note the time since the last note as `stage`, split into stages that were measured within, if any were."""
        now = time.perf_counter()
        passed, self._last = now - self._last, now
        inside = dict(of_which or {})
        for name, seconds in (*inside.items(), (stage, passed - sum(inside.values()))):
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def started(self, stage: str) -> None:
        """Note the time since the process began, where the system tells when that was."""
        age = process_age()
        self._last = time.perf_counter()
        if age is not None:
            self.seconds[stage] = age

    def show(self, console: Console) -> None:
        """Print the stages, their share and their sum."""
        total = sum(self.seconds.values())
        table = Table("", box=None, padding=(0, 1), show_footer=True)
        table.columns[0].footer = "total"
        table.add_column("seconds", f"{total:.2f}", justify="right")
        table.add_column("share", "100 %", justify="right")
        for stage, seconds in self.seconds.items():
            table.add_row(stage, f"{seconds:.2f}", f"{100 * seconds / total:.0f} %")
        console.print(table)


def process_age() -> float | None:
    """Seconds since this process began, on Linux; None elsewhere."""
    try:
        # Field 22, counted after the name in brackets, which may hold blanks: ticks between boot and the start.
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):
        return None
