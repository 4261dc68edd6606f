"""Series of results: one study measured several times with another effort, or another weight of a word's fit.

NAME-effort-N.json: N tubes were tried. NAME-front-W.json: the logarithm of a word's fit had the weight W.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from whytube.search.anytime import FIT_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whytube.evaluation.results import MethodResults, Results

_MEMBER = re.compile(r"(?P<study>.+)-(?P<kind>effort|front)-(?P<value>\d+(?:\.\d+)?)")
X, Y = "right_box", "negative_class_accuracy.top1"
"""Figures of `ours` that the picture of the front has across and up."""


def is_member(name: str) -> bool:
    """Whether results of this name belong to a series."""
    return _MEMBER.fullmatch(name) is not None


def series(runs: Mapping[str, Results], kind: str) -> dict[str, dict[float, Results]]:
    """Collect the series of a kind: name of the study -> number of tubes, or weight, in order -> results."""
    found: dict[str, dict[float, Results]] = {}
    for name, run in runs.items():
        member = _MEMBER.fullmatch(name)
        if member and member["kind"] == kind:
            found.setdefault(member["study"], {})[float(member["value"])] = run
    return {study: dict(sorted(members.items())) for study, members in found.items()}


def front_picture(runs: Mapping[str, Results]) -> str | None:
    """Draw the front of each study as SVG: words across, fidelity up, the shipped weight filled; None without any."""
    fronts = {study: _points(members) for study, members in series(runs, "front").items()}
    points = [point for front in fronts.values() for point in front]
    if not points:
        return None
    (left, right), (low, high) = (_span([point[axis] for point in points]) for axis in (1, 2))
    width, height, pad = 520, 320, 56

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = (x - left) / (right - left), (y - low) / (high - low)
        return pad + across * (width - 2 * pad), height - pad - up * (height - 2 * pad)

    marks = []
    for part in (0, 0.5, 1):
        x, y = left + part * (right - left), low + part * (high - low)
        (at, _), (_, up) = place(x, low), place(left, y)
        marks.append(f'<path class="rule" d="M{pad} {up:.1f}H{width - pad}M{at:.1f} {pad}V{height - pad}"/>')
        marks.append(f'<text x="{at:.1f}" y="{height - pad + 18}" text-anchor="middle">{x:.2f}</text>')
        marks.append(f'<text x="{pad - 8}" y="{up + 4:.1f}" text-anchor="end">{y:.2f}</text>')
    for study, front in fronts.items():
        spots = [place(x, y) for _, x, y in front]
        marks.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in spots)}"/>')
        for (weight, _, _), (x, y) in zip(front, spots, strict=True):
            kind = "shipped" if weight == FIT_WEIGHT else "other"
            marks.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="5"/>')
            name = f"{study}, weight {weight:g}" if len(fronts) > 1 else f"weight {weight:g}"
            side = 'text-anchor="end" x' if x > width / 2 else "x"
            marks.append(f'<text {side}="{x + (-9 if x > width / 2 else 9):.1f}" y="{y - 8:.1f}">{escape(name)}</text>')
    marks.append(
        f'<text x="{width / 2}" y="{height - 14}" text-anchor="middle">right box: the word is where it says</text>'
    )
    marks.append(f'<text x="{pad - 40}" y="28">negative class top-1: the region raises B most</text>')
    return _SVG.format(width=width, height=height, inside="\n".join(marks))


def _points(members: Mapping[float, Results]) -> list[tuple[float, float, float]]:
    """(weight, x, y) of the members whose `ours` has both figures."""
    found = []
    for weight, run in members.items():
        method: MethodResults | None = run.methods.get("ours")
        x, y = (None, None) if method is None else (method.figure(path).mean for path in (X, Y))
        if x is not None and y is not None:
            found.append((weight, x, y))
    return found


def _span(values: list[float]) -> tuple[float, float]:
    """Round outwards to steps of .05 between 0 and 1."""
    return max(0, min(values) * 20 // 1 - 1) / 20, min(20, max(values) * 20 // 1 + 2) / 20


_SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">
<title>Words against fidelity, over the weight of the fit</title>
<style>
.back {{ fill: #ffffff }} text {{ font: 12px sans-serif; fill: #24292f }} .rule {{ stroke: #d0d7de }}
polyline {{ fill: none; stroke: #0969da; stroke-width: 2 }} circle {{ stroke: #0969da; stroke-width: 2 }}
.shipped {{ fill: #0969da }} .other {{ fill: #ffffff }}
@media (prefers-color-scheme: dark) {{
.back, .other {{ fill: #0d1117 }} text {{ fill: #e6edf3 }} .rule {{ stroke: #30363d }}
polyline, circle {{ stroke: #58a6ff }} .shipped {{ fill: #58a6ff }}
}}
</style>
<rect class="back" width="{width}" height="{height}" rx="6"/>
{inside}
</svg>
"""
