"""The measured half of the report: curves, the table against baselines, lengths of tubes, provenance."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

from whytube.report.charts import histogram, line_chart, swatch
from whytube.report.results import COLUMNS, Measure, curves, lengths, measure, methods_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whytube.report.results import Column

DASH = "\N{EN DASH}"


def measured_html(results: Mapping[str, Any] | None) -> str:
    """Write the section on an evaluation; "" where no method was evaluated."""
    methods = methods_of(results)
    if not methods:
        return ""
    parts = [_curves(methods), _table(methods), _lengths(methods)]
    return f'<section id="measured"><h2>Measured</h2>{"".join(parts)}</section>'


def provenance_html(results: Mapping[str, Any] | None) -> str:
    """List where the numbers come from, as far as the results say."""
    rows = "".join(
        f"<div><dt>{escape(str(key).replace('_', ' '))}</dt><dd>{_plain(value)}</dd></div>"
        for key, value in ((results or {}).get("provenance") or {}).items()
        if value is not None
    )
    return f'<dl class="provenance">{rows}</dl>' if rows else ""


def _curves(methods: Mapping[str, Mapping[str, Any]]) -> str:
    names, figures = list(methods), []
    for key, title in (("top1", "top 1"), ("top3", "top 3")):
        title = f"Negative class accuracy, {title}"
        chart = line_chart(curves(methods, key), title=title, x_label="most probable negatives averaged", order=names)
        if chart:
            figures.append(f"<figure><figcaption>{title}</figcaption>{chart}</figure>")
    if not figures:
        return ""
    shown = [line.name for line in curves(methods, "top1") + curves(methods, "top3") if line.points]
    legend = "".join(f"<li>{swatch(rank)}{escape(name)}</li>" for rank, name in enumerate(names) if name in shown)
    return (
        '<p class="note">Mask the tube that explains “A, not B”, run the classifier again: does B rise more than the '
        "other classes? Asked for the most probable negatives of each clip, from the first alone to many.</p>"
        f'<div class="charts">{"".join(figures)}</div><ul class="legend">{legend}</ul>'
    )


def _table(methods: Mapping[str, Mapping[str, Any]]) -> str:
    found = {c: {name: measure(method, c.path) for name, method in methods.items()} for c in COLUMNS}
    columns = [column for column in COLUMNS if any(found[column].values())]
    if not columns:
        return ""
    head = "".join(f'<th scope="col"><abbr title="{escape(c.hint)}">{escape(c.heading)}</abbr></th>' for c in columns)
    rows = "".join(
        f'<tr><th scope="row">{swatch(rank)}{escape(name)}</th>'
        + "".join(_cell(column, found[column][name], found[column]) for column in columns)
        + "</tr>"
        for rank, name in enumerate(methods)
    )
    caption = "Each method and the baselines on the same clips; ranges are intervals over clips, the best value is bold"
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Methods and baselines">'
        f"<table><caption>{caption}</caption><thead><tr><td></td>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _cell(column: Column, shown: Measure | None, others: Mapping[str, Measure | None]) -> str:
    if shown is None:
        return f'<td><span class="absent">{DASH}</span></td>'
    digits = 1 if abs(shown.value) >= 1 and column.path == ("tube_frames",) else 2 if shown.value >= 0.1 else 3
    best = column.more_is_better and shown.value >= max(m.value for m in others.values() if m is not None)
    text = f"{shown.value:.{digits}f}"
    if best:
        text = f"<strong>{text}</strong>"
    if shown.low is not None:
        text += f"<small>{shown.low:.{digits}f}{DASH}{shown.high:.{digits}f}</small>"
    return f"<td>{text}</td>"


def _lengths(methods: Mapping[str, Mapping[str, Any]]) -> str:
    counted = {name: lengths(method) for name, method in methods.items()}
    longest = max((max(counts) for counts in counted.values() if counts), default=0)
    figures = ""
    for rank, (name, counts) in enumerate(counted.items()):
        mean = sum(n * count for n, count in counts.items()) / max(sum(counts.values()), 1)
        title = f"Lengths of the tubes of {name}, from 1 to {longest} frames; mean {mean:.1f}"
        chart = histogram(counts, title=title, longest=longest, colour=rank)
        if chart:
            caption = f"{escape(name)} <small>mean {mean:.1f}</small>"
            figures += f"<figure><figcaption>{caption}</figcaption>{chart}</figure>"
    if not figures:
        return ""
    note = "How many sampled frames a tube spans. A method that always takes the whole clip says nothing about when."
    return f'<h3>Lengths of tubes</h3><p class="note">{note}</p><div class="lengths">{figures}</div>'


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return escape(", ".join(f"{key} {part}" for key, part in value.items()))
    return escape(value if isinstance(value, str) else json.dumps(value, default=str))
