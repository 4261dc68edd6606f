"""The loop under both trainings: batches, steps, the curve, and a saved state to resume from.

A training is a subclass of `Loop` that gives the loss of a batch: see classifier.py and explainer.py.
"""

from __future__ import annotations

import contextlib
import math
import time
from abc import ABC, abstractmethod
from dataclasses import MISSING, asdict, dataclass, fields
from functools import lru_cache
from reprlib import repr as short
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from whytube.checks import check_int, fail
from whytube.data.ahead import Ahead
from whytube.data.source import Kept, fingerprint
from whytube.errors import ModelError
from whytube.files import locked_folder
from whytube.models.files import fill, read_as
from whytube.models.stored import load_tensors, save_tensors
from whytube.training.history import History, Record

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from whytube.classifiers.base import VideoClassifier
    from whytube.data.source import ClipBatch, Source
    from whytube.training.devices import Ranks
    from whytube.training.recipe import Recipe

KIND = "training run"
DAMAGED = "its saved state is damaged. Begin anew with `overwrite=True`, or in another folder"
SAVE_SECONDS = 30.0
"""A run is saved at the next Record when the last time is this long ago."""
AHEAD = 2
"""Batches that are read ahead, and so are held beside the one in use."""


@dataclass(frozen=True)
class State:
    """What the file of a saved run says beside its tensors; run: see `Loop.same`."""

    step: int
    run: dict[str, Any]
    history: History

    def __post_init__(self) -> None:
        check_int(self.step, "step", 1)
        if not self.history.records or self.history.records[-1].step != self.step:
            raise fail("history", f"up to step {self.step}", f"{len(self.history.records)} records that end elsewhere")


