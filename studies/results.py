"""`whytube results`: what `evaluate --json` and `train --json` wrote, put together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from whytube.cli.options import JsonFile, Overwrite, console, require_new, write_json
from whytube.errors import ArgumentError
from whytube.files import write_whole

app = typer.Typer(help="Put results together: over seeds, as curves, as a page.", no_args_is_help=True)

Files = Annotated[list[Path], typer.Argument(help="Files that --json wrote.")]


@app.command("pool")
def pool(files: Files, json_file: JsonFile = None, overwrite: Overwrite = False) -> None:
    """Average results of `evaluate` over seeds or splits; intervals then are over these runs, not over clips.

    Example: `whytube results pool seed0.json seed1.json seed2.json --json results/world.json`
    """
    from whytube.cli.demo import print_results
    from whytube.evaluation.intervals import over_seeds

    require_new(json_file, overwrite=overwrite)
    pooled = over_seeds([_read(path, "methods") for path in files])
    write_json(pooled, json_file)
    print_results(pooled, console)


@app.command("curves")
def curves(
    runs: Annotated[list[str], typer.Argument(help="TITLE=FILE, a file that `train --json` wrote.")],
    json_file: JsonFile = None,
    overwrite: Overwrite = False,
) -> None:
    """Put the loss curves of training runs side by side, and what classifiers reached.

    Example: `whytube results curves ours=ours.json paper=paper.json --json curves.json`
    """
    from studies.page import curves_table

    require_new(json_file, overwrite=overwrite)
    found: dict[str, Any] = {}
    for text in runs:
        title, equals, path = text.rpartition("=")
        if not equals:
            raise ArgumentError(f"expected TITLE=FILE, got {text!r}")
        found[title] = _read(Path(path), "history")
    losses = {
        title: [{"step": record["step"], "loss": record["loss"]} for record in run["history"]["records"]]
        for title, run in found.items()
    }
    origins = {title: run["provenance"] for title, run in found.items()}
    metrics = {title: run["classifier"] for title, run in found.items() if "classifier" in run}
    write_json({"curves": losses, "metrics": metrics, "provenance": origins}, json_file)
    typer.echo(curves_table(losses, metrics))


@app.command("page")
def page(
    folder: Annotated[Path, typer.Argument(help="Folder of results, each a file that `evaluate --json` wrote.")],
    out: Annotated[Path, typer.Option(help="The Markdown file to write.")],
    overwrite: Overwrite = False,
) -> None:
    """Write results as a page, the paper's numbers beside them.

    Example: `whytube results page results --out docs/results.md`
    """
    from studies.page import read_results, results_page

    require_new(out, overwrite=overwrite)
    found = read_results(folder)
    if not found:
        raise ArgumentError(f"there is no .json file in {folder}: write one with `whytube evaluate --json`")
    write_whole(out, results_page(found), error=ArgumentError)
    console.print(f"{out}: {len(found)} results")


def _read(path: Path, part: str) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArgumentError(f"cannot read {path}: {error}") from error
    if not isinstance(found, dict) or part not in found:
        raise ArgumentError(f"cannot use {path}: it holds no {part!r}, so --json of another command wrote it")
    return found
