"""A search to be done: the arguments of the operator `whytube::subpath`, in its order, and what follows from them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from whytube.checks import fail
from whytube.errors import ArgumentError


class Job(NamedTuple):
    """Find the best path of every item.

    Without `positive` each of the R volumes is an item of its own, N = R. With it, R runs over (B, classes, I) and the
    N items over (B, I, negatives): item (b, i, n) is the volume of class positive[b] minus that of class
    negative[b, n], subtracted on the way and never stored.

    Attributes:
        volumes: (R, K, T, H, W) scores.
        positive: (B,) class indices, or None.
        negative: (B, negatives) class indices; None for all classes but the positive one.
        lengths: (B,), or (R,) without `positive`: the time steps that count. None for all.
        classes: how many there are; 1 without `positive`.
        radius: cells a path may move per step.
        fixed: whether a path keeps its form.
        maximum: whether the largest sum is wanted, or the smallest.
    """

    volumes: torch.Tensor
    positive: torch.Tensor | None
    negative: torch.Tensor | None
    lengths: torch.Tensor | None
    classes: int
    radius: int
    fixed: bool
    maximum: bool

    @property
    def items(self) -> int:
        """How many paths are to be found, N."""
        return count_items(self.volumes.shape[0], self.positive, self.negative, self.classes)

    def rows(self) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
        """Which volumes each item adds and subtracts, and its length: (N,) or None, see `item_rows`."""
        plus, minus = item_rows(self.volumes.shape[0], self.positive, self.negative, self.classes)
        if self.positive is None or self.lengths is None:
            return plus, minus, self.lengths
        each = self.items // len(self.lengths)
        return plus, minus, self.lengths[:, None].expand(-1, each).flatten()

    def check_value(self, value: torch.Tensor) -> None:
        """Fail on NaN and on values beyond all bounds. Waits for the device, unless a CUDA graph is recorded."""
        if value.is_cuda and torch.cuda.is_current_stream_capturing():
            return
        value = value.detach().cpu()
        seen = value.numpy()
        if (seen < np.inf).all() if self.maximum else (seen > -np.inf).all():
            return
        self.check_indices()
        name = "`scores`" if self.positive is None else "`m`"  # as the layer's callers know it
        sign, other = ("+", "-") if self.maximum else ("-", "+")
        # A difference of infinities may be NaN, so that only a volume of its own has cells to forbid.
        forbid = f". A cell that no path may enter is {other}inf" if self.positive is None else ""
        nans = value.isnan().nonzero().flatten()
        if len(nans):
            raise ArgumentError(
                f"{name} must not contain NaN: {len(nans)} of {len(value)} items do, the first is item {int(nans[0])}"
                f"{forbid}. Look for a diverged model or 0/0 upstream",
            )
        first = int((~value.isfinite()).nonzero()[0])
        raise ArgumentError(f"{name} must not contain {sign}inf: item {first} does, or its path sum overflows{forbid}")

    def check_indices(self) -> None:
        """Fail on classes and lengths that do not exist."""
        for index, name, last in (
            (self.positive, "positive", self.classes - 1),
            (self.negative, "negative", self.classes - 1),
            (self.lengths, "lengths", self.volumes.shape[2]),
        ):
            if index is not None and bool(((index < 0) | (index > last)).any()):
                raise fail(name, f"from 0 to {last}", f"values from {int(index.min())} to {int(index.max())}")


def other_classes(positive: torch.Tensor, classes: int) -> torch.Tensor:
    """All classes but the positive one, in ascending order: (B,) -> (B, classes - 1)."""
    others = torch.arange(classes - 1, device=positive.device)
    return others + (others >= positive[:, None])


def count_items(rows: int, positive: torch.Tensor | None, negative: torch.Tensor | None, classes: int) -> int:
    """Count the items of `rows` volumes."""
    if positive is None:
        return rows
    return rows // classes * (classes - 1 if negative is None else negative.shape[1])


def item_rows(
    rows: int, positive: torch.Tensor | None, negative: torch.Tensor | None, classes: int
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Which of `rows` volumes each item adds and subtracts: (N,), -1 for an unknown class; None without `positive`."""
    if positive is None:
        return None, None
    if negative is None:
        negative = other_classes(positive, classes)
    batch, n = negative.shape
    inner = rows // max(1, batch * classes)
    within = torch.arange(inner, device=positive.device)[:, None]

    def row(index: torch.Tensor) -> torch.Tensor:  # (B, n) -> (B, inner, n)
        first = torch.arange(batch, device=index.device)[:, None] * classes + index
        legal = (index >= 0) & (index < classes)
        return torch.where(legal[:, None], first[:, None] * inner + within, -1)

    return row(positive[:, None]).expand(batch, inner, n).flatten(), row(negative).flatten()
