"""`whytube data`: write the embedded world as files, index public data sets, check a folder of your own."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it at run time
from typing import Annotated, Any

import typer

from whytube.cli import importing
from whytube.cli.options import JsonFile, Overwrite, Seed, progress_bar, require_new, write_json

app = typer.Typer(help="Data on disk: the layout is described in docs/data.md.", no_args_is_help=True)
app.add_typer(importing.app, name="import")


@app.command("export")
def export(
    out: Annotated[Path, typer.Option(help="New or empty folder to write.")],
    count: Annotated[int, typer.Option(help="How many clips in all.")] = 480,
    size: Annotated[int, typer.Option(help="Pixels of a side.")] = 112,
    frames: Annotated[int, typer.Option(help="Frames of a clip.")] = 16,
    fps: Annotated[float, typer.Option(help="Frames per second.")] = 8.0,
    seed: Seed = 0,
    json_file: JsonFile = None,
    overwrite: Overwrite = False,
) -> None:
    """Write the embedded world as H.264 clips with attribute tables and box tracks.

    A folder that holds anything is never replaced: remove it first.

    Example: `whytube data export --out world --count 480`
    """
    from whytube.data.export import export_world

    require_new(json_file, overwrite=overwrite)
    settings: dict[str, Any] = {"count": count, "size": size, "frames": frames, "fps": fps, "seed": seed}
    with progress_bar("writing clips") as progress:
        folder = export_world(out, **settings, progress=progress)
    write_json({"folder": str(folder), **settings}, json_file)
    typer.echo(f"{count} clips in {folder}")


@app.command("check")
def check(
    folder: Annotated[Path, typer.Argument(help="The folder to check.")],
    deep: Annotated[bool, typer.Option(help="Decode every frame of every video.")] = False,
    json_file: JsonFile = None,
    overwrite: Overwrite = False,
) -> None:
    """Say what is wrong with a data set, and its statistics as in the paper's Table 1.

    Problems of one kind share a line; --json has them all. The exit code is 2 when the data cannot be used.

    Example: `whytube data check my_videos --deep`
    """
    from whytube.data.layout import check_dataset

    require_new(json_file, overwrite=overwrite)
    with progress_bar("checking") as progress:
        report = check_dataset(folder, deep=deep, progress=progress)
    write_json(report.to_dict(), json_file)
    typer.echo(str(report))
    raise typer.Exit(0 if report.ok else 2)
