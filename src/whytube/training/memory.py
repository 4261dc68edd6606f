"""How much memory there is, and how much this process holds."""

from __future__ import annotations

import os
from pathlib import Path

import torch

CGROUP = Path("/sys/fs/cgroup")


def used_bytes() -> int:
    """Bytes that this process holds; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def free_bytes(device: torch.device) -> int | None:
    """Bytes that are free on the device: of the machine, or of the container where that has less."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type != "cpu":
        return None
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        machine = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return _of_system()
    try:
        limit = int((CGROUP / "memory.max").read_text())
        return min(machine, limit - int((CGROUP / "memory.current").read_text()))
    except (OSError, ValueError):  # no limit is "max"
        return machine


def _of_system() -> int | None:
    """All bytes of memory, where /proc says nothing."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None
