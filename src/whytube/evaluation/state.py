"""What an evaluation has found so far, in a file to go on from.

The file is replaced as a whole, so it is valid at any moment; what was found since is found again. It goes on only with
the same methods, weights, data and settings, and then ends with exactly the results of an uninterrupted run.

Several processes may judge a share of the clips each, into a file of their own. A run that goes on takes all shares
that lie there, judges what they left, and puts everything in the order of the clips.
"""

from __future__ import annotations

import glob
import hashlib
import re
import time
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

import torch

from whytube.checks import check_int, fail
from whytube.errors import ModelError
from whytube.given import model_hash
from whytube.models.files import read_as
from whytube.models.stored import load_tensors, read_header, save_tensors

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

KIND = "evaluation"
STATE = ".part.safetensors"
"""Ending of the files."""
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
class Share:
    """Every `of`-th batch of an evaluation, from the `number`-th on, which counts from 1."""

    number: int
    of: int

    def __post_init__(self) -> None:
        check_int(self.of, "share", 1)
        check_int(self.number, "share", 1, self.of)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def of_batches(self, total: int, batch_size: int) -> list[int]:
        """Return its clips, of so many that are judged `batch_size` at a time."""
        batches = [range(start, min(start + batch_size, total)) for start in range(0, total, batch_size)]
        if self.of > len(batches):
            what = f"one of at most {len(batches)}, as there are {total} clips, {batch_size} at a time"
            raise fail("share", what, self)
        return [clip for batch in batches[self.number - 1 :: self.of] for clip in batch]

    def path(self, whole: Path) -> Path:
        """Name the file of this share after that of the whole evaluation's state."""
        return whole.with_name(f"{whole.name.removesuffix(STATE)}.share-{self.number}-of-{self.of}{STATE}")


def missing_shares(files: Sequence[Path]) -> list[Share]:
    """Say which shares have no file, by the names of those that do."""
    named = (re.search(r"\.share-(\d+)-of-(\d+)$", path.name.removesuffix(STATE)) for path in files)
    known = {(int(found[1]), int(found[2])) for found in named if found}
    totals = {of for _, of in known}
    return [Share(i, of) for of in sorted(totals) for i in range(1, of + 1) if (i, of) not in known]


def shares_of(whole: Path) -> list[Path]:
    """Find the files of shares that lie beside the whole evaluation's state."""
    return sorted(whole.parent.glob(f"{glob.escape(whole.name.removesuffix(STATE))}.share-*-of-*{STATE}"))


@dataclass(frozen=True)
class _Stored:
    """What the file says beside its tensors; run: see `State.same`. records: by method, of each clip.

    order, origin: see `State`; files of before have no order, and hold the first clips.
    """

    run: dict[str, Any]
    done: int
    records: list[list[dict[str, Any]]]
    order: list[int] = field(default_factory=list)
    origin: dict[str, Any] = field(default_factory=dict)


