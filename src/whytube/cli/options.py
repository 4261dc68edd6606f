"""What several commands share: options, and where devices, data and progress bars come from."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn
from typer.core import TyperCommand

from whytube.errors import ArgumentError
from whytube.files import make_folder, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from whytube.data.source import Source
    from whytube.training.history import Record
    from whytube.training.plan import Plan

Device = Annotated[
    str, typer.Option("--device", metavar="DEVICE", help="cpu, cuda, cuda:1, ...; by default the GPU if there is one.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that are there already.")]
Model = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="Name of a shipped model, a folder or file of a trained one, or FILE.py:NAME of yours.",
    ),
]
Data = Annotated[str, typer.Option(help="A folder in the layout of docs/data.md, or `world`, the embedded world.")]
Seed = Annotated[int, typer.Option(help="Decides everything random.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON to stdout, and nothing else there.")]
MaxPixels = Annotated[
    int, typer.Option(metavar="N", help="Refuse videos whose frames have more pixels, as they take much memory.")
]

FIRST_SECONDS, LINE_SECONDS, LONG_SECONDS = 3.0, 30.0, 600.0
"""In a log: when the first estimate is said, how often a line comes at most, and after how long at least."""

SPEAKING_SECONDS = 5.0

console = Console()
errors = Console(stderr=True)


def let_speak() -> None:
    """Wait for another process of a training to say why it ends: then torchrun ends this one, too."""
    try:
        time.sleep(SPEAKING_SECONDS)
    except KeyboardInterrupt as stop:
        stop.quiet = True  # type: ignore[attr-defined]
        raise


class Plain(TyperCommand):
    """A command whose help calls an argument VIDEO, not VIDEO <list[Path]>."""

    def get_help(self, ctx: typer.Context) -> str:  # type: ignore[override]
        """Return the help, without the types of arguments that have a name for people."""
        return re.sub(r"(?<=[A-Z]) <\S+>", lambda found: " " * len(found[0]), super().get_help(ctx))


def open_source(data: str, *, size: tuple[int, int], frames: int, seed: int = 0, again: bool = False) -> Source:
    """Open the embedded world or a folder of videos as a source of clips.

    again: who asks will ask for the same clips many times and keeps nothing of them, so a quarter of the memory that is
    free may hold decoded ones.
    """
    if data == "world":
        from whytube.data.world import World

        if size[0] != size[1]:
            raise ArgumentError(f"the world's clips are square; the classifier wants {size[0]} x {size[1]}")
        if Path("world").exists():
            errors.print("--data world is the embedded world; the folder of that name is ./world", highlight=False)
        return World(size=size[0], frames=frames, seed=seed)
    from whytube.data.layout import read_dataset
    from whytube.data.layout.clips import FolderSource, training_workers

    room = FolderSource.cache_bytes
    if again:
        import torch

        from whytube.training.memory import free_bytes

        room = max(room, (free_bytes(torch.device("cpu")) or 0) // 4 // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    return read_dataset(data).source(frames=frames, size=size, workers=training_workers(), cache_bytes=room)


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


def last_part(path: str | Path | None) -> str | None:
    """Return the last part of a path: where things lie on this machine is nobody's business."""
    return None if path is None else Path(path).name


def print_plain(text: str, *, to: Console = console) -> None:
    """Print text as it is, without markup; bytes of file names that are not UTF-8 become question marks."""
    to.print(text.encode("utf-8", "replace").decode(), markup=False, highlight=False, soft_wrap=True)


def print_json(result: Any) -> None:
    """Print a result as `--json` promises."""
    typer.echo(json.dumps(result, indent=1, allow_nan=False))


