"""Curves for TensorBoard: the records of a run as scalars."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from whytube.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from whytube.training.history import Record

SCALARS = ("loss", "accuracy", "lr", "val_accuracy")


@contextmanager
def tensorboard(folder: Path) -> Iterator[Callable[[Record], None]]:
    """Give a function that adds a Record to the curves in `folder`; look at them with `tensorboard --logdir`.

    What an earlier sitting wrote from the first of these steps on is no longer shown: those steps are taken again.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ArgumentError(
            "curves need TensorBoard, which is not installed: pip install 'whytube[tensorboard]'"
        ) from error
    writer: SummaryWriter | None = None

    def add(record: Record) -> None:
        nonlocal writer
        if writer is None:  # not before: a run that fails at its start leaves no folder
            writer = SummaryWriter(str(folder), purge_step=record.step)
        for name in SCALARS:
            value = getattr(record, name)
            if value is not None:
                writer.add_scalar(name, value, record.step)

    try:
        yield add
    finally:
        if writer is not None:
            writer.close()
