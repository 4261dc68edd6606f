"""Several processes of `whytube train`, started by torchrun: who speaks, and how they end."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from whytube.cli.options import errors, let_speak

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

    from whytube.training.devices import Ranks


def follow() -> None:
    """Let the first of several processes speak."""
    errors.quiet = int(os.environ.get("WORLD_SIZE", "1")) > 1 and os.environ.get("RANK", "0") != "0"


@contextmanager
def processes(device: str) -> Iterator[tuple[Ranks, torch.device]]:
    """Join the processes that torchrun started, of which the first one speaks, and whoever fails first."""
    from whytube.training.devices import FailedElsewhereError, together

    try:
        with together(device) as (ranks, where):
            errors.quiet = not ranks.first
            yield ranks, where
    except FailedElsewhereError as error:
        let_speak()
        raise typer.Exit(2) from error
    except KeyboardInterrupt as stop:
        stop.quiet = errors.quiet  # type: ignore[attr-defined]
        raise
    finally:
        errors.quiet = False


def number(ranks: Ranks) -> dict[str, int]:
    """Tell how many processes there were, where there were several."""
    return {"processes": ranks.size} if ranks.size > 1 else {}
