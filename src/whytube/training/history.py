"""How a training run went: its curve as JSON, and for TensorBoard."""

from __future__ import annotations

import contextlib
import json
import threading
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from whytube.documents import build
from whytube.errors import ArgumentError, ModelError
from whytube.files import write_whole

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator
    from pathlib import Path

SCALARS = ("loss", "accuracy", "lr", "val_accuracy", "waiting")


@dataclass(frozen=True)
class Record:
    """One point of the curve; loss and accuracy are of the clips shown since the last one, as they were shown.

    val_accuracy: on clips of "val", unchanged, where that was asked for. seconds: of training, over all sittings.
    waiting: share of the time since the last one in which the training waited for clips to be read.
    """

    step: int
    clips: int
    lr: float
    loss: float
    accuracy: float
    seconds: float
    val_accuracy: float | None = None
    waiting: float | None = None


@dataclass
class History:
    """The curve, and notes on what was done otherwise than the recipe says."""

    records: list[Record] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> History:
        """Read what `to_dict` wrote."""
        return build(cls, data, "history")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a JSON file."""
        return write_whole(path, json.dumps(self.to_dict(), indent=1) + "\n", error=ModelError)


@contextlib.contextmanager
def tensorboard(folder: Path) -> Iterator[Callable[[Record], None]]:
    """Give a function that adds a Record to the curves in `folder`; look at them with `tensorboard --logdir`.

    A resumed run takes some steps again. What an earlier sitting wrote for them is no longer shown.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ArgumentError("curves need TensorBoard: pip install 'whytube[tensorboard]'") from error
    writer: SummaryWriter | None = None

    def add(record: Record) -> None:
        nonlocal writer
        with _written(folder):
            if writer is None:  # not before: a run that fails at its start leaves no folder
                writer = SummaryWriter(str(folder), purge_step=record.step)
            for name in SCALARS:
                value = getattr(record, name)
                if value is not None:
                    writer.add_scalar(name, value, record.step)

    def hook(problem: threading.ExceptHookArgs) -> None:
        if not isinstance(problem.exc_value, OSError):  # TensorBoard's thread fails, and then the next call does
            before(problem)

    before, threading.excepthook = threading.excepthook, hook
    try:
        yield add
    finally:
        try:
            if writer is not None:
                with _written(folder):
                    writer.close()
        finally:
            threading.excepthook = before


@contextlib.contextmanager
def _written(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ModelError(f"cannot write curves to {folder}: {error.strerror or error}") from error
