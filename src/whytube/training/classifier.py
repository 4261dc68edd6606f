"""Fit a classifier to the clips of a source."""

from __future__ import annotations

import contextlib
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from whytube.checks import check_int, fail
from whytube.data.source import Kept
from whytube.errors import ModelError
from whytube.models import save_classifier
from whytube.training.augment import (
    crop_randomly,
    erase_randomly,
    flip_randomly,
    hasten_randomly,
    light_randomly,
    sided_words,
)
from whytube.training.evaluate import evaluate_classifier
from whytube.training.history import History, Record
from whytube.training.state import FILE, Saving, describe, load_state, save_state

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from whytube.classifiers.base import VideoClassifier
    from whytube.data.source import Source
    from whytube.training.recipe import Recipe


def fit_classifier(
    model: VideoClassifier,
    source: Source,
    recipe: Recipe,
    *,
    device: torch.device | str = "cpu",
    out_dir: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: Callable[[Record], None] | None = None,
    validate: int = 0,
    report_every: int = 20,
    save_every: int = 10,
    provenance: Mapping[str, Any] | None = None,
    pretrained: str | None = None,
) -> History:
    """Train `model` in place on the "train" split and leave it in evaluation mode.

    Every batch, tube and flip is decided by the recipe's seed and the step alone, so a run that was interrupted and
    resumed ends where an uninterrupted one does.

    out_dir: receives `run.safetensors` (to resume from) on the way, `classifier.safetensors` and `history.json` at the
        end. resume: go on from `run.safetensors` if it is there.
    progress: called with every Record, e.g. to print it or to hand it to a writer of curves.
    validate: how many clips of "val" every Record is also judged on.
    report_every: steps between Records. save_every: Records between saved states, or half a minute if that is less.
    pretrained: what tells the weights that `model` begins with from others; a run goes on only with the same.
    """
    run = _Run(model, source, recipe, torch.device(device))
    folder = None if out_dir is None else Path(out_dir)
    check_int(report_every, "report_every", 1)
    check_int(save_every, "save_every", 1)
    description = describe(model, source, recipe) | {"pretrained": pretrained}
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        if resume and (folder / FILE).exists():
            run.step, run.history = load_state(folder, model, run.optimizer, run=description)
    saving = Saving(save_every)
    while run.step < recipe.steps:
        record = run.advance(min(report_every, recipe.steps - run.step), validate=validate)
        if folder is not None and saving.due(len(run.history.records), end=run.step == recipe.steps):
            save_state(folder, model, run.optimizer, step=run.step, run=description, history=run.history)
        if progress is not None:
            progress(record)
    _lay_out(model, torch.contiguous_format).eval()
    if folder is not None:
        metrics = {"last record": asdict(run.history.records[-1])}
        path = folder / "classifier.safetensors"
        save_classifier(path, model, provenance=provenance or {}, recipe=asdict(recipe), metrics=metrics)
        run.history.save(folder / "history.json")
    return run.history


