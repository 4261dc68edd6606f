"""`whytube bench decode`: reading a video file against PyAV's bare threaded loop on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from whytube.versions import provenance
from whytube.video import measure_decode, probe

if TYPE_CHECKING:
    import os

READERS = {
    "raw": "PyAV, frames dropped",
    "raw_rgb": "PyAV, frames to RGB",
    "decode": "whytube, frames dropped",
    "clip": "`read_clip`, 16 of 112 x 112",
    "windows": "`iter_windows`, 112 x 112",
}
"""What `measure_decode` measures, in words."""


def run(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Measure all ways to read the video, in turns in one run."""
    info, rates = probe(path), measure_decode(path)
    return {
        "benchmark": "decode",
        "video": {"frames": int(rates["frames"]), "size": list(info.size)},
        "frames_per_second": {name: rates[name] for name in READERS},
        "ratio": {name: rates[name] / rates["raw"] for name in READERS},
        "provenance": provenance(torch.device("cpu")),
    }


def table(report: dict[str, Any]) -> str:
    """Write the report as text."""
    video, source = report["video"], report["provenance"]
    rows = ["| | frames per second | over PyAV's bare loop |", "| --- | ---: | ---: |"]
    for name, words in READERS.items():
        rows.append(f"| {words} | {report['frames_per_second'][name]:.0f} | {report['ratio'][name]:.2f} |")
    height, width = video["size"]
    text = f"{video['frames']} frames of {height} x {width}; {source['device']}, commit {source['commit']}."
    return "\n".join([*rows, "", text])
