"""Fig. 5 of the paper: negative class accuracy over the n most probable negatives, n = 1 ... C - 1, of every method."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from studies.cells import ZERO, number, table
from whytube.report.charts import LINES, line_chart

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whytube.evaluation.results import Results

PANELS = {
    f"{ZERO}.curve.top1": "top 1, zero, as in the paper",
    f"{ZERO}.curve.top3": "top 3, zero, as in the paper",
    "curve.top1": "top 1, unseen fills",
    "curve.top3": "top 3, unseen fills",
}
"""Curves that are drawn, and their titles."""
_WIDTH, _HEIGHT, _TITLE, _ROW = 520, 300, 28, 22


def asks_all(run: Results) -> bool:
    """Whether results are about every class but the predicted one; nothing less is drawn, more than one it must be."""
    return bool(run.provenance["settings"]["negatives"] == run.classifier.classes - 1 > 1)


def picture_name(name: str) -> str:
    """Name the picture of a run."""
    return f"negatives-{name}.svg"


def pictures(runs: Mapping[str, Results]) -> dict[str, str]:
    """Draw every run that asks about all negatives: name of the picture -> SVG."""
    return {picture_name(name): picture(run) for name, run in runs.items() if asks_all(run) and run.methods}


def picture(run: Results) -> str:
    """Draw the curves of all methods, with a legend, as one SVG that needs no page around it."""
    marks = []
    for place, (path, title) in enumerate(PANELS.items()):
        lines = {name: [point.mean for point in found.curves.get(path, ())] for name, found in run.methods.items()}
        chart = line_chart(lines, title=title, x_label="most probable negatives averaged")
        x, y = place % 2 * _WIDTH, place // 2 * (_HEIGHT + _TITLE)
        marks.append(f'<text class="title" x="{x + 44}" y="{y + 20}">{escape(title)}</text>')
        marks.append(chart.replace("<svg ", f'<svg x="{x}" y="{y + _TITLE}" width="{_WIDTH}" height="{_HEIGHT}" ', 1))
    top = 2 * (_HEIGHT + _TITLE) + 8
    for rank, name in enumerate(run.methods):
        x, y = 44 + rank % 4 * 250, top + rank // 4 * _ROW
        dashed = " dashed" if rank >= LINES else ""
        marks.append(f'<path class="line line-{rank % LINES}{dashed}" d="M{x} {y}h26"/>')
        marks.append(f'<text x="{x + 34}" y="{y + 4}">{escape(name)}</text>')
    height = top + -(-len(run.methods) // 4) * _ROW
    title = "Negative class accuracy averaged over the most probable negatives"
    return frame("\n".join(marks), width=2 * _WIDTH, height=height, title=title)


def frame(inside: str, *, width: int, height: int, title: str) -> str:
    """Put marks into an SVG that has the colours of the lines, for light and dark pages."""
    return _SVG.format(width=width, height=height, inside=inside, title=escape(title))


def negatives_section(name: str, run: Results, images: str) -> str:
    """Write some points of the curves as a table, and the picture; empty where not all negatives were asked about.

    images: where pictures lie, seen from the page.
    """
    if not asks_all(run):
        return ""
    last = run.classifier.classes - 1
    shown = [n for n in (1, 3, 5, 10) if n < last] + [last]
    rows = [
        (f"`{method}`", fill, *(number(curve[n - 1].mean) for n in shown))
        for method, found in run.methods.items()
        for fill, path in (("zero, as in the paper", f"{ZERO}.curve.top3"), ("unseen fills", "curve.top3"))
        for curve in [found.curves.get(path, ())]
        if len(curve) == last
    ]
    head = ("method", "fill", *(f"n = {n}" for n in shown))
    return (
        "Top-3 averaged over the n most probable negatives, as in the paper's Fig. 5:\n\n"
        + table(head, rows)
        + f"\n![Negative class accuracy of every method over the number of negatives]({images}/{picture_name(name)})\n"
    )


_SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">
<title>{title}</title>
<style>
.back {{ fill: #ffffff }} text {{ font: 12px sans-serif; fill: #57606a }}
.title {{ font: bold 14px sans-serif; fill: #24292f }}
.tick {{ text-anchor: end }} .tick.middle, .axis {{ text-anchor: middle }} .rule {{ stroke: #d0d7de }}
.line {{ fill: none; stroke-width: 2.5 }} .dashed {{ stroke-dasharray: 2 6 }} circle {{ stroke: none }}
.line-0 {{ stroke: #3b4cca }} .line-1 {{ stroke: #c05a00 }} .line-2 {{ stroke: #0a7d55 }} .line-3 {{ stroke: #c2185b }}
.line-4 {{ stroke: #8a7400 }} .line-5 {{ stroke: #0b76b8 }} .line-6 {{ stroke: #6b7280 }}
.fill-0 {{ fill: #3b4cca }} .fill-1 {{ fill: #c05a00 }} .fill-2 {{ fill: #0a7d55 }} .fill-3 {{ fill: #c2185b }}
.fill-4 {{ fill: #8a7400 }} .fill-5 {{ fill: #0b76b8 }} .fill-6 {{ fill: #6b7280 }}
@media (prefers-color-scheme: dark) {{
.back {{ fill: #0d1117 }} text {{ fill: #9aa2b3 }} .title {{ fill: #e6edf3 }} .rule {{ stroke: #30363d }}
.line-0 {{ stroke: #93a0ff }} .line-1 {{ stroke: #ff9d45 }} .line-2 {{ stroke: #3ecf9b }} .line-3 {{ stroke: #ff8db4 }}
.line-4 {{ stroke: #e3cc4e }} .line-5 {{ stroke: #63bdf0 }} .line-6 {{ stroke: #9aa2b3 }}
.fill-0 {{ fill: #93a0ff }} .fill-1 {{ fill: #ff9d45 }} .fill-2 {{ fill: #3ecf9b }} .fill-3 {{ fill: #ff8db4 }}
.fill-4 {{ fill: #e3cc4e }} .fill-5 {{ fill: #63bdf0 }} .fill-6 {{ fill: #9aa2b3 }}
}}
</style>
<rect class="back" width="{width}" height="{height}" rx="6"/>
{inside}
</svg>
"""
