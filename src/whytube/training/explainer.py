"""Fit the scores that explain a frozen classifier."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from whytube.checks import check_int, fail
from whytube.data.source import Kept
from whytube.errors import ArgumentError, ModelError
from whytube.explainer.explainer import Explainer
from whytube.explainer.objective import find_objective, loss_terms
from whytube.explainer.scores import build_scores
from whytube.models import fingerprint, save_explainer
from whytube.training.classifier import batch_indices
from whytube.training.history import History, Record
from whytube.training.recipe import Recipe
from whytube.training.state import Saving, describe, load_state, save_state

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from typing import Any

    from whytube.classifiers.base import Features, VideoClassifier
    from whytube.data.source import Source

# "All the settings [...] were set to the same as in the training of classification module, except that the batch
# size was 30."
EXPLAINER_RECIPES = {
    "paper": Recipe(clips=120_000, batch_size=30, schedule="steps"),
    # What converges: features standardised by the objective, AdamW, a rate that rises and falls.
    "converging": Recipe(clips=30_000, batch_size=30, distinct=6_000, optimizer="adamw", lr=1e-2, warmup=0.05),
    # The same on two CPU cores.
    "demo": Recipe(clips=5_400, batch_size=30, optimizer="adamw", lr=3e-2, warmup=0.05),
}
# The classifier's own run may stand in the same folder.
FILE = "explainer_run.safetensors"
HISTORY = "explainer_history.json"
_STATISTICS_BATCHES = 8


def fit_explainer(
    classifier: VideoClassifier,
    source: Source,
    recipe: Recipe,
    *,
    objective: str = "ours",
    device: torch.device | str = "cpu",
    out_dir: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: Callable[[Record], None] | None = None,
    report_every: int = 20,
    save_every: int = 10,
    provenance: Mapping[str, Any] | None = None,
) -> tuple[Explainer, History]:
    """Train an explainer on the "train" split; the classifier stays as it is, in evaluation mode.

    c_pos is sampled from p(c|x) and S(x) is the clip's attributes (section 3.4). A Record's accuracy is the share of
    clips that the classifier gets right. Runs are resumed as `fit_classifier` does. Of the recipe, what changes clips
    (erase, flip) or belongs to classifiers (label_smoothing, precision) is not used.

    objective: one of OBJECTIVES. out_dir: receives FILE (to resume from) on the way, `explainer.safetensors` and
        HISTORY at the end. progress, report_every, save_every: as for `fit_classifier`.
    """
    check_int(report_every, "report_every", 1)
    check_int(save_every, "save_every", 1)
    run = _Run(classifier, source, recipe, objective, torch.device(device))
    folder = None if out_dir is None else Path(out_dir)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        if resume and (folder / FILE).exists():
            run.step, run.history = load_state(folder, run.scores, run.optimizer, run=run.description, file=FILE)
    if run.step == 0 and run.objective.standardise:
        run.standardise()
    saving = Saving(save_every)
    while run.step < recipe.steps:
        record = run.advance(min(report_every, recipe.steps - run.step))
        if folder is not None and saving.due(len(run.history.records), end=run.step == recipe.steps):
            run.save(folder)
        if progress is not None:
            progress(record)
    explainer = Explainer(classifier, run.scores.eval(), tuple(source.attribute_names), source.table, objective)
    if folder is not None:
        metrics = {"loss": run.history.records[-1].loss}
        path = folder / "explainer.safetensors"
        save_explainer(path, explainer, provenance=provenance or {}, recipe=asdict(recipe), metrics=metrics)
        run.history.save(folder / HISTORY)
    return explainer, run.history


class _Run:
    """A training run between two steps."""

    def __init__(
        self, classifier: VideoClassifier, source: Source, recipe: Recipe, objective: str, device: torch.device
    ) -> None:
        self.objective = find_objective(objective)
        if classifier.classes != tuple(source.classes):
            expected = f"for the classes of the source, {source.classes[:3]}..."
            raise fail("classifier", expected, f"{classifier.classes[:3]}...")
        available = source.count("train")
        if available == 0:
            raise fail("source", "one with clips to train on", "none in its split 'train'")
        self.classifier = classifier.to(device).eval()
        self.source, self.recipe, self.device = source, recipe, device
        if recipe.distinct is not None:
            count = recipe.distinct if available is None else min(recipe.distinct, available)
            self.source = Kept(source, "train", count, device=device)
        self.scores = build_scores(classifier, len(source.attribute_names), seed=recipe.seed).to(device)
        self.optimizer = recipe.build_optimizer(self.scores.parameters())
        self.step, self.history = 0, History()
        self.count = self.source.count("train")
        self.description = describe(classifier, source, recipe) | {
            "objective": objective,
            "classifier's fingerprint": fingerprint(classifier),
        }

    def save(self, folder: Path) -> None:
        """Write the state to resume from."""
        save_state(
            folder,
            self.scores,
            self.optimizer,
            step=self.step,
            run=self.description,
            history=self.history,
            file=FILE,
        )

    def standardise(self) -> None:
        """Measure every channel of the maps on a few batches."""
        sums: list[list[torch.Tensor]] = []
        for step in range(_STATISTICS_BATCHES):
            maps = self._features(step)[0].maps
            sums.append([torch.stack([h.mean((0, 2, 3, 4)), h.square().mean((0, 2, 3, 4))]) for h in maps])
        moments = [torch.stack(scale).mean(0) for scale in zip(*sums, strict=True)]
        self.scores.standardise([m[0] for m in moments], [(m[1] - m[0].square()).clamp_min(0).sqrt() for m in moments])

    def advance(self, steps: int) -> Record:
        """Take some steps and add a Record of them to the history."""
        before, lr = time.perf_counter(), self.recipe.lr_at(self.step)
        loss, hits = torch.stack([self._train_step() for _ in range(steps)]).double().mean(0).tolist()
        if not np.isfinite(loss):
            raise ModelError(f"training diverged before step {self.step}: the loss is {loss}. Lower the learning rate")
        seconds = time.perf_counter() - before
        seconds += self.history.records[-1].seconds if self.history.records else 0.0
        shown = self.step * self.recipe.batch_size
        self.history.records.append(Record(self.step, shown, lr, loss, hits, round(seconds, 2)))
        return self.history.records[-1]

    def _train_step(self) -> torch.Tensor:
        """Take one step; return loss and share of hits, (2,), still on the device."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.lr_at(self.step)
        features, labels, present = self._features(self.step)
        generator = torch.Generator().manual_seed(self.recipe.seed * 1_000_003 + self.step)
        chances = features.logits.softmax(1).cpu()
        positive = torch.multinomial(chances, 1, generator=generator)[:, 0].to(self.device)
        try:
            terms = loss_terms(self.objective, self.scores, features.maps, positive, present)
        except ArgumentError as error:  # the layer refuses scores that are not finite
            raise ModelError(f"training diverged at step {self.step}: {error}. Lower the learning rate") from error
        loss = torch.stack(list(terms.values())).sum()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.step += 1
        return torch.stack([loss.detach(), (features.logits.argmax(1) == labels).float().mean()])

    def _features(self, step: int) -> tuple[Features, torch.Tensor, torch.Tensor]:
        """Run the classifier on the clips of a step; also return their labels (B,) and S(x) (B, S)."""
        indices = batch_indices(step, self.recipe.batch_size, count=self.count, seed=self.recipe.seed)
        batch = self.source.batch("train", indices, self.device)
        with torch.no_grad():
            features = self.classifier.features(batch.clips)
        return features, batch.labels, batch.attributes