@dataclass
class State:
    """All that is found so far.

    Attributes:
        tallies: by method.
        clips: by batch, (B, 3) float64: whether the classifier is right, whether boxes of attributes are known, and
            the clip's share of the runs that judging took.
        done: how many clips.
        same: what must be equal to go on, as JSON gives it back.
        order: which clips are judged, one after the other.
        path: where it is kept; None for nowhere.
        origin: commit, device and versions, for who reads the file of an evaluation that ended early.
    """

    tallies: dict[str, Tally]
    same: Mapping[str, Any]
    order: Sequence[int]
    path: Path | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)
    clips: list[torch.Tensor] = field(default_factory=list)
    done: int = 0
    saved: float | None = None

    @property
    def judging_clips(self) -> int:
        """How many clips the classifier was run on to judge the answers."""
        return round(sum(float(batch[:, 2].sum()) for batch in self.clips))

    def add(self, right: torch.Tensor, known: torch.Tensor, judging: float) -> None:
        """End a batch, whose figures are in the tallies: what holds of its clips, two times (B,) bool.

        judging: clips that the classifier was run on to judge the batch.
        """
        share = torch.full_like(right, judging / len(right), dtype=torch.float64)
        self.clips.append(torch.stack([right.double(), known.double(), share], dim=1).cpu())
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
        header = {"run": dict(self.same), "done": self.done, "records": records, "order": list(self.order)}
        save_tensors(self.path, bits, header | {"origin": dict(self.origin)}, kind=KIND)
        self.saved = time.monotonic()

    def load(self) -> None:
        """Go back to what the file holds, where there is one; it must be of the same evaluation."""
        if self.path is None or not self.path.exists():
            return
        stored = self._read(self.path)
        if stored.order and {*stored.order} != {*self.order}:
            raise ModelError(f"cannot resume {self.path}: it is of other clips. Remove it to begin anew")
        self.done, self.order = stored.done, stored.order or self.order

    def adopt(self, paths: Sequence[Path]) -> None:
        """Take what shares of the same evaluation found; what they left is still to be judged.

        A share that has judged nothing yet has no file.
        """
        judged: list[int] = []
        for path in paths:
            stored = self._read(path, traced(self.origin))
            judged += stored.order[: stored.done]
        if len(set(judged)) < len(judged) or not {*judged} <= {*self.order}:
            raise ModelError(
                f"{paths[0].parent} holds shares of which some have the same clips: remove those of another run"
            )
        left = sorted({*self.order} - {*judged})
        self.done, self.order = len(judged), judged + left

    def has(self, path: Path) -> bool:
        """Whether all that a share judged is here, too."""
        header = read_header(path, kind=KIND)
        return {*header["order"][: header["done"]]} <= {*self.order[: self.done]}

    def in_order(self) -> None:
        """Once all is judged, put what was found in the order of the clips."""
        rows = torch.tensor(self.order).argsort()
        for tally in self.tallies.values():
            tally.figures = [{name: values[rows] for name, values in tally.whole().items()}]
            tally.records = [tally.records[row] for row in rows.tolist()] if tally.records else []
        self.clips, self.order = [torch.cat(self.clips)[rows]], sorted(self.order)

    def _read(self, path: Path, also_same: Mapping[str, Any] | None = None) -> _Stored:
        """Add what a file holds; it must be of the same evaluation, or a share of it, which has more that must be."""
        tensors, header = load_tensors(path, kind=KIND)
        stored = read_as(_Stored, header, path, DAMAGED)
        for name, value in (dict(self.same) | dict(also_same or {})).items():
            if stored.run.get(name) != value:
                differs = f"its {name} is {short(stored.run.get(name))}, expected {short(value)}"
                text = f"cannot resume {path}: {differs}. Use the same settings, or remove it to begin anew"
                raise ModelError(text)
        try:
            self._fill(tensors, stored)
        except (KeyError, IndexError, ValueError, RuntimeError) as error:
            raise ModelError(f"cannot use {path}: {DAMAGED} ({error})") from error
        return stored

    def _fill(self, tensors: Mapping[str, torch.Tensor], stored: _Stored) -> None:
        parts: list[dict[str, torch.Tensor]] = [{} for _ in self.tallies]
        figures = {name: bits.view(torch.float64) for name, bits in tensors.items()}
        clips, done = figures.pop("clips"), stored.done
        for name, values in figures.items():
            place, _, path = name.partition(".")
            parts[int(place)][path] = values
        shape = (done, self.same["negatives"], self.same["k"])
        wrong = any(values.shape != shape for values in figures.values()) or clips.shape != (done, 3)
        if wrong or not 1 <= done <= self.same["clips"]:
            raise ValueError("not as many figures as clips")
        if len({frozenset(part) for part in parts}) != 1 or "answered" not in parts[0]:
            raise ValueError("figures are missing")
        if stored.order and (len(stored.order) < done or len({*stored.order}) < len(stored.order)):
            raise ValueError("not as many clips as said")
        for tally, part, kept in zip(self.tallies.values(), parts, stored.records, strict=True):
            tally.figures.append(part)
            tally.records += kept
        self.clips.append(clips)


def traced(origin: Mapping[str, Any]) -> dict[str, Any]:
    """Return what stands beside the numbers of all shares, so must be the same: commit and kind of device."""
    return {"commit": origin["commit"], "device's name": origin["device"]}


def state_path(out: str | os.PathLike[str]) -> Path:
    """Name the state of an evaluation after the file that its results go to."""
    target = Path(out)
    return target.with_name(f"{target.name}{STATE}")


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