class Loop(ABC):
    """A training run between two steps. A subclass sets `module`, `called` and `optimizer`, and gives the loss.

    The recipe's seed and the step alone decide a batch, so a resumed run ends where an uninterrupted one does. Several
    processes take a share of each batch: whatever is random is drawn for the whole batch, by all of them alike.
    file: name of the saved state in the run's folder. module: what is trained; its tensors are the state's `model.*`.
    called: the module that a loss calls, which holds what is trained; unused: whether it trains parts of that alone.
    optimizer: a group's "factor", where it has one, multiplies its learning rate.
    same: what must be equal when a saved run goes on, as JSON gives it back.
    """

    file: ClassVar[str]
    module: torch.nn.Module
    called: torch.nn.Module
    optimizer: torch.optim.Optimizer
    unused = False

    def __init__(
        self,
        classifier: VideoClassifier,
        source: Source,
        recipe: Recipe,
        device: torch.device,
        *,
        argument: str,
        ranks: Ranks,
    ) -> None:
        """Check that classifier and source fit; `argument` is what the caller calls the classifier."""
        if classifier.classes != tuple(source.classes):
            expected = f"for the classes of the source, {source.classes[:3]}..."
            raise fail(argument, expected, f"{classifier.classes[:3]}...")
        if source.count("train") == 0:
            raise fail("source", "one with clips to train on", "none in its split 'train'")
        self.classifier, self.source, self.recipe, self.device = classifier.to(device), source, recipe, device
        self.ranks, self.share = ranks, ranks.share(recipe.batch_size)
        self.shown: Source = source
        self.batches: Source = source
        self.ahead: Ahead | None = None
        self.step, self.history = 0, History()
        self.same = {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(recipe).items()}
        self.same |= {"architecture": classifier.architecture, "classes": list(classifier.classes)}
        self.same |= {"attributes": list(source.attribute_names)}
        self.same |= {f"model's {name}": value for name, value in classifier.settings.items()}
        self.same |= {"data's fingerprint": fingerprint(source)}

    @abstractmethod
    def loss(self, batch: ClipBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss of this step's clips, and the share that the classifier gets right; two scalars.

        Both are means over this process's clips: weighted by its share, those of all processes add up to the batch's.
        """

    def looked_at(self, clips: Source) -> Source:
        """Return what batches are taken from, given the clips to show."""
        return clips

    def begin(self) -> None:  # noqa: B027 (most trainings have nothing to prepare)
        """Prepare the module before the first step of a new run."""

    def validate(self) -> float | None:
        """Return the accuracy on "val", where that was asked for."""
        return None

    def finish(self) -> None:  # noqa: B027
        """Complete the module after the last step; called again when a run that was done is resumed."""

    def run(
        self,
        folder: Path | None,
        *,
        resume: bool,
        progress: Callable[[Record], None] | None,
        on_step: Callable[[int, int], None] | None,
        report_every: int,
        save_every: int,
    ) -> History:
        """Take all steps that are left. Arguments as for `fit_classifier`; nothing is saved without a folder."""
        check_int(report_every, "report_every", 1)
        check_int(save_every, "save_every", 1)
        if not self.ranks.first:
            folder = progress = on_step = None
        self.on_step = on_step
        self._go_back(folder / self.file if folder is not None and resume else None)
        if self.recipe.distinct is not None:
            self.shown = self._kept(self.recipe.distinct)
        self.batches = self.looked_at(self.shown) if self.step < self.recipe.steps else self.shown
        with contextlib.ExitStack() as stack:
            if self.batches is self.shown and not isinstance(self.shown, Kept):
                self.ahead = stack.enter_context(Ahead(self.shown))
            if self.step == 0:
                self.begin()
            self.called = self.ranks.parallel(self.called, unused=self.unused)
            stack.enter_context(torch.random.fork_rng([self.device] if self.device.type == "cuda" else []))
            self._take_steps(folder, progress=progress, report_every=report_every, save_every=save_every)
            self.batches = self.shown  # what was made for the steps is not needed any more
            self.finish()
        return self.history

    def _kept(self, distinct: int) -> Kept:
        """Keep the clips that are shown on the device: all of them for each process, which reads a share of them."""
        available = self.source.count("train")
        count = distinct if available is None else min(distinct, available)
        given = (self.source, "train", count)
        if not self.ranks.talks:
            return Kept(*given, device=self.device)
        share = self.ranks.share(count)
        return Kept(*given, device=self.device, own=share.rows, whole=lambda part: self.ranks.whole(part, share))

    def _take_steps(
        self, folder: Path | None, *, progress: Callable[[Record], None] | None, report_every: int, save_every: int
    ) -> None:
        saved, steps = time.monotonic(), self.recipe.steps
        while self.step < steps:
            record = self._advance(min(report_every, steps - self.step))
            late = time.monotonic() - saved >= SAVE_SECONDS
            if folder is not None and (late or self.step == steps or len(self.history.records) % save_every == 0):
                self._save(folder / self.file)
                saved = time.monotonic()
            if progress is not None:
                progress(record)

    def batch(self, step: int, stop: int) -> ClipBatch:
        """Return this process's clips of a step; those of the next steps, before `stop`, are read meanwhile."""
        if self.ahead is None:
            return self.batches.batch("train", self._indices(step), self.device)
        for coming in range(step, min(step + 1 + AHEAD, stop)):
            self.ahead.expect("train", self._indices(coming), self.device)
        return self.ahead.batch("train", self._indices(step), self.device)

    def _indices(self, step: int) -> Sequence[int]:
        count, recipe = self.shown.count("train"), self.recipe
        return batch_indices(step, recipe.batch_size, count=count, seed=recipe.seed)[self.share.rows]

    def _advance(self, steps: int) -> Record:
        """Take some steps and add a Record of them to the history."""
        before, lr = time.perf_counter(), self.recipe.lr_at(self.step)
        self.module.train()
        waited = self._waited
        parts = torch.stack([self._take_step() for _ in range(steps)]).double().mean(0)
        loss, hits = self.ranks.sum(parts).tolist()
        if not math.isfinite(loss):
            raise ModelError(f"training diverged before step {self.step}: the loss is {loss}. Lower the learning rate")
        seconds = time.perf_counter() - before
        waiting = round((self._waited - waited) / seconds, 3)
        seconds += self.history.records[-1].seconds if self.history.records else 0.0
        shown = self.step * self.recipe.batch_size
        record = Record(self.step, shown, lr, loss, hits, round(seconds, 2), self.validate(), waiting)
        self.history.records.append(record)
        return record

    @property
    def _waited(self) -> float:
        return 0.0 if self.ahead is None else self.ahead.waited

    def _take_step(self) -> torch.Tensor:
        """Take one step; return loss and share of hits, (2,), still on the device."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.lr_at(self.step) * group.get("factor", 1.0)
        torch.manual_seed((self.recipe.seed * 1_000_003 + self.step) % 2**63)  # of what is random in the network
        loss, hits = self.loss(self.batch(self.step, self.recipe.steps))
        if self.ranks.talks:
            loss, hits = loss * self.share.weight, hits * self.share.weight
        self.optimizer.zero_grad(set_to_none=True)
        (loss * self.ranks.size if self.ranks.talks else loss).backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.step += 1
        if self.on_step is not None:
            self.on_step(self.step, self.recipe.steps)
        return torch.stack([loss.detach(), hits])

    def _save(self, path: Path) -> None:
        """Write weights, optimizer state and history, to resume from."""
        tensors = {f"model.{name}": tensor for name, tensor in self.module.state_dict().items()}
        for place, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{place}.{name}": value for name, value in state.items() if value is not None}
        header = {"step": self.step, "run": self.same, "history": self.history.to_dict()}
        save_tensors(path, tensors, header, kind=KIND)

    def _go_back(self, path: Path | None) -> None:
        """Go back to where a run stopped, where it was saved: the first process reads it, and gives it to all."""
        saved = None
        if path is not None and path.exists():
            tensors, header = load_tensors(path, kind=KIND)
            state = read_as(State, header, path, DAMAGED)
            self._check_same(state, path)
            saved = path, tensors, state
        saved = self.ranks.given(saved)
        if saved is not None:
            self._load(*saved)

    def _check_same(self, state: State, path: Path) -> None:
        # A run that was saved before a field of recipes came to be was one with the field's default.
        before = {
            field.name: field.default for field in fields(self.recipe) if field.default is not MISSING
        } | state.run
        for name, value in self.same.items():
            if before.get(name) != value:
                raise ModelError(
                    f"cannot resume {path}: its {name} is {short(before.get(name))}, expected {short(value)}. "
                    "Use the same settings, or another folder"
                )

    def _load(self, path: Path, tensors: dict[str, torch.Tensor], state: State) -> None:
        weights = {name[6:]: value for name, value in tensors.items() if name.startswith("model.")}
        fill(self.module, weights, path, DAMAGED)
        parameters = [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
        kept = {f"optimizer.{place}.": parameter for place, parameter in enumerate(parameters)}
        for name, value in tensors.items():
            start = next((start for start in kept if name.startswith(start)), None)
            if start is None:
                continue
            parameter, key = kept[start], name[len(start) :]
            # On the device and in the layout of its parameter; AdamW's step count has a shape of its own.
            if value.shape not in (parameter.shape, ()) or not value.is_floating_point():
                raise ModelError(f"cannot use {path}: {DAMAGED}. {name!r} is not as its parameter")
            like_parameter = value.shape == parameter.shape and value.ndim > 0
            value = torch.empty_like(parameter).copy_(value) if like_parameter else value
            self.optimizer.state[parameter][key] = value
        adam = isinstance(self.optimizer, torch.optim.AdamW)
        expected = {"step", "exp_avg", "exp_avg_sq"} if adam else {"momentum_buffer"}
        if any(state and state.keys() != expected for state in self.optimizer.state.values()):
            raise ModelError(f"cannot use {path}: {DAMAGED}. Tensors of the optimizer are missing")
        self.step, self.history = state.step, state.history


@contextlib.contextmanager
def claimed(out_dir: str | os.PathLike[str] | None) -> Iterator[Path | None]:
    """Make the folder of a run and keep other trainings out of it for the length of the block."""
    if out_dir is None:
        yield None
        return
    with locked_folder(out_dir, who="another training", error=ModelError) as folder:
        yield folder


def batch_indices(step: int, batch_size: int, *, count: int | None, seed: int) -> Sequence[int]:
    """Return the indices of one step: in order where there is no end of clips, else in newly shuffled rounds."""
    places = range(step * batch_size, (step + 1) * batch_size)
    if count is None:
        return places
    return [int(_order(count, place // count, seed)[place % count]) for place in places]


@lru_cache(maxsize=4)  # the round of a step and, where it ends, the next: many steps ask for the same
def _order(count: int, turn: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng([seed, turn, 0]).permutation(count)
