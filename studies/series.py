"""Series of results: one study measured several times with another effort, or another weight of a word's fit; drawn.

NAME-effort-N.json: N tubes were tried. NAME-front-W.json: the logarithm of a word's fit had the weight W.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from studies.cells import COST, TOP1
from studies.negatives import frame
from whytube.search.anytime import FIT_WEIGHT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from whytube.evaluation.results import MethodResults, Results

_MEMBER = re.compile(r"(?P<study>.+)-(?P<kind>effort|front)-(?P<value>\d+(?:\.\d+)?)")
EFFORTS = "effort"
FRONT = "front.svg"
"""Name of the picture of the front."""
X, Y = "right_box", TOP1
"""Figures of `ours` that the picture of the front has across and up."""
_WIDTH, _HEIGHT, _PAD, _ROW = 520, 320, 56, 22


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
    """Draw the front of each study as SVG: words across, fidelity up, the shipped weight largest; None without any."""
    fronts = {study: _points(members) for study, members in series(runs, "front").items()}
    points = [point for front in fronts.values() for point in front]
    if not points:
        return None
    (left, right), (low, high) = (_span([point[axis] for point in points]) for axis in (1, 2))
    axes = _Axes(left, right, low, high, legend=len(fronts))
    marks = [axes.rule_across(x, f"{x:.2f}") for x in (left, (left + right) / 2, right)] + axes.rules_up()
    for rank, (study, front) in enumerate(fronts.items()):
        spots = [axes.place(x, y) for _, x, y in front]
        marks += axes.line(rank, f"{study}, by weight of the fit", spots)
        for place, ((weight, _, _), (x, y)) in enumerate(zip(front, spots, strict=True)):
            kind, radius = ("shipped", 7) if weight == FIT_WEIGHT else ("other", 4)
            marks.append(f'<circle class="fill-{rank} {kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>')
            side = "start" if place % 2 else "end"  # points lie close to each other
            marks.append(
                f'<text text-anchor="{side}" x="{x + (10 if place % 2 else -10):.1f}" y="{y + 4:.1f}">{weight:g}</text>'
            )
    marks += axes.titles("right box: the word is where it says", "negative class top-1: the region raises B most")
    return frame(
        "\n".join(marks), width=_WIDTH, height=axes.height, title="Words against fidelity, over the weight of the fit"
    )


def effort_name(study: str) -> str:
    """Name the picture of what more tubes buy."""
    return f"effort-{study}.svg"


def effort_pictures(runs: Mapping[str, Results]) -> dict[str, str]:
    """Draw every study that was measured with several efforts: name of the picture -> SVG."""
    return {effort_name(study): effort_picture(members) for study, members in series(runs, EFFORTS).items()}


def effort_picture(members: Mapping[float, Results]) -> str:
    """Draw a line for every method: masked clips across, each step twice as many, negative class top-1 up."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for run in members.values():
        for method, found in run.methods.items():
            cost, value = found.figure(COST).mean, found.figure(TOP1).mean
            if cost and value is not None:
                lines.setdefault(method, []).append((math.log2(cost), value))
    points = [point for line in lines.values() for point in line] or [(0.0, 0.0)]
    left, right = math.floor(min(x for x, _ in points)), math.floor(max(x for x, _ in points)) + 1
    axes = _Axes(left, right, *_span([y for _, y in points]), legend=len(lines))
    marks = [axes.rule_across(x, f"{2**x:g}") for x in range(left, right + 1)] + axes.rules_up()
    for rank, (method, line) in enumerate(lines.items()):
        spots = [axes.place(*point) for point in sorted(line)]
        marks += axes.line(rank, method, spots)
        marks += [f'<circle class="fill-{rank}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in spots]
    marks += axes.titles("masked clips a question", "negative class top-1: the region raises B most")
    return frame("\n".join(marks), width=_WIDTH, height=axes.height, title="Quality over the cost of an answer")


@dataclass(frozen=True)
class _Axes:
    """A field from `left` to `right` and from `low` to `high`, with a legend of some lines below."""

    left: float
    right: float
    low: float
    high: float
    legend: int

    @property
    def height(self) -> int:
        return _HEIGHT + self.legend * _ROW

    def place(self, x: float, y: float) -> tuple[float, float]:
        across, up = (x - self.left) / (self.right - self.left), (y - self.low) / (self.high - self.low)
        return _PAD + across * (_WIDTH - 2 * _PAD), _HEIGHT - _PAD - up * (_HEIGHT - 2 * _PAD)

    def rule_across(self, x: float, text: str) -> str:
        at, _ = self.place(x, self.low)
        tick = f'<text class="tick middle" x="{at:.1f}" y="{_HEIGHT - _PAD + 18}">{text}</text>'
        return f'<path class="rule" d="M{at:.1f} {_PAD}V{_HEIGHT - _PAD}"/>{tick}'

    def rules_up(self) -> list[str]:
        marks = []
        for y in (self.low, (self.low + self.high) / 2, self.high):
            _, up = self.place(self.left, y)
            marks.append(f'<path class="rule" d="M{_PAD} {up:.1f}H{_WIDTH - _PAD}"/>')
            marks.append(f'<text class="tick" x="{_PAD - 8}" y="{up + 4:.1f}">{y:.2f}</text>')
        return marks

    def line(self, rank: int, name: str, spots: Iterable[tuple[float, float]]) -> list[str]:
        drawn, y = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots), _HEIGHT + rank * _ROW
        return [
            f'<polyline class="line line-{rank}" points="{drawn}"/>',
            f'<path class="line line-{rank}" d="M{_PAD} {y}h26"/>',
            f'<text x="{_PAD + 34}" y="{y + 4}">{escape(name)}</text>',
        ]

    @staticmethod
    def titles(across: str, up: str) -> list[str]:
        return [
            f'<text class="axis" x="{_WIDTH / 2}" y="{_HEIGHT - 20}">{escape(across)}</text>',
            f'<text x="{_PAD - 40}" y="28">{escape(up)}</text>',
        ]


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
