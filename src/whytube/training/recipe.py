"""How a classifier or an explainer is trained: a recipe is data, and the ones we use have names."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from whytube.checks import check_choice, check_int, fail, unknown_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OPTIMIZERS = ("sgd", "adamw")
SCHEDULES = ("constant", "steps", "cosine")
PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """All that decides a training run but the model and the data.

    clips: how many are shown in all, repeats counted. distinct: how many different ones, kept in memory; None reads
    them from the source each time.
    schedule: "constant"; "steps", a tenth of the rate after half and a hundredth after three quarters; "cosine", to
    zero. Before it the rate rises from zero over the `warmup` fraction of the run.
    erase: probability that a random tube of a clip is erased, of `erase_area` (smallest and largest fraction of the
    frame), so that masked clips are not new to the network. It rises from zero over the first half of the run.
    flip: probability of a mirrored clip; not used where a class or attribute means left or right. crop: smallest share
    of the frame that a random crop keeps. span: smallest share of the clip's time that a random stretch keeps. light:
    largest change of brightness and contrast. mix: parameter of the beta distribution by which pairs of clips and
    their classes are blended (mixup), 0 for none.
    freeze: stage of a pretrained network before which nothing is trained, "" to train all. head_lr: factor of the rate
    for the last layers, which depend on the classes and are never pretrained.
    precision: "bfloat16" trains a classifier in mixed precision on CUDA. Elsewhere, and for an explainer, it has no
    effect: float32.
    boxes: training clips per attribute whose boxes an explainer learns places from; 0 for none, None for all there are
    (5 where there is no end of clips). place_steps, place_lr: length and rate of that. place_copies: mirrored and
    cropped copies of each such clip that places are learnt from, too. lasting: see FitCurve.
    negatives: classes but c_pos that are drawn for each clip and step where an explainer's objective compares classes,
    see docs/training.md#many-classes; None for all, as in the paper.
    masked_runs: how often an explainer may run the classifier on masked clips, to learn what masking does.
    """

    clips: int
    batch_size: int = 64
    optimizer: str = "sgd"
    lr: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 1e-3
    schedule: str = "cosine"
    warmup: float = 0.0
    label_smoothing: float = 0.0
    distinct: int | None = None
    erase: float = 0.0
    erase_area: tuple[float, float] = (0.02, 0.25)
    flip: float = 0.0
    crop: float = 1.0
    span: float = 1.0
    light: float = 0.0
    mix: float = 0.0
    freeze: str = ""
    head_lr: float = 1.0
    precision: str = "float32"
    boxes: int | None = None
    place_steps: int = 200
    place_lr: float = 0.03
    place_copies: int = 0
    lasting: float = 0.0
    negatives: int | None = None
    masked_runs: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        check_int(self.batch_size, "batch_size", 1)
        check_int(self.clips, "clips", self.batch_size)
        check_int(self.seed, "seed", 0)
        if self.distinct is not None:
            check_int(self.distinct, "distinct", 1)
        if self.boxes is not None:
            check_int(self.boxes, "boxes", 0)
        if self.negatives is not None:
            check_int(self.negatives, "negatives", 1)
        check_int(self.place_steps, "place_steps", 1)
        check_int(self.place_copies, "place_copies", 0)
        check_int(self.masked_runs, "masked_runs", 0)
        check_choice(self.optimizer, "optimizer", OPTIMIZERS)
        check_choice(self.schedule, "schedule", SCHEDULES)
        check_choice(self.precision, "precision", PRECISIONS)
        for name in ("lr", "weight_decay", "head_lr", "mix", "place_lr"):
            _check_number(getattr(self, name), name, high=math.inf)
        for name in ("momentum", "warmup", "label_smoothing", "erase", "flip", "crop", "span", "light", "lasting"):
            _check_number(getattr(self, name), name, high=1.0)
        if not _is_range(self.erase_area):
            raise fail("erase_area", "two fractions of the frame, the smaller first", self.erase_area)

    @property
    def steps(self) -> int:
        """Optimizer steps of the run."""
        return self.clips // self.batch_size

    def lr_at(self, step: int) -> float:
        """Learning rate of a step, counted from 0."""
        rising = self.warmup * self.steps
        if step < rising:
            return self.lr * (step + 1) / (rising + 1)
        if self.schedule == "constant":
            return self.lr
        done = step / self.steps
        if self.schedule == "steps":
            return self.lr * (1.0 if done < 0.5 else 0.1 if done < 0.75 else 0.01)
        return self.lr * 0.5 * (1 + math.cos(math.pi * (step - rising) / max(self.steps - rising, 1)))

    def erase_at(self, step: int) -> float:
        """Return the probability of erasing at a step, counted from 0."""
        return self.erase * min(1.0, 2 * step / self.steps)

    def build_optimizer(self, parameters: Iterable[Any]) -> torch.optim.Optimizer:
        """Build the optimizer of parameters or groups of them; `momentum` is beta 1 of AdamW."""
        if self.optimizer == "sgd":
            return torch.optim.SGD(parameters, self.lr, momentum=self.momentum, weight_decay=self.weight_decay)
        return torch.optim.AdamW(parameters, self.lr, betas=(self.momentum, 0.999), weight_decay=self.weight_decay)


def _is_range(pair: object) -> bool:
    """Whether this is (low, high) with 0 < low <= high <= 1; what comes from a file or the shell may be anything."""
    if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(isinstance(x, int | float) for x in pair):
        return False
    return bool(0 < pair[0] <= pair[1] <= 1)


def _check_number(value: float, name: str, *, high: float) -> None:
    if isinstance(value, bool) or not (isinstance(value, int | float) and 0 <= value <= high and math.isfinite(value)):
        raise fail(name, f"a number from 0 to {high}" if high < math.inf else "a number of at least 0", repr(value))


_ADAMW = Recipe(clips=16_000, optimizer="adamw", lr=3e-3, weight_decay=0.01, warmup=0.05, label_smoothing=0.05)
# A few hundred clips, kept on a GPU.
_FEW = replace(_ADAMW, distinct=2_000, warmup=0.1, label_smoothing=0.1, flip=0.5, precision="bfloat16")
RECIPES: dict[str, Recipe] = {
    # "SGD, where learning rate, momentum, weight decay, and batch size were set to 0.1, 0.9, 1e-3, and 64". Length and
    # schedule are not in the paper: ours are a ResNet's, for the 2284 training clips of UCF101-24 shown 100 times.
    "paper": Recipe(clips=228_400, schedule="steps", flip=0.5),
    # The embedded world at 64x64 with "c3d-resnet-small" on two CPU cores, in minutes. Small batches: steps count.
    "demo": replace(_ADAMW, clips=7_600, batch_size=8, warmup=0.25, erase=0.4),
    # The embedded world on a large GPU, at any size: 16,000 clips stay on it (9.6 GB at 112x112).
    "world": replace(_ADAMW, clips=192_000, distinct=16_000, erase=0.5, precision="bfloat16"),
    # A pretrained network. Rate and strength of the changes were chosen for I3D on 146 val clips of J-HMDB's first
    # split, among eight settings.
    "fine-tune": replace(
        _FEW, batch_size=32, lr=1e-4, weight_decay=0.02, erase=0.3, crop=0.7, span=0.8, light=0.2, head_lr=5.0
    ),
    # The last layer of a pretrained network, on two CPU cores in minutes. Rate and length were chosen for I3D on 20 val
    # clips of five J-HMDB classes.
    "laptop": replace(
        _ADAMW,
        clips=480,
        batch_size=8,
        lr=1e-2,
        warmup=0.1,
        label_smoothing=0.1,
        erase=0.3,
        flip=0.5,
        crop=0.7,
        span=0.8,
        light=0.2,
        freeze="head",
    ),
    # A network from nothing, which will overfit.
    "scratch": replace(_FEW, lr=1e-3, weight_decay=0.05, erase=0.5, crop=0.5, span=0.6, light=0.3),
}
EXPLAINER_RECIPES: dict[str, Recipe] = {
    # "All the settings [...] were set to the same as in the training of classification module, except that the batch
    # size was 30."
    "paper": Recipe(clips=120_000, batch_size=30, schedule="steps"),
    # The paper's objective at its best: docs/training.md compares rates and optimizers on val clips.
    "paper-tuned": Recipe(clips=15_000, batch_size=30, distinct=6_000, optimizer="adamw", lr=1e-3, warmup=0.05),
    # What converges: features standardised by the objective, AdamW, a rate that rises and falls.
    "converging": Recipe(
        clips=30_000, batch_size=30, distinct=6_000, optimizer="adamw", lr=1e-2, warmup=0.05, masked_runs=48_000
    ),
    # The same on two CPU cores.
    "demo": Recipe(clips=5_400, batch_size=30, optimizer="adamw", lr=3e-2, warmup=0.05, masked_runs=4_800),
    # I3D on two CPU cores, where every clip shown takes half a second; the rate was chosen on the same 20 val clips.
    "laptop": Recipe(clips=480, batch_size=8, optimizer="adamw", lr=3e-2, warmup=0.05, masked_runs=480),
}


def find_recipe(recipe: Recipe | str, recipes: Mapping[str, Recipe] = RECIPES) -> Recipe:
    """Return a recipe by its name in `recipes`; a Recipe is returned as it is."""
    if isinstance(recipe, Recipe):
        return recipe
    if recipe not in recipes:
        raise unknown_name("recipe", recipe, recipes)
    return recipes[recipe]
