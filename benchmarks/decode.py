"""Measures how fast whytube reads a video file: `python benchmarks/decode.py VIDEO [--out FILE.json]`."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from whytube.checks import check_int
from whytube.errors import VideoError, WhytubeError
from whytube.versions import provenance
from whytube.video import iter_windows, probe, read_clip, sample_indices
from whytube.video.decode import ContainerSource

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

READERS = {
    "raw": "PyAV, frames dropped",
    "raw_rgb": "PyAV, frames to RGB",
    "decode": "whytube, frames dropped",
    "clip": "`read_clip`, 16 of 112 x 112",
    "windows": "`iter_windows`, 112 x 112",
}
"""What is measured, as the table calls it."""


def measure(path: str | os.PathLike[str], *, repeats: int = 5) -> dict[str, float]:
    """Frames decoded per second by each of READERS, best of `repeats`; all of them take turns."""
    place = Path(path)
    if place.is_dir() or place.suffix.lower() == ".seq":
        raise VideoError(f"{path} is no video file that PyAV's own loop can read. Give an .mp4, .avi, .mkv or the like")
    total = ContainerSource(place).count
    reached = int(sample_indices(total, frames=16)[-1]) + 1
    work: dict[str, tuple[int, Callable[[], object]]] = {
        "raw": (total, lambda: _decode_bare(path, rgb=False)),
        "raw_rgb": (total, lambda: _decode_bare(path, rgb=True)),
        "decode": (total, lambda: _decode_all(place)),
        "clip": (reached, lambda: read_clip(path, size=(112, 112))),
        "windows": (total, lambda: sum(1 for _ in iter_windows(path, size=(112, 112)))),
    }
    rates: dict[str, float] = dict.fromkeys(work, 0.0)
    for _ in range(check_int(repeats, "repeats", 1)):
        for name, (count, run_once) in work.items():
            start = time.perf_counter()
            run_once()
            rates[name] = max(rates[name], count / (time.perf_counter() - start))
    return rates


def _decode_bare(path: str | os.PathLike[str], *, rgb: bool) -> None:
    """Decode with PyAV alone; `rgb` also converts every frame to an RGB array."""
    import av

    with av.open(str(path), metadata_errors="replace") as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        for picture in container.decode(stream):
            if rgb:
                picture.to_ndarray(format="rgb24")


def _decode_all(path: Path) -> int:
    """Count and decode with whytube's decoder."""
    source = ContainerSource(path)
    return sum(1 for _ in source.read(range(source.count)))


def run(path: str | os.PathLike[str], *, repeats: int = 5) -> dict[str, Any]:
    """Measure all ways to read the video, and say on what."""
    info, rates = probe(path), measure(path, repeats=repeats)
    return {
        "benchmark": "decode",
        "video": {"frames": info.frames, "size": list(info.size)},
        "frames_per_second": rates,
        "ratio": {name: rate / rates["raw"] for name, rate in rates.items()},
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("video", type=Path, help="a video file")
    parser.add_argument("--out", type=Path, help="also write the numbers to this JSON file")
    options = parser.parse_args(arguments)
    try:
        report = run(options.video)
    except WhytubeError as error:
        parser.error(str(error))
    print(table(report))
    if options.out is not None:
        options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
