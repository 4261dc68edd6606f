"""How long an answer takes, and what share of it the network runs.

    python benchmarks/answer.py [--video FILE] [--model jhmdb-i3d] [--efforts normal thorough] [--repeats 3]
                                [--device auto] [--quick] [--out results/answer-cpu.json]

Seconds are of `whytube.explain` once the model is loaded, decoding included, as a median; the first answer is not
counted. `command` are those of the whole command, from its start to its end. Shares are of one further answer, in which
every part is timed (parts.py). By default the video is one of the embedded world at 320 x 240.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a program finds only its own folder

from benchmarks.measure import options, publish
from benchmarks.parts import ASIDE, NETWORK, PARTS, watch
from whytube import explain
from whytube.data.world import World
from whytube.models import load_model
from whytube.search.anytime import find_effort
from whytube.versions import provenance
from whytube.video import write_video

if TYPE_CHECKING:
    import torch

FRAMES = 32


def run(
    device: torch.device,
    *,
    video: Path | None = None,
    model: str = "jhmdb-i3d",
    efforts: tuple[str, ...] = ("normal", "thorough"),
    repeats: int = 3,
    seed: int = 0,
) -> dict[str, Any]:
    """Measure every effort on one video."""
    explainer = load_model(model, device=device)
    rows, shown = [], "the embedded world" if video is None else video.stem
    with tempfile.TemporaryDirectory() as folder:
        if video is None:
            clip = World(size=320, frames=FRAMES, seed=seed).batch("test", [0]).clips[0][:, :, 40:280]
            video = write_video(Path(folder) / "world.mp4", clip, 8.0)

        def answer(effort: str) -> float:
            began = time.perf_counter()
            explain(video, explainer, effort=effort)
            return time.perf_counter() - began

        def command(effort: str) -> float:
            words = ["explain", str(video), "--model", model, "--effort", effort, "--device", str(device)]
            began = time.perf_counter()
            subprocess.run([sys.executable, "-m", "whytube", *words], check=True, capture_output=True)
            return time.perf_counter() - began

        for effort in efforts:
            answer(effort)
            rows.append({"effort": effort, "tubes": find_effort(effort)})
            rows[-1]["seconds"] = statistics.median(answer(effort) for _ in range(repeats))
            rows[-1]["command"] = command(effort)
        spent: dict[str, float] = defaultdict(float)
        watch(spent, device)
        for row in rows:
            spent.clear()
            whole = answer(row["effort"])
            shares = {part: round(spent[part] / whole, 4) for part in PARTS if part not in ASIDE}
            row["shares"] = shares | {"the rest": round(1 - sum(shares.values()), 4)}
            row["network"] = round(sum(shares[part] for part in NETWORK), 4)
    return {
        "benchmark": "answer",
        "model": model,
        "video": shown,
        "rows": rows,
        "provenance": provenance(device, seed=seed),
    }


def table(report: dict[str, Any]) -> str:
    """Write the report as text."""
    names = list(report["rows"][0]["shares"])
    head = f"| effort | tubes | seconds | whole command | the network | {' | '.join(names)} |"
    rows = [head, "| --- " * (len(names) + 5) + "|"]
    for row in report["rows"]:
        shares = " | ".join(f"{100 * row['shares'][name]:.0f} %" for name in names)
        rows.append(
            f"| {row['effort']} | {row['tubes']} | {row['seconds']:.2f} | {row['command']:.2f} "
            f"| {100 * row['network']:.0f} % | {shares} |"
        )
    source = report["provenance"]
    return "\n".join([*rows, "", f"{report['model']}; {source['device']}, commit {source['commit']}."])


def main(words: list[str] | None = None) -> None:
    """Measure, print the table, write the report."""
    parser = options(__doc__)
    parser.add_argument("--video", type=Path)
    parser.add_argument("--model", default="jhmdb-i3d")
    parser.add_argument("--efforts", nargs="+", default=["normal", "thorough"])
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args(words)
    how = {"model": "demo", "efforts": ("1",), "repeats": 1} if given.quick else {}
    how = {"model": given.model, "efforts": tuple(given.efforts), "repeats": given.repeats} | how
    report = run(given.device, video=given.video, seed=given.seed, **how)
    publish(report, table(report), given.out)


if __name__ == "__main__":
    main()
