"""Losses of the paper's objective while it is trained, as pictures for docs/training.md."""

from __future__ import annotations

from html import escape
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studies.negatives import frame
from whytube.errors import DataError
from whytube.files import read_json
from whytube.report.charts import LINES, line_chart

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

EVERY = 100
"""Steps that a point is the mean of: single clips with a loss of hundreds make the curve rough."""
MOST = 1.5
"""Points above this multiple of the all-zero level are left out: a run that diverges would flatten all others."""
_WIDTH, _HEIGHT, _TITLE, _ROW = 520, 300, 28, 22


def loss_pictures(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Draw each paper-curves*.json that has its paper-loss*.json: name of the picture -> SVG."""
    found = {}
    for path in sorted(Path(folder).glob("paper-curves*.json")):
        beside = path.with_name(path.name.replace("curves", "loss"))
        if beside.exists():
            curves, levels = read_json(path, error=DataError)["curves"], read_json(beside, error=DataError)["levels"]
            found[f"{path.stem}.svg"] = picture(curves, levels)
    return found


def picture(curves: Mapping[str, Sequence[Mapping[str, Any]]], levels: Mapping[str, float]) -> str:
    """Draw the means over EVERY steps of every run, and the level of all-zero weights, with a legend."""
    zero = levels["all-zero weights"]
    lines: dict[str, list[float | None]] = {
        title: [mean if mean <= MOST * zero else None for mean in means(records)] for title, records in curves.items()
    }
    lines["all-zero weights"] = [zero] * max(map(len, lines.values()))
    title = "Loss (8) of the paper's objective, c_pos drawn"
    chart = line_chart(lines, title=title, x_label=f"steps, in hundreds; each point is the mean of {EVERY}")
    marks = [
        f'<text class="title" x="44" y="20">{escape(title)}</text>',
        chart.replace("<svg ", f'<svg y="{_TITLE}" width="{_WIDTH}" height="{_HEIGHT}" ', 1),
    ]
    for rank, (name, points) in enumerate(lines.items()):
        y = _TITLE + _HEIGHT + 12 + rank * _ROW
        dashed = " dashed" if rank >= LINES else ""
        outside = "" if None not in points else f" (partly above {MOST * zero:.1f})"
        outside = outside if any(points) else f" (above {MOST * zero:.1f})"
        marks.append(f'<path class="line line-{rank % LINES}{dashed}" d="M44 {y}h26"/>')
        marks.append(f'<text x="78" y="{y + 4}">{escape(name + outside)}</text>')
    height = _TITLE + _HEIGHT + 12 + len(lines) * _ROW
    return frame("\n".join(marks), width=_WIDTH, height=height, title=title)


def means(records: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the mean loss of every EVERY steps; a rest at the end is left out unless it is all there is."""
    parts = [
        [record["loss"] for record in part] for _, part in groupby(records, lambda one: (one["step"] - 1) // EVERY)
    ]
    whole = parts if len(parts) == 1 or records[-1]["step"] % EVERY == 0 else parts[:-1]
    return [sum(part) / len(part) for part in whole]
