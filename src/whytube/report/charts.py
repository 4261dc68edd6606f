"""Charts as inline SVG: they scale, print, follow the page's light or dark theme, and need no library."""

from __future__ import annotations

import math
from collections import Counter
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Line colours that the template defines as --line-0, --line-1, ...; after the last they come again, dashed.
LINES = 7
MOST_BARS = 32


def line_chart(lines: Mapping[str, Sequence[float | None]], *, title: str, x_label: str) -> str:
    """Draw named lines over x = 1, 2, ..., y from 0 upwards; "" where there is no point.

    A point is missing where y is None. The place of a name decides its colour.
    """
    drawn = {name: [(x, y) for x, y in enumerate(line, 1) if y is not None] for name, line in lines.items()}
    if not any(drawn.values()):
        return ""
    left, right = 1, max(x for points in drawn.values() for x, _ in points)
    top = _nice_top(max(y for points in drawn.values() for _, y in points))
    width, height, pad_left, pad_bottom, pad_top = 520, 300, 44, 44, 12
    across, up = width - pad_left - 14, height - pad_bottom - pad_top

    def place(x: float, y: float) -> tuple[float, float]:
        part = (x - left) / (right - left) if right > left else 0.5
        return pad_left + part * across, pad_top + (1 - y / top) * up

    marks = [_y_tick(top * i / 4, place(left, top * i / 4)[1], pad_left, width - 14) for i in range(5)]
    marks += [
        _x_tick(x, place(x, 0)[0], height - pad_bottom)
        for x in range(left, right + 1, max(1, math.ceil((right - left) / 12)))
    ]
    marks.append(f'<text class="axis" x="{pad_left + across / 2:.0f}" y="{height - 6}">{escape(x_label)}</text>')
    for rank, (name, points) in enumerate(drawn.items()):
        marks.append(_polyline(name, points, [place(x, y) for x, y in points], rank) if points else "")
    summary = "; ".join(f"{name}: {p[0][1]:.2f} to {p[-1][1]:.2f}" for name, p in drawn.items() if p)
    return _svg(width, height, "".join(marks), label=f"{title}. {summary}")


def histogram(counts: Sequence[int], *, title: str, colour: int) -> str:
    """Draw shares of lengths 1, 2, ... as bars, in at most MOST_BARS bins; "" where nothing was counted.

    counts: entry n counts the tubes of n frames; entry 0 is not shown.
    """
    total, longest = sum(counts[1:]), len(counts) - 1
    if not total:
        return ""
    width, height, base, top = 240, 120, 96, 10
    wide = math.ceil(longest / MOST_BARS)
    bins = Counter[int]()
    for length, count in enumerate(counts[1:]):
        bins[length // wide] += count
    step = (width - 8) / math.ceil(longest / wide)
    tallest = max(bins.values())
    bars = []
    for place, count in sorted((+bins).items()):
        first, last = place * wide + 1, (place + 1) * wide
        name = f"{first} frames" if wide == 1 else f"{first} to {last} frames"
        tall = (base - top) * count / tallest
        bars.append(
            f'<rect x="{4 + place * step:.1f}" y="{base - tall:.1f}" width="{max(step - 1.5, 1):.1f}" '
            f'height="{tall:.1f}" rx="1.5"><title>{name}: {count / total:.0%}</title></rect>'
        )
    ends = f'<text class="tick start" x="4" y="112">1</text><text class="tick" x="{width - 4}" y="112">{longest}</text>'
    rule = f'<line class="rule" x1="4" x2="{width - 4}" y1="{base}" y2="{base}"/>'
    return _svg(width, height, f'<g class="fill-{colour % LINES}">{"".join(bars)}</g>{rule}{ends}', label=title)


def swatch(rank: int) -> str:
    """Draw a piece of the line at a place in the order, for a legend."""
    line = f'<line class="line line-{rank % LINES}{_dashed(rank)}" x1="1" x2="27" y1="6" y2="6"/>'
    return f'<svg class="swatch" viewBox="0 0 28 12" aria-hidden="true">{line}</svg>'


def _polyline(name: str, points: Sequence[tuple[int, float]], places: Sequence[tuple[float, float]], rank: int) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{escape(name)}, {n}: {value:.3f}</title></circle>'
        for (x, y), (n, value) in zip(places, points, strict=True)
    )
    kind = f"line-{rank % LINES}{_dashed(rank)}"
    return f'<polyline class="line {kind}" points="{path}"/><g class="fill-{rank % LINES}">{dots}</g>'


def _dashed(rank: int) -> str:
    return " dashed" if rank >= LINES else ""


def _y_tick(value: float, y: float, left: float, right: float) -> str:
    rule = f'<line class="rule" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
    return f'{rule}<text class="tick" x="{left - 8}" y="{y + 4:.1f}">{value:.2f}</text>'


def _x_tick(value: int, x: float, y: float) -> str:
    return f'<text class="tick middle" x="{x:.1f}" y="{y + 18:.1f}">{value}</text>'


def _nice_top(value: float) -> float:
    """Round up to a value whose quarters are easy to read."""
    return next((top for top in (0.04, 0.1, 0.2, 0.4, 0.6, 0.8) if value <= top), max(1.0, value))


def _svg(width: int, height: int, inside: str, *, label: str) -> str:
    return f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}">{inside}</svg>'
