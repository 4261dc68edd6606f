"""What several commands share: options, and where devices, data and progress bars come from."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path  # noqa: TC003 - typer reads it at run time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, TextColumn

from whytube.errors import ArgumentError
from whytube.files import make_folder, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from whytube.data.source import Source
    from whytube.training.history import Record

Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, ...; by default the GPU if there is one.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that are there already.")]
Model = Annotated[
    str,
    typer.Option(
        "--model", "-m", help="Name of a shipped model, a folder or file of a trained one, or FILE.py:NAME of yours."
    ),
]
Data = Annotated[str, typer.Option(help="A folder in the layout of docs/data.md, or `world`, the embedded world.")]
Seed = Annotated[int, typer.Option(help="Decides everything random.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON to stdout, and nothing else there.")]
MaxPixels = Annotated[int, typer.Option(help="Refuse videos whose frames have more pixels, as they take much memory.")]

console = Console()
errors = Console(stderr=True)


def open_source(data: str, *, size: tuple[int, int], frames: int, seed: int = 0) -> Source:
    """Open the embedded world or a folder of videos as a source of clips."""
    if data == "world":
        from whytube.data.world import World

        if size[0] != size[1]:
            raise ArgumentError(f"the world's clips are square; the classifier wants {size[0]} x {size[1]}")
        return World(size=size[0], frames=frames, seed=seed)
    from whytube.data.layout import read_dataset

    return read_dataset(data).source(frames=frames, size=size)


def require_new(*paths: Path | None, overwrite: bool, also: str = "") -> None:
    """Refuse to replace what is there, before any work is done; `also` names another way out."""
    for path in paths:
        if path is not None and path.is_dir():
            raise ArgumentError(f"cannot write {path}: it is a folder. Choose another name")
        if path is not None and path.exists() and not overwrite:
            raise ArgumentError(f"{path} exists: choose another name{also}, or give --overwrite to replace it")


def write_json(result: Mapping[str, Any], path: Path | None) -> None:
    """Write the result of a command to a file, where that was asked for; its folder is made."""
    if path is None:
        return
    make_folder(path.parent, error=ArgumentError)
    write_whole(path, json.dumps(result, indent=1, allow_nan=False) + "\n", error=ArgumentError)


def print_json(result: Any) -> None:
    """Print a result as `--json` promises."""
    typer.echo(json.dumps(result, indent=1, allow_nan=False))


def print_result(text: str, result: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a result in words, or as JSON."""
    if as_json:
        print_json(result)
    else:
        typer.echo(text)


@contextlib.contextmanager
def training_bar(steps: int, *, curves: Path | None = None) -> Iterator[Callable[[Record], None]]:
    """Show how training goes: a bar on a terminal, lines in a log; `curves` is a folder for TensorBoard."""
    with contextlib.ExitStack() as stack:
        if errors.is_terminal:
            columns = (*Progress.get_default_columns(), TextColumn("{task.fields[course]}"))
            bar = stack.enter_context(Progress(*columns, console=errors))
            task = bar.add_task("training", total=steps, course="")
        write = None
        if curves is not None:
            from whytube.training.history import tensorboard

            write = stack.enter_context(tensorboard(curves))

        def show(record: Record) -> None:
            if errors.is_terminal:
                bar.update(task, completed=record.step, course=_course(record))
            else:
                errors.print(f"step {record.step}/{steps}  {_course(record)}", highlight=False)
            if write is not None:
                write(record)

        try:
            yield show
        except KeyboardInterrupt:
            errors.print("stopped; --resume goes on from the last saved state, if one was reached", highlight=False)
            raise


def _course(record: Record) -> str:
    return f"loss {record.loss:.3f}  right {100 * record.accuracy:.0f} %  {record.seconds:.0f} s"


@contextlib.contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on a terminal, nothing in a log; the block gets a function of (done, total)."""
    if not errors.is_terminal:
        yield lambda _done, _total: None
        return
    with Progress(console=errors, transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
