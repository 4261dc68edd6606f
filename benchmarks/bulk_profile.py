"""Where a bulk worker's time goes: decode, classifier, layer, verification, and the rest.

    python benchmarks/bulk_profile.py [--videos 32] [--model demo] [--effort 6] [--batch 4 1] [--device auto]
                                      [--out results/bulk-profile-cpu.json]

One worker explains clips of the embedded world, and every call of these parts is timed; on a GPU the device is waited
for at both ends of a call. A worker reads the next videos while it explains: the time of decoding is that of its thread
and comes on top of the other shares. Verification are masked clips through the network, in the search and for the
evidence; predictions and fits of words choose which tubes are worth that. Also compares sizes of the batch.
"""

from __future__ import annotations

import importlib
import tempfile
import time
from collections import defaultdict
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from measure import options as parser_of
from measure import publish

from whytube.bulk.listing import list_videos
from whytube.bulk.output import Asked, Output
from whytube.bulk.work import Work
from whytube.data.export import export_world
from whytube.versions import provenance

if TYPE_CHECKING:
    from collections.abc import Callable

PARTS = {
    "decode": ["bulk.work.read_clip", "bulk.work.video_hash"],
    "classifier": ["asking.ask"],
    "layer": [
        "search.grad_cam.top_subpaths",
        "explainer.explainer.max_subpath",
        "explainer.explainer.max_subpath_difference",
    ],
    "verification": ["asking.masked_logits", "search.anytime.masked_logits", "search.verify.masked_logits"],
    "predictions": ["search.response.Predictor.__call__"],
    "fits of words": ["explainer.places.Places.fits_or_raw"],
    "writing": ["bulk.work._answer", "bulk.tables.Part._flush"],
}
REST = "the rest"


def main() -> None:
    """Measure and print."""
    parser = parser_of(__doc__)
    parser.add_argument("--videos", type=int, default=32)
    parser.add_argument("--model", default="demo")
    parser.add_argument("--effort", type=int, default=6)
    parser.add_argument("--batch", type=int, nargs="+", default=[4, 1])
    options = parser.parse_args()
    torch.set_num_threads(1)
    spent: dict[str, float] = defaultdict(float)
    for part, places in PARTS.items():
        for place in places:
            _time(place, part, spent, options.device)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        export_world(Path(folder) / "world", count=options.videos, size=64)
        for batch in options.batch:
            rows.append({"batch": batch, **_run(Path(folder), batch, options, spent)})
    report = {"videos": options.videos, "model": options.model, "effort": options.effort, "rows": rows}
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
    listed = list_videos(str(folder / "world" / "videos"))
    for name in ("warm", "timed"):
        output = Output(folder / f"{name}-{batch}")
        sizes = output.open(asked, listed if name == "timed" else listed[:batch], {})
        work = Work(output, asked, device=str(options.device), threads=1)
        spent.clear()
        began = time.perf_counter()
        for shard in range(len(sizes)):
            work(shard)
        whole = time.perf_counter() - began
    shares = {part: round(spent[part] / whole, 4) for part in PARTS}
    shares[REST] = round(1 - sum(share for part, share in shares.items() if part != "decode"), 4)
    return {"shares": shares, "rate": len(listed) / whole}


def _time(place: str, part: str, spent: dict[str, float], device: torch.device) -> None:
    """Have every call of a function of whytube add its time to a part."""
    path = place.split(".")
    depth = 2 if path[-2][0].isupper() else 1
    owner: Any = importlib.import_module(".".join(["whytube", *path[:-depth]]))
    for name in path[-depth:-1]:
        owner = getattr(owner, name)
    call: Callable[..., Any] = getattr(owner, path[-1])

    @wraps(call)
    def timed(*args: Any, **kwargs: Any) -> Any:
        _wait(device)
        began = time.perf_counter()
        try:
            return call(*args, **kwargs)
        finally:
            _wait(device)
            spent[part] += time.perf_counter() - began

    setattr(owner, path[-1], timed)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    main()