def print_result(text: str, result: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a result in words, or as JSON."""
    if as_json:
        print_json(result)
    else:
        typer.echo(text)


class Lines:
    """Tells a log how far a long work is: an estimate after its first part, then a line now and then.

    A line comes at most every LINE_SECONDS, and only after a tenth of the work or LONG_SECONDS. Short work says none.
    The time is estimated without the first part, which may be slow by itself or be of an earlier sitting.
    unit: what is counted; lines then tell how many of them are done per second.
    """

    def __init__(self, title: str, *, unit: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self.title, self.unit, self.clock, self.note = title, unit, clock, ""
        self.began = self.told_at = clock()
        self.first: int | None = None
        self.told: int | None = None
        self.pace = ""

    def __call__(self, done: int, total: int) -> None:
        """Note that so much is done; print where a line is due."""
        passed, left = self.count(done, total)
        now = self.began + passed
        if self.told is None:
            due = passed >= FIRST_SECONDS and left >= LINE_SECONDS
        else:
            waited = now - self.told_at
            due = waited >= LINE_SECONDS and (10 * (done - self.told) >= total or waited >= LONG_SECONDS)
        if due:
            self.told, self.told_at = done, now
            note = f", {self.note}" if self.note else ""
            errors.print(f"{self.title}: {done} of {total}{note}, {self.pace}", highlight=False)

    def count(self, done: int, total: int) -> tuple[float, float]:
        """Note that so much is done; returns seconds since the first part, and those left."""
        now = self.clock()
        if self.first is None:
            self.first, self.began = done, now
            return 0.0, 0.0
        passed, own = now - self.began, done - self.first
        left = passed / max(own, 1) * (total - done)
        rate = f"{own / max(passed, 1e-9):.3g} {self.unit} per second, " if self.unit else ""
        self.pace = f"{rate}about {_span(left)} left"
        return passed, left


def _span(seconds: float) -> str:
    """Write a time as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class TrainingBar:
    """Shows a training: `step` after every step, `record` with every Record."""

    def __init__(self, step: Callable[[int, int], None], record: Callable[[Record], None]) -> None:
        self.step, self.record = step, record


@contextlib.contextmanager
def training_bar(plan: Plan, *, curves: Path | None = None) -> Iterator[TrainingBar]:
    """Say what a training will take and show how it goes: a bar on a terminal, lines in a log.

    curves: a folder for TensorBoard.
    """
    errors.print(f"training: {plan}", highlight=False, soft_wrap=True)
    if plan.warning is not None:
        errors.print(f"[bold yellow]warning:[/] {plan.warning}", highlight=False, soft_wrap=True)
    with contextlib.ExitStack() as stack:
        if errors.is_terminal:
            columns = (*Progress.get_default_columns(), TextColumn("{task.fields[course]}"))
            bar = stack.enter_context(Progress(*columns, console=errors))
            task = bar.add_task("training", total=plan.steps, course="")
        lines = Lines("training, step")
        write = None
        if curves is not None:
            from whytube.training.history import tensorboard

            write = stack.enter_context(tensorboard(curves))

        def step(done: int, total: int) -> None:
            if errors.is_terminal:
                bar.update(task, completed=done)
            else:
                lines(done, total)

        def record(record: Record) -> None:
            lines.note = _course(record)
            if errors.is_terminal:
                bar.update(task, completed=record.step, course=lines.note)
            elif record.step >= plan.steps:
                errors.print(f"training: done, {lines.note}, {_span(record.seconds)}", highlight=False)
            if write is not None:
                write(record)

        yield TrainingBar(step, record)


@contextlib.contextmanager
def resumable(state: Path | None) -> Iterator[None]:
    """Have work that is stopped say whether it can go on: where its state is saved, if it keeps one."""
    try:
        yield
    except KeyboardInterrupt as stop:
        if state is not None:
            kept = state.exists()
            stop.add_note("--resume goes on from the last saved state" if kept else "nothing was saved yet")
        raise


def _course(record: Record) -> str:
    return f"loss {record.loss:.3f}, right {100 * record.accuracy:.0f} %"


@contextlib.contextmanager
def progress_bar(title: str, *, unit: str = "") -> Iterator[Callable[[int, int], None]]:
    """Show a bar on a terminal, and a line now and then in a log; the block gets a function of (done, total).

    unit: what is counted; how many of them are done per second is then shown, too.
    """
    lines = Lines(title, unit=unit)
    if not errors.is_terminal:
        yield lines
        return
    columns = ("{task.description}", BarColumn(), TaskProgressColumn(), MofNCompleteColumn(), "{task.fields[pace]}")
    with Progress(*columns, console=errors, transient=True) as progress:
        task = progress.add_task(title, total=None, pace="")

        def show(done: int, total: int) -> None:
            lines.count(done, total)
            progress.update(task, completed=done, total=total, pace=lines.pace)

        yield show
