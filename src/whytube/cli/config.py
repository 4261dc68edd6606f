"""`--config FILE.toml` and `--set NAME=VALUE`: a run written down, and single changes to it."""

from __future__ import annotations

import json
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whytube.checks import suggestion, unknown_name
from whytube.errors import ArgumentError

if TYPE_CHECKING:
    from whytube.training.recipe import Recipe

TABLES = ("classifier", "explainer", "evaluate")
"""Of a file: the commands that read one."""


def _read(context: typer.Context, path: Path | None) -> Path | None:
    """Make the options in the file's table of this command its defaults; what is typed still goes first."""
    if path is None:
        return None
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArgumentError(f"cannot read {path}: {error}") from error
    command = context.info_name or ""
    if not isinstance(tables.get(command), dict):
        near = next((found for name in tables if name not in TABLES and (found := suggestion(name, TABLES))), "")
        raise ArgumentError(f"{path} has no table [{command}]; it has {', '.join(tables) or 'nothing'}{near}")
    known = {name[2:]: p.name for p in context.command.params for name in p.opts if name.startswith("--")}
    del known["config"]
    values: dict[str, Any] = {}
    for option, value in tables[command].items():
        if option not in known:
            raise unknown_name(f"option in [{command}] of {path.name}", option, known)
        values[known[option] or ""] = value
    context.default_map = {**(context.default_map or {}), **values}
    return path


def _add(context: typer.Context, typed: list[str] | None) -> list[str]:
    """Put what was typed after what the file says, so that it goes over single changes there.

    Where nothing was typed, `typed` is what the file says; saying it twice changes nothing.
    """
    return [*((context.default_map or {}).get("changes") or []), *(typed or [])]


Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="A TOML file whose table of this command's name holds options, e.g. [classifier] recipe = 'fine-tune'.",
        is_eager=True,
        callback=_read,
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Change a field of the recipe, or a setting of the network.", callback=_add
    ),
]


def read_changes(texts: list[str] | None, **options: Any) -> dict[str, Any]:
    """Read NAME=VALUE pairs and join the options that were given.

    A value is JSON, or JSON values with commas between them ("112,112"), or else the text itself.
    """
    changes = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ArgumentError(f"--set takes NAME=VALUE, got {text!r}")
        if name in options:
            raise ArgumentError(f"--set changes what has no option of its own: give `{name}` instead of {text}")
        changes[name] = _value(value)
    return changes | {name: value for name, value in options.items() if value is not None}


def _value(text: str) -> Any:
    for form in (text, f"[{text}]") if "," in text else (text,):
        try:
            return json.loads(form)
        except ValueError:
            continue
    return text


def changed(recipe: Recipe, changes: dict[str, Any]) -> tuple[Recipe, dict[str, Any]]:
    """Apply changes that are fields of the recipe; return it with the other changes."""
    known = {field.name for field in fields(recipe)}
    own: dict[str, Any] = {name: value for name, value in changes.items() if name in known}
    others = {name: value for name, value in changes.items() if name not in known}
    return replace(recipe, **own), others
