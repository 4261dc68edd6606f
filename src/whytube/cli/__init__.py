"""The command line: parse, call the library, print; no maths.

options.py   what several commands share: options, devices, data, files, JSON
config.py    --config and --set
explain.py   explain
classify.py  classify
many.py      several videos: find them, go on after a broken one
report.py    report; demo, whose work is in demo.py
evaluate.py  evaluate
train.py     train classifier, train explainer
data.py      data export, data check, data import
models.py    models list, models info
bulk.py      bulk, query
serve.py     serve

Commands import torch and the library inside their functions, so that --help answers at once.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from typing import Annotated, Any, NoReturn

import typer

import whytube
from whytube.cli import bulk, classify, data, evaluate, explain, models, report, serve, train
from whytube.cli.options import Plain, errors, let_speak
from whytube.errors import WhytubeError, printable

app = typer.Typer(
    name="whytube",
    help="Why did the network say A, not B? A word and a moving region, for any PyTorch video classifier.\n\n"
    "No command replaces a file that is there, unless it is given --overwrite.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: the boxes of rich show a flag as if it took a value
)
app.command("explain", cls=Plain)(explain.explain)
app.command("classify", cls=Plain)(classify.classify)
app.command("demo")(report.demo)
app.command("report", cls=Plain)(report.report)
app.command("evaluate")(evaluate.evaluate)
app.command("bulk")(bulk.bulk)
app.command("query")(bulk.query)
app.command("serve")(serve.serve)
app.add_typer(train.train, name="train")
app.add_typer(data.app, name="data")
app.add_typer(models.app, name="models")


def main() -> None:
    """Run the command line; a wrong input, or an output that cannot be written, ends with a line and exit code 2."""
    for stream in (sys.stdout, sys.stderr):  # a file's name need not be UTF-8
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None and "--json" in sys.argv:
        _fail("cannot print the result: standard output is closed")
    try:
        app()
    except WhytubeError as error:
        _fail(with_options(str(error), sys.argv[1:]))
    except OSError as error:  # the system refuses: a full disk, missing rights, a name that is too long
        _fail(": ".join(printable(part) for part in (error.filename, error.strerror or error) if part is not None))


def _fail(message: str) -> NoReturn:
    if errors.quiet:  # one of several processes, and the first one has most likely the same to say
        let_speak()
        errors.quiet = False
    with contextlib.suppress(OSError):  # standard error may be full or closed, too
        errors.print("[bold red]error:[/] ", end="")
        errors.print(message, markup=False, highlight=False, soft_wrap=True)
    sys.exit(2)


def with_options(message: str, words: list[str]) -> str:
    """Write `name`, `name=True` and `name=value` as options of the command that `words` call; what is none stays."""
    command: Any = typer.main.get_command(app)
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    options = {param.name: param.opts[0] for param in command.params if param.opts[0].startswith("-")}

    def option(code: re.Match[str]) -> str:
        name, value = code.groups()
        if name not in options:
            return code[0]
        return options[name] if value in (None, "True") else f"{options[name]} {value}"

    return re.sub(r"`(\w+)(?:=([^`]*))?`", option, message)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        typer.echo(f"whytube {whytube.__version__}")
        raise typer.Exit
