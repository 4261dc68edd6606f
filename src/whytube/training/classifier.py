"""Fit a classifier to the clips of a source, and count how often it is right."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from whytube.classifiers.base import evaluating
from whytube.data.source import clips_to_take
from whytube.models import save_classifier
from whytube.training.across import whole_batch
from whytube.training.augment import change_randomly, sided_names
from whytube.training.devices import ALONE
from whytube.training.loop import Loop, claimed
from whytube.training.norms import settle_norms
from whytube.training.recipe import Recipe, find_recipe

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from typing import Any

    from whytube.classifiers.base import VideoClassifier
    from whytube.data.source import ClipBatch, Source
    from whytube.training.devices import Ranks
    from whytube.training.history import History, Record

FILE = "run.safetensors"
HISTORY = "history.json"
SETTLING_CLIPS = 512
"""At most so many training clips are looked at again for the statistics of batch normalisation."""


def fit_classifier(
    model: VideoClassifier,
    source: Source,
    recipe: Recipe | str,
    *,
    device: torch.device | str = "cpu",
    out_dir: str | os.PathLike[str] | None = None,
    resume: bool = False,
    pretrained: str | None = None,
    progress: Callable[[Record], None] | None = None,
    on_step: Callable[[int, int], None] | None = None,
    validate: int = 0,
    report_every: int = 20,
    save_every: int = 10,
    provenance: Mapping[str, Any] | None = None,
    ranks: Ranks = ALONE,
) -> History:
    """Train `model` in place on the "train" split and leave it in evaluation mode.

    The recipe's seed and the step alone decide every batch, tube, flip and dropout, so a run that was interrupted and
    resumed ends where an uninterrupted one does. At the end the statistics of batch normalisation are estimated anew,
    on training clips without random changes: such clips are what the network will see.

    recipe: a Recipe, or the name of one in RECIPES.
    out_dir: receives FILE (to resume from) during training, `classifier.safetensors` and HISTORY at the end. One
        training at a time writes to a folder. resume: go on from FILE if it is there.
    pretrained: names the weights that `model` begins with; a run is resumed only with the same.
    progress: called with every Record, e.g. to print it or to hand it to a writer of curves.
    on_step: called with the steps taken and their number, after every step.
    validate: how many clips of "val" every Record is also judged on.
    report_every: steps between Records. save_every: Records between saved states, or half a minute if that is less.
    ranks: the processes that train together (`devices.together`), all with the same arguments: each takes a share of
        every batch. The first one alone writes, and calls `progress` and `on_step`.
    """
    recipe = find_recipe(recipe)
    ranks.check_batch(recipe.batch_size)
    loop = _ClassifierLoop(model, source, recipe, torch.device(device), validate, ranks)
    loop.same["pretrained"] = pretrained
    every = {"report_every": report_every, "save_every": save_every}
    with claimed(out_dir if ranks.first else None) as folder:
        history = loop.run(folder, resume=resume, progress=progress, on_step=on_step, **every)
        _lay_out(model, torch.contiguous_format).eval()
        if folder is not None:
            metrics = {"last record": asdict(history.records[-1])}
            path = folder / "classifier.safetensors"
            save_classifier(path, model, provenance=provenance or {}, recipe=asdict(recipe), metrics=metrics)
            history.save(folder / HISTORY)
    return history


class _ClassifierLoop(Loop):
    """Trains a classifier with cross-entropy on clips that are changed at random."""

    file = FILE

    def __init__(
        self,
        model: VideoClassifier,
        source: Source,
        recipe: Recipe,
        device: torch.device,
        validate: int,
        ranks: Ranks,
    ) -> None:
        super().__init__(model, source, recipe, device, argument="model", ranks=ranks)
        self.module = self.called = _lay_out(model, torch.channels_last_3d)
        self.judged = validate
        if recipe.freeze:
            model.freeze_below(recipe.freeze)
        self.optimizer = recipe.build_optimizer(_groups(model, recipe.head_lr))
        sided = sided_names((*source.classes, *source.attribute_names))
        self.flip = 0.0 if sided else recipe.flip
        if sided and recipe.flip:
            self.history.notes.append(f"no clip was mirrored: {', '.join(map(repr, sided))} would become wrong")

    def loss(self, batch: ClipBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the cross-entropy, of pairs of blended clips where the recipe mixes them."""
        recipe, labels = self.recipe, batch.labels
        clips = change_randomly(batch.clips, recipe, step=self.step, flip=self.flip, share=self.share)
        share, other = 1.0, labels
        if recipe.mix:
            rng = np.random.default_rng([recipe.seed, self.step, 2])
            share, order = float(rng.beta(recipe.mix, recipe.mix)), torch.from_numpy(rng.permutation(self.share.total))
            partners, other = (self.ranks.whole(each, self.share)[order[self.share.rows]] for each in (clips, labels))
            clips = share * clips + (1 - share) * partners
        mixed = recipe.precision == "bfloat16" and self.device.type == "cuda"
        precision = torch.autocast("cuda", torch.bfloat16) if mixed else contextlib.nullcontext()
        with precision, whole_batch(self.ranks, self.share):
            logits = self.called(clips.contiguous(memory_format=torch.channels_last_3d))
        loss = share * cross_entropy(logits.float(), labels, label_smoothing=recipe.label_smoothing)
        if share < 1:
            loss = loss + (1 - share) * cross_entropy(logits.float(), other, label_smoothing=recipe.label_smoothing)
        return loss, (logits.detach().argmax(1) == labels).float().mean()

    def validate(self) -> float | None:
        """Return the accuracy on the first clips of "val"."""
        if not self.judged:
            return None
        self.finish()
        size = self.recipe.batch_size
        given = (self.classifier, self.ahead or self.source, "val", self.judged)
        return evaluate_classifier(*given, batch_size=size, ranks=self.ranks).accuracy

    def finish(self) -> None:
        """Estimate the statistics of batch normalisation anew; training itself never uses them."""
        available = self.shown.count("train")
        wanted = min(SETTLING_CLIPS, self.recipe.clips, SETTLING_CLIPS if available is None else available)
        count = -(-wanted // self.recipe.batch_size)
        batches = (self.batch(step, count).clips for step in range(count))
        with whole_batch(self.ranks, self.share):
            settle_norms(self.module, (clips.contiguous(memory_format=torch.channels_last_3d) for clips in batches))


class Judgement(NamedTuple):
    """accuracy in [0, 1]; confusion (C, C) int64: clips of the row's class that were said to be of the column's."""

    accuracy: float
    confusion: torch.Tensor


def evaluate_classifier(
    model: VideoClassifier,
    source: Source,
    split: str,
    count: int | None = None,
    *,
    batch_size: int = 32,
    ranks: Ranks = ALONE,
) -> Judgement:
    """Judge the model on the first `count` clips of a split, or on all; its device and mode stay.

    ranks: the processes that judge together, each a share of every batch.
    """
    total = clips_to_take(source, split, count)
    classes, device = len(model.classes), model.device
    confusion = torch.zeros(classes * classes, dtype=torch.long, device=device)
    with evaluating(model):
        for start in range(0, total, batch_size):
            indices = range(start, min(start + batch_size, total))
            share = ranks.share(len(indices))
            if not share.weight:
                continue
            batch = source.batch(split, indices[share.rows], device)
            with torch.inference_mode():
                said = model(batch.clips).argmax(1)
            confusion += torch.bincount(batch.labels * classes + said, minlength=classes * classes)
    table = ranks.sum(confusion).view(classes, classes).cpu()
    return Judgement(float(table.diagonal().sum()) / total, table)


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
