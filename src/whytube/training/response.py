"""Fit the response of a classifier to masking: what its features become where a tube is (search/response.py).

Every step masks random tubes of a few training clips with one of the selecting fills, runs the classifier on them, and
trains the prediction of the same logits. No tube is seen twice, so nothing is kept but the weights.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn.functional import mse_loss

from whytube.models import fingerprint
from whytube.search.anytime import AREA
from whytube.search.masked import masked_logits
from whytube.search.response import build_response
from whytube.search.tracks import random_tracks
from whytube.search.verify import SELECTING_FILLS, ask
from whytube.training.devices import ALONE
from whytube.training.loop import Loop
from whytube.tubes import cell_coverage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from whytube.classifiers.base import VideoClassifier
    from whytube.data.source import ClipBatch, Source
    from whytube.search.response import Response
    from whytube.training.devices import Ranks
    from whytube.training.history import Record
    from whytube.training.recipe import Recipe

FILE = "response_run.safetensors"
CLIPS, TUBES = 8, 12
"""Of a step; a tube is a masked run."""
RATE, DECAY, WARMUP = 1e-2, 1e-3, 0.05


def fit_response(
    classifier: VideoClassifier,
    source: Source,
    recipe: Recipe,
    *,
    device: torch.device,
    folder: Path | None = None,
    resume: bool = False,
    progress: Callable[[Record], None] | None = None,
    on_step: Callable[[int, int], None] | None = None,
    ranks: Ranks = ALONE,
) -> Response | None:
    """Train the response of a classifier with `recipe.masked_runs` runs; None without any, or for one without cuts.

    Of the recipe only its seed and `masked_runs` are used. folder: receives FILE, to resume from. on_step: called with
    the steps taken and their number. ranks: see `fit_classifier`; more processes than CLIPS are of no use here.
    """
    steps = -(-recipe.masked_runs // (CLIPS * TUBES))
    if classifier.response_cut is None or steps == 0:
        return None
    own = replace(
        recipe,
        distinct=None,
        clips=steps * CLIPS,
        batch_size=CLIPS,
        optimizer="adamw",
        lr=RATE,
        weight_decay=DECAY,
        schedule="cosine",
        warmup=WARMUP,
        momentum=0.9,
    )
    loop = _ResponseLoop(classifier, source, own, device, ranks)
    with _frozen(classifier):
        # On a CPU a step may take minutes, and there are few: then each is recorded, and kept.
        report_every = min(20, -(-steps // 20))
        loop.run(folder, resume=resume, progress=progress, on_step=on_step, report_every=report_every, save_every=10)
    return loop.response.eval()


@contextmanager
def _frozen(classifier: VideoClassifier) -> Iterator[None]:
    """Let gradients pass through a network for a block, but not into its weights."""
    trained = [weights for weights in classifier.parameters() if weights.requires_grad]
    try:
        for weights in trained:
            weights.requires_grad_(False)
        yield
    finally:
        for weights in trained:
            weights.requires_grad_(True)


class _ResponseLoop(Loop):
    """Trains what features become where a tube is."""

    file = FILE

    def __init__(
        self, classifier: VideoClassifier, source: Source, recipe: Recipe, device: torch.device, ranks: Ranks
    ) -> None:
        super().__init__(classifier, source, recipe, device, argument="classifier", ranks=ranks)
        classifier.eval()
        response = build_response(classifier)
        assert response is not None
        self.response = self.module = self.called = response.to(device)
        self.optimizer = recipe.build_optimizer(self.response.parameters())
        self.same |= {"response": response.cut, "classifier's fingerprint": fingerprint(classifier)}
        self.same |= {"selecting fills": list(SELECTING_FILLS)}

    def loss(self, batch: ClipBatch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the squared error of predicted logits, whose sum is free, for random tubes."""
        cut, (frames, height, width) = self.response.cut, batch.clips.shape[2:]
        rng = np.random.default_rng([self.recipe.seed, self.step])
        drawn = random_tracks(rng, self.share.total * TUBES, frames=frames, area=AREA).tubes((height, width))
        own = drawn.reshape(self.share.total, TUBES, frames, 4)[self.share.rows].reshape(-1, frames, 4)
        boxes = torch.from_numpy(own).to(self.device)
        with torch.no_grad():
            question = ask(self.classifier, batch.clips)
            every = torch.ones(len(batch.clips), TUBES, dtype=torch.bool, device=self.device)
            fill = SELECTING_FILLS[self.step % len(SELECTING_FILLS)]
            tubes = boxes.view(*every.shape, frames, 4)
            target = masked_logits(self.classifier, question, tubes, every, fill=fill, exact=False).flatten(0, 1)
            h = self.classifier.front(batch.clips, cut).repeat_interleave(TUBES, 0)
        covered = cell_coverage(boxes, (h.shape[2], h.shape[3], h.shape[4]), (height, width))
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            found = self.classifier.back(self.called(h, covered), cut)
        error = mse_loss(_centred(found.float()), _centred(target.float()))
        return error, (question.positive == batch.labels).float().mean()


def _centred(logits: torch.Tensor) -> torch.Tensor:
    return logits - logits.mean(-1, keepdim=True)
