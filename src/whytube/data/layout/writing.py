"""The rows of a data folder's CSV files, as `read_dataset` takes them."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    import numpy as np
    import torch
    from numpy.typing import NDArray

BOX_COLUMNS = ("video", "attribute", "frame", "x1", "y1", "x2", "y2")


def write_rows(path: Path, rows: Iterable[Iterable[str | int]]) -> None:
    """Write a CSV file in UTF-8; the first row is its header."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def class_rows(classes: Sequence[str], attributes: Sequence[str], table: torch.Tensor) -> Iterator[list[str | int]]:
    """Yield attributes.csv: table (C, S) bool."""
    yield ["class", *attributes]
    for name, row in zip(classes, table.int().tolist(), strict=True):
        yield [name, *row]


def box_rows(
    video: str, attribute: str, frames: Sequence[int], boxes: NDArray[np.float64]
) -> Iterator[list[str | int]]:
    """Yield boxes (T, 4) at frames (T,) to 1/100 pixel; a box without area (its entity has left the frame) is none."""
    for frame, box in zip(frames, boxes.round(2).tolist(), strict=True):
        if box[2] > box[0] and box[3] > box[1]:
            yield [video, attribute, frame, *(format(value, "g") for value in box)]
