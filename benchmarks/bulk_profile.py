"""Where a bulk worker's time goes: decode, classifier, layer, verification, and so on.

    python benchmarks/bulk_profile.py [--videos 32] [--data FOLDER] [--model demo] [--effort 6] [--batch 4 1]
                                      [--device auto] [--out results/bulk-profile-cpu.json]

One worker explains clips of the embedded world, or videos of a folder, and every call of these parts is timed, without
that of other parts inside. On a GPU the device is waited for at both ends of a call, so that a part's time is its own;
that makes the whole slower than it is. A worker reads the next videos while it explains: the time of decoding is that
of its thread, which waits for no device, and comes on top of the other shares. Also compares sizes of the batch.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from measure import options as parser_of
from measure import publish
from parts import ASIDE, PARTS, watch

from whytube.bulk.listing import list_videos
from whytube.bulk.output import Asked, Output
from whytube.bulk.work import Work
from whytube.data.export import export_world
from whytube.versions import provenance

REST = "the rest"


def main() -> None:
    """Measure and print."""
    parser = parser_of(__doc__)
    parser.add_argument("--videos", type=int, default=32, help="how many, at most; of a folder the first ones")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="videos of your own; by default exported ones")
    parser.add_argument("--model", default="demo")
    parser.add_argument("--effort", type=int, default=6)
    parser.add_argument("--batch", type=int, nargs="+", default=[4, 1])
    options = parser.parse_args()
    torch.set_num_threads(1)
    spent: dict[str, float] = defaultdict(float)
    watch(spent, options.device)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        if options.data is None:
            export_world(Path(folder) / "world", count=options.videos, size=64)
        for batch in options.batch:
            rows.append({"batch": batch, **_run(Path(folder), batch, options, spent)})
    videos = [row.pop("videos") for row in rows]
    report = {"videos": videos[0], "data": options.data.name if options.data else "the world at 64 x 64"}
    report |= {"model": options.model, "effort": options.effort, "rows": rows}
    report["provenance"] = provenance(options.device, seed=options.seed)
    parts = [*PARTS, REST]
    lines = [f"| batch | {' | '.join(parts)} | videos per second over batch {options.batch[-1]} |"]
    lines.append("| --- " * (len(parts) + 2) + "|")
    for row in rows:
        shares = " | ".join(f"{100 * row['shares'][part]:.1f} %" for part in parts)
        row["ratio"] = round(row["rate"] / rows[-1]["rate"], 3)
        lines.append(f"| {row['batch']} | {shares} | {row['ratio']:.2f} |")
    publish(report, "\n".join(lines), options.out)


def _run(folder: Path, batch: int, options: Any, spent: dict[str, float]) -> dict[str, Any]:
    """Explain all videos once to warm up, and once more."""
    asked = Asked(model=options.model, model_hash="", effort=options.effort, batch=batch)
    listed = list_videos(str(options.data or folder / "world" / "videos"))[: options.videos]
    for name in ("warm", "timed"):
        output = Output(folder / f"{name}-{batch}")
        sizes = output.open(asked, listed if name == "timed" else listed[:batch], {})
        work = Work(output, asked, device=str(options.device), threads=1)
        spent.clear()
        began = time.perf_counter()
        for shard in range(len(sizes)):
            work(shard, shard + 1 if shard + 1 < len(sizes) else None)
        whole = time.perf_counter() - began
    shares = {part: round(spent[part] / whole, 4) for part in PARTS}
    shares[REST] = round(1 - sum(share for part, share in shares.items() if part not in ASIDE), 4)
    return {"videos": len(listed), "shares": shares, "rate": len(listed) / whole}


if __name__ == "__main__":
    main()
