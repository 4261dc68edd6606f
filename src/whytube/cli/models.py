"""`whytube models`: what is shipped, and what a card says."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from whytube.cli.options import Json, Plain, console, print_json

if TYPE_CHECKING:
    from whytube.models import Card

app = typer.Typer(help="Models by name: list them, read their cards.", no_args_is_help=True)
SHOWN = 24
"""Class names that `info` prints."""


@app.command("list")
def list_all(as_json: Json = False) -> None:
    """List the shipped models.

    Example: `whytube models list`
    """
    from whytube.models import list_models

    rows = list_models()
    if as_json:
        print_json([asdict(row) for row in rows])
        return
    table = Table("name", "network", "classes", "explains", "MB", "right", box=None, pad_edge=False)
    for column in table.columns:  # names are there to be typed
        column.no_wrap, column.overflow = True, "ignore"
    for row in rows:
        accuracy = "" if row.accuracy is None else f"{100 * row.accuracy:.1f} %"
        size = f"{row.size / 1e6:.1f}"
        table.add_row(row.name, row.architecture, str(row.classes), row.explains, size, accuracy)
    console.print(table)


@app.command("info", cls=Plain)
def info(
    name: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="A name of `whytube models list`, a model's folder, or a classifier's file."
        ),
    ],
    as_json: Json = False,
) -> None:
    """Print a classifier's card: how it is built, how it was trained, what it reached, where it comes from.

    Example: `whytube models info demo`
    """
    from whytube.models import read_card

    card = read_card(name)
    if as_json:
        print_json(asdict(card))
    else:
        _show(card)


def _show(card: Card) -> None:
    rows: dict[str, Any] = asdict(card)
    more = ", ... (--json prints all)" if len(card.classes) > SHOWN else ""
    rows["classes"] = f"{len(card.classes)}: {', '.join(card.classes[:SHOWN])}{more}"
    table = Table("", "", box=None, padding=(0, 1), show_header=False)
    for name, value in rows.items():
        parts = value if isinstance(value, dict) else {"": value}
        for row, (key, part) in enumerate(parts.items()):
            if part is not None:
                table.add_row(name if row == 0 else "", f"{key}: {_text(part)}" if key else _text(part))
    console.print(table, markup=False, highlight=False)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
