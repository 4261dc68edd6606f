"""What the programs of this folder share: time and memory of a call on any device, options, and the report's file."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable


def milliseconds(call: Callable[[], object], device: torch.device, *, repeats: int = 20, warmup: int = 3) -> float:
    """Median time of `call`.

    On a GPU as the field measures: the cache is flushed before every call and the host queues ahead, so that the time
    is the device's unless the host cannot keep up.
    """
    for _ in range(warmup):
        call()
    if device.type == "cuda":
        return _milliseconds_cuda(call, device, repeats)
    times = []
    for _ in range(repeats):
        before = time.perf_counter()
        call()
        times.append((time.perf_counter() - before) * 1e3)
    return statistics.median(times)


def _milliseconds_cuda(call: Callable[[], object], device: torch.device, repeats: int) -> float:
    flush = torch.empty(256 << 20, dtype=torch.int8, device=device)
    begins, ends = ([torch.cuda.Event(enable_timing=True) for _ in range(repeats)] for _ in range(2))  # type: ignore[no-untyped-call]
    torch.cuda.synchronize(device)
    for begin, end in zip(begins, ends, strict=True):
        flush.zero_()
        begin.record()
        call()
        end.record()
    torch.cuda.synchronize(device)
    return float(statistics.median(begin.elapsed_time(end) for begin, end in zip(begins, ends, strict=True)))


def device_milliseconds(call: Callable[[], object], device: torch.device, *, repeats: int = 20) -> float | None:
    """Median time of `call` without the host, recorded once as a CUDA graph and replayed; None on other devices."""
    if device.type != "cuda":
        return None
    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return milliseconds(graph.replay, device, repeats=repeats)


def extra_bytes(call: Callable[[], object], device: torch.device) -> int | None:
    """Peak memory that one run of `call` takes beyond what was held before; None where the system does not tell."""
    call()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        call()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    try:
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak of the resident size (Linux)
        before = _resident("VmRSS")
        call()
        return max(0, _resident("VmHWM") - before)
    except (OSError, StopIteration):
        return None


def _resident(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field + ":")).split()[1]) * 1024


def ray_workers() -> list[int]:
    """Find the processes of Ray Data's actors on this machine."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if b"MapWorker" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def cpu_seconds(pid: int) -> float:
    """Processor time of a process so far; 0 where it is gone."""
    try:
        fields = (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def options(description: str | None) -> argparse.ArgumentParser:
    """Parser with the options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--device", type=_device, default="auto", help="cpu, cuda or cuda:N; by default a GPU if any")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: try the program, get no numbers")
    parser.add_argument("--out", type=Path, metavar="FILE.json", help="write the report there, too")
    return parser


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise argparse.ArgumentTypeError(f"unknown device {name!r}: use cpu, cuda or cuda:N") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise argparse.ArgumentTypeError(f"there is no CUDA device {name!r} here: {torch.cuda.device_count()} found")
    return device


def publish(report: dict[str, Any], text: str, out: Path | None) -> None:
    """Print the report's table, and write the report to `out` as JSON."""
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(report, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    print(text)
