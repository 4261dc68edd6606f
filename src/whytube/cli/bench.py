"""`whytube bench`: measure on this machine."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it at run time
from typing import Annotated

import typer

from whytube.cli.options import Device, JsonFile, Overwrite, Seed, find_device, require_new, write_json

app = typer.Typer(help="Measure on this machine.", no_args_is_help=True)
Quick = Annotated[bool, typer.Option(help="Tiny sizes: try the program, get no numbers.")]


@app.command("subpath")
def bench_subpath(
    json_file: JsonFile = None,
    overwrite: Overwrite = False,
    device: Device = "auto",
    seed: Seed = 0,
    quick: Quick = False,
) -> None:
    """Compare the maximum-subpath layer with the paper's composition: same inputs, same run.

    Example: `whytube bench subpath --json subpath.json`
    """
    from whytube.benchmark import subpath

    require_new(json_file, overwrite=overwrite)
    report = subpath.run(find_device(device), seed=seed, quick=quick)
    write_json(report, json_file)
    typer.echo(subpath.table(report))


@app.command("train")
def bench_train(
    json_file: JsonFile = None,
    overwrite: Overwrite = False,
    device: Device = "auto",
    seed: Seed = 0,
    quick: Quick = False,
    full: Annotated[bool, typer.Option("--full", help="The paper's sizes also on a CPU, in minutes.")] = False,
) -> None:
    """Compare a training step of the explainer with its straightforward writing.

    Example: `whytube bench train --json train.json`
    """
    from whytube.benchmark import train

    require_new(json_file, overwrite=overwrite)
    report = train.run(find_device(device), seed=seed, quick=quick, full=full)
    write_json(report, json_file)
    typer.echo(train.table(report))


@app.command("decode")
def bench_decode(
    video: Annotated[Path, typer.Argument(help="A video file that PyAV reads.")],
    json_file: JsonFile = None,
    overwrite: Overwrite = False,
) -> None:
    """Compare reading a video with PyAV's bare threaded loop: same file, same run.

    Example: `whytube bench decode clip.mp4 --json decode.json`
    """
    from whytube.benchmark import decode

    require_new(json_file, overwrite=overwrite)
    report = decode.run(video)
    write_json(report, json_file)
    typer.echo(decode.table(report))