class _Run:
    """A training run between two steps."""

    def __init__(self, model: VideoClassifier, source: Source, recipe: Recipe, device: torch.device) -> None:
        if model.classes != tuple(source.classes):
            raise fail("model", f"for the classes of the source, {source.classes[:3]}...", f"{model.classes[:3]}...")
        self.recipe, self.device, self.source = recipe, device, source
        self.model = _lay_out(model.to(device), torch.channels_last_3d)
        if recipe.freeze:
            model.freeze_below(recipe.freeze)
        self.optimizer = recipe.build_optimizer(_groups(model, recipe.head_lr))
        self.step, self.history = 0, History()
        self.train: Source = source
        if recipe.distinct is not None:
            available = source.count("train")
            count = recipe.distinct if available is None else min(recipe.distinct, available)
            self.train = Kept(source, "train", count, device=device)
        self.count = self.train.count("train")
        if self.count == 0:
            raise fail("source", "one with clips to train on", "none in its split 'train'")
        self.flip = recipe.flip
        sided = sided_words((*source.classes, *source.attribute_names))
        if sided and recipe.flip:
            self.flip = 0.0
            self.history.notes.append(f"no clip was mirrored: {', '.join(map(repr, sided))} would become wrong")

    def advance(self, steps: int, *, validate: int) -> Record:
        """Take some steps and add a Record of them to the history."""
        before, lr = time.perf_counter(), self.recipe.lr_at(self.step)
        self.model.train()
        results = torch.stack([self._train_step() for _ in range(steps)])
        loss, hits = results.double().mean(0).tolist()
        if not np.isfinite(loss):
            raise ModelError(f"training diverged before step {self.step}: the loss is {loss}. Lower the learning rate")
        seconds = time.perf_counter() - before
        seconds += self.history.records[-1].seconds if self.history.records else 0.0
        accuracy = None
        if validate:
            accuracy = evaluate_classifier(self.model, self.source, "val", validate).accuracy
        shown = self.step * self.recipe.batch_size
        self.history.records.append(Record(self.step, shown, lr, loss, hits, round(seconds, 2), accuracy))
        return self.history.records[-1]

    def _train_step(self) -> torch.Tensor:
        """Take one step; return loss and share of hits, (2,), still on the device."""
        recipe = self.recipe
        for group in self.optimizer.param_groups:
            group["lr"] = recipe.lr_at(self.step) * group["factor"]
        clips, labels = self._batch()
        share, other = 1.0, labels
        if recipe.mix:
            rng = np.random.default_rng([recipe.seed, self.step, 2])
            share, order = float(rng.beta(recipe.mix, recipe.mix)), torch.from_numpy(rng.permutation(len(clips)))
            clips, other = share * clips + (1 - share) * clips[order], labels[order]
        mixed = recipe.precision == "bfloat16" and self.device.type == "cuda"
        with torch.autocast("cuda", torch.bfloat16) if mixed else contextlib.nullcontext():
            logits = self.model(clips.contiguous(memory_format=torch.channels_last_3d))
        loss = share * cross_entropy(logits.float(), labels, label_smoothing=recipe.label_smoothing)
        if share < 1:
            loss = loss + (1 - share) * cross_entropy(logits.float(), other, label_smoothing=recipe.label_smoothing)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.step += 1
        return torch.stack([loss.detach(), (logits.detach().argmax(1) == labels).float().mean()])

    def _batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the clips (B, 3, T, H, W) and labels (B,) of this step, changed at random as the recipe says."""
        recipe = self.recipe
        indices = batch_indices(self.step, recipe.batch_size, count=self.count, seed=recipe.seed)
        batch = self.train.batch("train", indices, self.device)
        rng = np.random.default_rng([recipe.seed, self.step, 1])
        clips = flip_randomly(batch.clips, probability=self.flip, rng=rng) if self.flip else batch.clips
        clips = hasten_randomly(clips, span=recipe.span, rng=rng) if recipe.span < 1 else clips
        clips = crop_randomly(clips, area=recipe.crop, rng=rng) if recipe.crop < 1 else clips
        clips = light_randomly(clips, strength=recipe.light, rng=rng) if recipe.light else clips
        clips = erase_randomly(clips, probability=recipe.erase_at(self.step), area=recipe.erase_area, rng=rng)
        return clips, batch.labels


def batch_indices(step: int, batch_size: int, *, count: int | None, seed: int) -> Sequence[int]:
    """Return the indices of one step: in order where there is no end of clips, else in newly shuffled rounds."""
    places = range(step * batch_size, (step + 1) * batch_size)
    if count is None:
        return places
    orders = {turn: np.random.default_rng([seed, turn, 0]).permutation(count) for turn in {p // count for p in places}}
    return [int(orders[place // count][place % count]) for place in places]


def _groups(model: VideoClassifier, head_factor: float) -> list[dict[str, Any]]:
    """Parameters that are trained: the body, and the head with its own factor of the learning rate."""
    sides: tuple[list[torch.nn.Parameter], list[torch.nn.Parameter]] = ([], [])
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            sides[name.startswith("head.")].append(parameter)
    return [{"params": side, "factor": f} for side, f in zip(sides, (1.0, head_factor), strict=True) if side]


def _lay_out(model: VideoClassifier, layout: torch.memory_format) -> VideoClassifier:
    """Change how the weights lie in memory; with channels last, 3-d convolutions are faster on CPU and GPU."""
    return model.to(memory_format=layout)  # type: ignore[call-overload,no-any-return]
