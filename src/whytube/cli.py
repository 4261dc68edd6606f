"""The command line: parse, call the library, print; no maths."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import torch
import typer
from rich.console import Console

import whytube
from whytube.errors import ArgumentError, WhytubeError

if TYPE_CHECKING:
    from collections.abc import Mapping

app = typer.Typer(
    name="whytube",
    help="Why did the network say A, not B? A word and a moving region, for any PyTorch video classifier.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
bench = typer.Typer(help="Measure on this machine.", no_args_is_help=True)
app.add_typer(bench, name="bench")

Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, ...; by default the GPU if there is one.")]
Json = Annotated[Path | None, typer.Option("--json", help="Also write the result to this file.")]


def main() -> None:
    """Run the command line; a wrong input ends with its message and exit code 2."""
    try:
        app()
    except WhytubeError as error:
        Console(stderr=True).print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
        sys.exit(2)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        typer.echo(f"whytube {whytube.__version__}")
        raise typer.Exit


@app.command()
def demo(seed: Annotated[int, typer.Option(help="Another volume.")] = 0) -> None:
    """Find the best tube in a generated volume of scores and draw it.

    Example: `whytube demo --seed 3`
    """
    from whytube.demo import draw, planted_volume

    scores, planted = planted_volume(seed)
    draw(scores, whytube.max_subpath(scores), planted, Console())


@bench.command("subpath")
def bench_subpath(
    json_file: Json = None,
    device: Device = "auto",
    seed: Annotated[int, typer.Option(help="Seed of the random scores.")] = 0,
    quick: Annotated[bool, typer.Option(help="Tiny volumes: try the program, get no numbers.")] = False,
) -> None:
    """Compare the maximum-subpath layer with the paper's composition: same inputs, same run.

    Example: `whytube bench subpath --json subpath.json`
    """
    from whytube.benchmark import subpath

    report = subpath.run(_device(device), seed=seed, quick=quick)
    _write(report, json_file)
    typer.echo(subpath.table(report))


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ArgumentError(f"unknown device {name!r}: use cpu, cuda or cuda:N") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ArgumentError("no CUDA device is available here: use --device cpu")
    return device


def _write(report: Mapping[str, object], path: Path | None) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(report, indent=2) + "\n")
