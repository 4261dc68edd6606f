"""How a training run went: its curve, its checks, and its settings, as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from whytube.errors import ModelError
from whytube.files import write_whole

if TYPE_CHECKING:
    import os
    from pathlib import Path


@dataclass(frozen=True)
class Record:
    """One point of the curve; loss and accuracy are of the clips shown since the last one, as they were shown.

    val_accuracy: on clips of "val" as they are, where that was asked for. seconds: of training, over all sittings.
    """

    step: int
    clips: int
    lr: float
    loss: float
    accuracy: float
    seconds: float
    val_accuracy: float | None = None


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
        return cls([Record(**record) for record in data["records"]], list(data["notes"]))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a JSON file."""
        return write_whole(path, json.dumps(self.to_dict(), indent=1) + "\n", error=ModelError)
