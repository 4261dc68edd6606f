"""The command line: parse, call the library, print; no maths.

options.py   what several commands share: devices, data, files
ask.py       explain, report, demo
learn.py     train, evaluate
data.py      data export, data check
importing.py data import
bench.py     bench subpath, bench train
results.py   results pool, results curves, results page
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from rich.console import Console

import whytube
from whytube.cli import ask, bench, data, learn, results
from whytube.errors import WhytubeError

app = typer.Typer(
    name="whytube",
    help="Why did the network say A, not B? A word and a moving region, for PyTorch video classifiers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.command("explain")(ask.explain)
app.command("demo")(ask.demo)
app.command("report")(ask.report)
app.command("evaluate")(learn.evaluate)
app.add_typer(learn.train, name="train")
app.add_typer(data.app, name="data")
app.add_typer(bench.app, name="bench")
app.add_typer(results.app, name="results")


def main() -> None:
    """Run the command line; a wrong input ends with its message and exit code 2."""
    # Large pages for torch's large tensors: fewer page faults on a CPU. Read when the first one is made.
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    try:
        app()
    except WhytubeError as error:
        Console(stderr=True).print("[bold red]error:[/] ", end="")
        Console(stderr=True).print(str(error), markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        typer.echo(f"whytube {whytube.__version__}")
        raise typer.Exit
