"""What an evaluation has found so far, in a file to go on from.

The file is replaced as a whole, so it is valid at any moment; what was found since is found again. It goes on only with
the same methods, weights, data and settings, and then ends with exactly the results of an uninterrupted run.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

import torch

from whytube.errors import ModelError
from whytube.given import model_hash
from whytube.models.files import read_as
from whytube.models.stored import load_tensors, save_tensors

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

KIND = "evaluation"
DAMAGED = "it is damaged. Remove it to begin anew"
SAVE_SECONDS = 10.0
"""The state is written after the first batch, then when the last time is this long ago."""


@dataclass
class Tally:
    """What was found about one method so far: figures (B, N, k) of every batch, and records of clips."""

    figures: list[dict[str, torch.Tensor]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)

    def add(self, figures: Mapping[str, torch.Tensor], records: Sequence[dict[str, Any]]) -> None:
        """Add a batch."""
        self.figures.append({name: values.double().cpu() for name, values in figures.items()})
        self.records += records

    def whole(self) -> dict[str, torch.Tensor]:
        """Figures (M, N, k) over all clips so far."""
        return {name: torch.cat([part[name] for part in self.figures]) for name in self.figures[0]}


@dataclass(frozen=True)
class _Stored:
    """What the file says beside its tensors; run: see `State.same`. records: by method, of each clip."""

    run: dict[str, Any]
    done: int
    records: list[list[dict[str, Any]]]


@dataclass
class State:
    """All that is found so far.

    Attributes:
        tallies: by method.
        clips: by batch, (B, 2) float64: whether the classifier is right, and whether boxes of attributes are known.
        done: how many clips.
        same: what must be equal to go on, as JSON gives it back.
        path: where it is kept; None for nowhere.
    """

    tallies: dict[str, Tally]
    same: Mapping[str, Any]
    path: Path | None = None
    clips: list[torch.Tensor] = field(default_factory=list)
    done: int = 0
    saved: float | None = None

    def add(self, right: torch.Tensor, known: torch.Tensor) -> None:
        """End a batch, whose figures are in the tallies: what holds of its clips, two times (B,) bool."""
        self.clips.append(torch.stack([right, known], dim=1).double().cpu())
        self.done += len(right)
        self.save()

    def save(self, *, now: bool = False) -> None:
        """Write the file where it is due, or `now`."""
        if self.path is None or not self.done:
            return
        if not now and self.saved is not None and time.monotonic() - self.saved < SAVE_SECONDS:
            return
        tensors = {"clips": torch.cat(self.clips)[: self.done]}
        for place, tally in enumerate(self.tallies.values()):
            # An interruption inside a batch leaves some methods with it and some without.
            tensors |= {f"{place}.{name}": values[: self.done] for name, values in tally.whole().items()}
        # As whole numbers of the same bits: files of weights hold no NaN, and these do.
        bits = {name: values.view(torch.int64) for name, values in tensors.items()}
        records = [tally.records[: self.done] for tally in self.tallies.values()]
        save_tensors(self.path, bits, {"run": dict(self.same), "done": self.done, "records": records}, kind=KIND)
        self.saved = time.monotonic()

    def load(self) -> None:
        """Go back to what the file holds, where there is one; it must be of the same evaluation."""
        if self.path is None or not self.path.exists():
            return
        tensors, header = load_tensors(self.path, kind=KIND)
        stored = read_as(_Stored, header, self.path, DAMAGED)
        for name, value in self.same.items():
            if stored.run.get(name) != value:
                differs = f"its {name} is {short(stored.run.get(name))}, expected {short(value)}"
                text = f"cannot resume {self.path}: {differs}. Use the same settings, or remove it to begin anew"
                raise ModelError(text)
        try:
            self._fill(tensors, stored)
        except (KeyError, IndexError, ValueError, RuntimeError) as error:
            raise ModelError(f"cannot use {self.path}: {DAMAGED} ({error})") from error

    def _fill(self, tensors: Mapping[str, torch.Tensor], stored: _Stored) -> None:
        parts: list[dict[str, torch.Tensor]] = [{} for _ in self.tallies]
        figures = {name: bits.view(torch.float64) for name, bits in tensors.items()}
        clips, done = figures.pop("clips"), stored.done
        for name, values in figures.items():
            place, _, path = name.partition(".")
            parts[int(place)][path] = values
        shape = (done, self.same["negatives"], self.same["k"])
        wrong = any(values.shape != shape for values in figures.values()) or clips.shape != (done, 2)
        if wrong or not 1 <= done <= self.same["clips"]:
            raise ValueError("not as many figures as clips")
        if len({frozenset(part) for part in parts}) != 1 or "answered" not in parts[0]:
            raise ValueError("figures are missing")
        for tally, part, kept in zip(self.tallies.values(), parts, stored.records, strict=True):
            tally.figures, tally.records = [part], kept
        self.clips, self.done = [clips], done


def state_path(out: str | os.PathLike[str]) -> Path:
    """Name the state of an evaluation after the file that its results go to."""
    target = Path(out)
    return target.with_name(f"{target.name}.part.safetensors")


def method_fingerprint(method: object) -> str:
    """Hash a method's kind, settings and weights; 16 digits."""
    digest = hashlib.sha256()
    _feed(digest.update, method, set())
    return digest.hexdigest()[:16]


def _feed(update: Callable[[bytes], None], value: object, seen: set[int]) -> None:
    """Hand over all that decides what an object answers; the weights of a network once."""
    update(type(value).__qualname__.encode())
    if isinstance(value, str | int | float | bool | type(None)):
        update(repr(value).encode())
    elif isinstance(value, torch.Tensor):
        update(str((value.dtype, tuple(value.shape))).encode())
        update(value.detach().cpu().flatten().contiguous().view(torch.uint8).numpy().tobytes())
    elif isinstance(value, torch.nn.Module):
        if id(value) not in seen:  # controls ask the same classifier
            seen.add(id(value))
            update(model_hash(value).encode())
    elif isinstance(value, tuple | list):
        for part in value:
            _feed(update, part, seen)
    elif is_dataclass(value):
        for one in fields(value):
            _feed(update, getattr(value, one.name), seen)
    elif hasattr(value, "method"):  # one that remembers the answers of another
        _feed(update, value.method, seen)
