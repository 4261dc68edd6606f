"""The command line: parse, call the library, print; no maths.

options.py   what several commands share: devices, models, data, files
config.py    --config and --set
profile.py   where the time of a command went
ask.py       explain, report, demo
learn.py     train, evaluate
data.py      data export, data check
importing.py data import
models.py    models list, models info
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

import whytube
from whytube.cli import ask, data, learn, models
from whytube.errors import Code, WhytubeError

if TYPE_CHECKING:
    from collections.abc import Callable

# Functions that messages speak of, as commands.
COMMANDS = {"check_dataset": "`whytube data check`"}

app = typer.Typer(
    name="whytube",
    help="Why did the network say A, not B? A word and a moving region, for any PyTorch video classifier.\n\n"
    "No command replaces a file that is there, unless it is given --overwrite.",
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
app.add_typer(models.app, name="models")


def main() -> None:
    """Run the command line; a wrong input ends with its message and exit code 2."""
    # Large pages for torch's large tensors: fewer page faults on a CPU. Read when the first one is made.
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    try:
        app()
    except WhytubeError as error:
        Console(stderr=True).print("[bold red]error:[/] ", end="")
        message = error.say(_speller(sys.argv[1:]))
        Console(stderr=True).print(message, markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)


def _speller(words: list[str]) -> Callable[[Code], str]:
    """Write code in messages as the options of the command that `words` call; what it has no option for stays."""
    command: Any = typer.main.get_command(app)
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    spelled = {param.name: param.opts[0] for param in command.params if param.opts[0].startswith("-")}

    def spell(code: Code) -> str:
        name, _, value = code.partition("=")
        option = COMMANDS.get(name) or spelled.get(name)
        return f"`{code}`" if option is None else option if value in ("", "True") else f"{option} {value}"

    return spell


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        typer.echo(f"whytube {whytube.__version__}")
        raise typer.Exit
