"""Fit the scores that explain a frozen classifier."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import torch

from whytube.checks import fail
from whytube.errors import ArgumentError, ModelError
from whytube.explainer.explainer import Explainer, find_objective
from whytube.explainer.objective import drawn_negatives, loss_terms
from whytube.explainer.scores import build_scores
from whytube.given import model_hash
from whytube.models import fingerprint, save_explainer
from whytube.training.calibration import calibrate
from whytube.training.devices import ALONE
from whytube.training.features import SeenBatch, SeenClips, bytes_of_features, place_of_features
from whytube.training.loop import Loop, batch_indices, claimed
from whytube.training.places import drawn_clips, drawn_fingerprint, drawn_steps, fit_places
from whytube.training.recipe import EXPLAINER_RECIPES, Recipe, find_recipe
from whytube.training.response import FILE as RESPONSE_FILE
from whytube.training.response import fit_response

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping
    from typing import Any

    from whytube.classifiers.base import Features, VideoClassifier
    from whytube.data.source import ClipBatch, Source
    from whytube.explainer.explainer import Objective
    from whytube.explainer.fit import FitCurve
    from whytube.explainer.scores import Scores
    from whytube.explainer.values import Maps
    from whytube.search.response import Response
    from whytube.training.devices import Ranks
    from whytube.training.history import History, Record

# Names of their own: the classifier's run may stand in the same folder.
FILE = "explainer_run.safetensors"
HISTORY = "explainer_history.json"
_STATISTICS_BATCHES = 8
_BIAS_RATE = 30.0
"""Rate of a class bias, as a multiple of that of weights: it is one number beside 9 d of them."""


def fit_explainer(
    classifier: VideoClassifier,
    source: Source,
    recipe: Recipe | str = "demo",
    *,
    objective: str = "ours",
    shapes: str = "multiple",
    response: Response | None = None,
    device: torch.device | str = "cpu",
    out_dir: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: Callable[[Record], None] | None = None,
    on_step: Callable[[int, int], None] | None = None,
    report_every: int = 20,
    save_every: int = 10,
    provenance: Mapping[str, Any] | None = None,
    ranks: Ranks = ALONE,
) -> tuple[Explainer, History]:
    """Train an explainer on the "train" split; the classifier stays as it is, in evaluation mode.

    c_pos is sampled from p(c|x), and S(x) is the clip's attributes (section 3.4). A Record's accuracy is the share of
    clips that the classifier gets right. Objectives with `places` then learn from the boxes of training clips, where
    the source has any.

    recipe: a Recipe, or the name of one in EXPLAINER_RECIPES. Clips are shown unchanged, so its settings of random
        changes (erase, flip, crop ...) are not used; nor are label_smoothing, freeze, head_lr and precision: an
        explainer, and the classifier that it looks at, always run in float32.
    objective: one of OBJECTIVES. shapes: "multiple", or "single" for the one form of the paper's section 3.2.
    response: what masking does to this classifier, learnt by an earlier run; then no masked runs are made for it.
    out_dir: receives FILE (to resume from) during training, `explainer.safetensors` and HISTORY at the end.
    resume, progress, on_step, report_every, save_every, ranks: as for `fit_classifier`.
    """
    recipe = find_recipe(recipe, EXPLAINER_RECIPES)
    ranks.check_batch(recipe.batch_size)
    loop = _ExplainerLoop(classifier, source, recipe, (objective, shapes), torch.device(device), ranks)
    loop.same["response"] = None if response is None else _checked(response.to(device), classifier, loop.objective)
    every = {"report_every": report_every, "save_every": save_every}
    with claimed(out_dir if ranks.first else None) as folder:
        if folder is not None and not resume:
            (folder / RESPONSE_FILE).unlink(missing_ok=True)  # of an earlier run
        history = loop.run(folder, resume=resume, progress=progress, on_step=on_step, **every)
        if loop.objective.verify and response is None:
            given: dict[str, Any] = {"folder": folder, "resume": resume, "on_step": on_step, "ranks": ranks}
            response = fit_response(classifier, loop.shown, recipe, device=torch.device(device), **given)
        names = tuple(source.attribute_names)
        explainer = Explainer(classifier, loop.scores.eval(), names, source.table, objective, loop.fit, response)
        if folder is not None:
            metrics = {"loss": history.records[-1].loss}
            path = folder / "explainer.safetensors"
            save_explainer(path, explainer, provenance=provenance or {}, recipe=asdict(recipe), metrics=metrics)
            history.save(folder / HISTORY)
    return explainer, history


def _checked(response: Response, classifier: VideoClassifier, objective: Objective) -> str:
    """Require a response that the objective uses and that fits the classifier; returns the hash of its weights."""
    if not objective.verify:
        raise fail("response", "none for an objective that tries no tubes", "one")
    if response.cut != classifier.response_cut:
        raise fail("response", f"one at {classifier.response_cut}, as the classifier's", f"one at {response.cut}")
    return model_hash(response)


def _groups(scores: Scores) -> list[dict[str, Any]]:
    """Parameters in groups of one rate each."""
    bias = scores.class_bias
    groups: list[dict[str, Any]] = [{"params": [one for one in scores.parameters() if one is not bias]}]
    return groups if bias is None else [*groups, {"params": [bias], "factor": _BIAS_RATE}]


class _ExplainerLoop(Loop):
    """Trains the scores of (class, attribute) pairs for an objective."""

    file = FILE

    def __init__(
        self,
        classifier: VideoClassifier,
        source: Source,
        recipe: Recipe,
        asked: tuple[str, str],
        device: torch.device,
        ranks: Ranks,
    ) -> None:
        """Prepare a run; asked: the objective and the shapes, by name."""
        objective, shapes = asked
        self.objective = find_objective(objective)
        super().__init__(classifier, source, recipe, device, argument="classifier", ranks=ranks)
        classifier.eval()
        count, bias = len(source.attribute_names), self.objective.class_bias
        scores = build_scores(classifier, count, shapes=shapes, class_bias=bias, seed=recipe.seed)
        self.scores = self.module = scores.to(device)
        self.called = _Loss(self.objective, self.scores)
        self.unused = not (self.objective.class_term and self.objective.attribute_term)
        self.optimizer = recipe.build_optimizer(_groups(self.scores))
        self.fit: FitCurve | None = None
        self.clips = drawn_clips(source, recipe.boxes) if self.objective.places and ranks.first else []
        self.same |= {"objective": objective, "shapes": shapes, "classifier's fingerprint": fingerprint(classifier)}
        self.same |= {"class bias": True} if bias else {}  # `paper` had none before
        self.same |= {"boxes' fingerprint": drawn_fingerprint(self.clips)}

    def looked_at(self, clips: Source) -> Source:
        """Keep the features of clips that are shown more than once, where there is memory for them."""
        count, each, scales = clips.count("train"), self.recipe.batch_size, len(self.scores.channels)
        shapes = [(d, *grid) for d, grid in zip(self.scores.channels, self.scores.forms.grids, strict=True)]
        size = bytes_of_features(shapes, len(self.classifier.classes), count or 0)
        shown, processes = self.recipe.clips, self.ranks.size
        place = place_of_features(size, self.device, clips=count, shown=shown, processes=processes)
        if count is None or place is None:
            return clips
        order = batch_indices(0, count, count=count, seed=self.recipe.seed)  # in which they are first shown
        groups = [order[at : at + each] for at in range(0, count, each)]
        return SeenClips(self.classifier, clips, groups, scales=scales, place=place)

    @torch.no_grad()
    def _features(self, batch: ClipBatch) -> Features:
        return batch.features if isinstance(batch, SeenBatch) else self.classifier.features(batch.clips)

    def begin(self) -> None:
        """Measure every channel of the maps on a few batches, where the objective wants them standardised."""
        if not self.objective.standardise:
            return
        sums: list[list[torch.Tensor]] = []
        for step in range(_STATISTICS_BATCHES):
            _, maps = self._features(self.batch(step, _STATISTICS_BATCHES))
            sums.append([torch.stack([h.mean((0, 2, 3, 4)), h.square().mean((0, 2, 3, 4))]) for h in maps])
        own = (torch.stack(scale).mean(0) for scale in zip(*sums, strict=True))
        moments = [self.ranks.sum(of_scale * self.share.weight) for of_scale in own]
        self.scores.standardise([m[0] for m in moments], [(m[1] - m[0].square()).clamp_min(0).sqrt() for m in moments])

    def finish(self) -> None:
        """Calibrate fits and train attributes with the boxes of training clips.

        A resumed run does this again, from the same weights. The first process does it, and gives it to the others.
        """
        if self.clips:
            recipe = self.recipe
            given = (self.classifier, self.source, self.scores, self.clips, self.device)
            drawn = drawn_steps(*given, copies=recipe.place_copies, seed=recipe.seed)
            steps, lr = recipe.place_steps, recipe.place_lr
            self.fit = calibrate(self.scores, drawn, steps=steps, lr=lr, seed=recipe.seed)
            if self.fit is not None:
                self.fit = replace(self.fit, lasting=recipe.lasting)
            fit_places(self.scores, drawn, steps=steps, lr=lr, seed=recipe.seed)
        if self.objective.places and self.ranks.talks:
            weights = {name: value.cpu() for name, value in self.scores.state_dict().items()}
            weights, self.fit = self.ranks.given((weights, self.fit))
            self.scores.load_state_dict(weights)

    def loss(self, batch: ClipBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the objective for one positive class per clip, sampled from what the classifier says."""
        logits, maps = self._features(batch)
        generator = torch.Generator().manual_seed(self.recipe.seed * 1_000_003 + self.step)
        chances = self.ranks.whole(logits.softmax(1), self.share).cpu()
        drawn = torch.multinomial(chances, 1, generator=generator)[:, 0]  # of the whole batch, as are the negatives
        negatives = drawn_negatives(drawn, logits.shape[1], self.recipe.negatives, generator)
        rows, present = self.share.rows, batch.attributes
        negative = None if negatives is None else negatives[rows].to(self.device)
        try:
            loss = self.called(maps, drawn[rows].to(self.device), present, negative, self._sides(present))
        except ArgumentError as error:  # the layer refuses scores that are not finite
            raise ModelError(f"training diverged at step {self.step}: {error}. Lower the learning rate") from error
        return loss, (logits.argmax(1) == batch.labels).float().mean()

    def _sides(self, present: torch.Tensor) -> torch.Tensor | None:
        """Count the pairs of the whole batch that a share's sums are divided by, see `attribute_term`."""
        if not self.ranks.talks:
            return None
        counts = self.ranks.sum(torch.stack([present.sum(), (~present).sum()]))
        return counts.clamp_min(1) * self.share.weight


class _Loss(torch.nn.Module):
    """The loss as a module, whose gradients several processes can add up."""

    def __init__(self, objective: Objective, scores: Scores) -> None:
        super().__init__()
        self.objective, self.scores = objective, scores

    def forward(
        self,
        maps: Maps,
        positive: torch.Tensor,
        present: torch.Tensor,
        negative: torch.Tensor | None,
        sides: torch.Tensor | None,
    ) -> torch.Tensor:
        given = (self.objective, self.scores, maps, positive, present)
        terms = loss_terms(*given, negative=negative, sides=sides)
        return torch.stack(list(terms.values())).sum()
