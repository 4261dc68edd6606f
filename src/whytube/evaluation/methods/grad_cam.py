"""The contrastive Grad-CAM tube: where the last conv layer speaks for A rather than B, followed through time.

Grad-CAM (Selvaraju et al. 2017) of logit A minus logit B, and the tube by the same search that the paper's method uses.
It needs no training, and is the peer to beat.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from whytube.classifiers.base import evaluating
from whytube.evaluation.methods.answers import as_regions, clip_chances, path_boxes, random_words
from whytube.evaluation.methods.baselines import SIDE
from whytube.evaluation.metrics import separating_words
from whytube.subpath import top_subpaths

if TYPE_CHECKING:
    from whytube.classifiers.base import VideoClassifier
    from whytube.explainer.regions import Question, Regions


@dataclass(frozen=True, eq=False)
class GradCam:
    """A square box through the contrastive Grad-CAM map.

    Attributes:
        classifier: whose map is asked.
        table: (C, S) bool. Grad-CAM has no words of its own: it says one that A has and B lacks, or else one that A
            has, drawn at random; without a table none.
        side: of the box, as a share of the frame's shorter side.
        grid: cells per side of the frame, at least; a coarser map is upsampled.
        background: a box counts in a tube's favour when its mean lies above the clip's average box by this share of
            the way to its best box: 0 gives long tubes, near 1 single frames.
    """

    classifier: VideoClassifier
    table: torch.Tensor | None = None
    side: float = SIDE
    grid: int = 14
    background: float = 0.5
    seed: int = 0
    name: str = "grad-cam"

    def __call__(self, question: Question, k: int) -> Regions:
        """Answer with k tubes that keep apart by half a box at least."""
        frames, height, width = question.clips.shape[2:]
        maps = contrastive_maps(self.classifier, question.clips, question.positive, question.negative)
        grid = (max(maps.shape[-2], self.grid), max(maps.shape[-1], self.grid))
        fine = functional.interpolate(maps.flatten(0, 1), size=grid, mode="bilinear", align_corners=False)
        side = self.side * min(height, width)
        form = (side / height * grid[0], side / width * grid[1])
        means = box_means(fine, form).view(*maps.shape[:3], *grid)
        average = means.mean((2, 3, 4), keepdim=True)
        best = means.amax((2, 3, 4), keepdim=True)
        scores = means - average - self.background * (best - average)
        found = top_subpaths(scores[:, :, None], k, gap=round(min(form) / 2))
        boxes = path_boxes(found.cells, form, grid=grid, frames=frames, size=(height, width))
        return as_regions(boxes, self._words(question, k), found.value > -torch.inf, found.value)

    def _words(self, question: Question, k: int) -> torch.Tensor:
        if self.table is None:
            return torch.full((*question.negative.shape, k), -1, device=question.clips.device)
        table = self.table.to(question.clips.device)
        apart = separating_words(table, question.positive, question.negative)
        suited = table[question.positive][:, None].long() + apart.long()
        return random_words(clip_chances(question.clips, self.name, self.seed), suited, k)


def contrastive_maps(
    classifier: VideoClassifier,
    clips: torch.Tensor,
    positive: torch.Tensor,
    negative: torch.Tensor,
) -> torch.Tensor:
    """Grad-CAM of logit[positive] - logit[negative] at the last map: (B, 3, T, H, W), (B,), (B, N) -> (B, N, t, h, w).

    One run of the classifier for the batch, then one step back to the map per negative. Works under `no_grad` and
    `inference_mode`; the classifier's modes and gradients stay as they were.
    """
    with evaluating(classifier), torch.inference_mode(False), torch.enable_grad():
        asked, positive, negative = clips.detach().clone().requires_grad_(), positive.clone(), negative.clone()
        logits, maps = classifier.features(asked)
        last = maps[-1]
        margins = logits.gather(1, positive[:, None]) - logits.gather(1, negative)  # (B, N)
        weights = []
        for n in range(margins.shape[1]):
            (slope,) = torch.autograd.grad(margins[:, n].sum(), last, retain_graph=True)
            weights.append(slope.mean((2, 3, 4)))
        return functional.relu(torch.einsum("nbd,bdthw->bnthw", torch.stack(weights), last)).detach()


def box_means(maps: torch.Tensor, form: tuple[float, float]) -> torch.Tensor:
    """Mean of maps (M, t, h, w) over a box of `form` cells centred on every cell; outside the frame there is 0."""
    for dim, extent in zip((-2, -1), form, strict=True):
        reach = max(0, math.ceil(extent / 2 - 0.5 - 1e-6))
        offsets = torch.arange(-reach, reach + 1, device=maps.device)
        share = (extent / 2 + 0.5 - offsets.abs()).clamp(0, min(1.0, extent)) / extent
        line = maps.movedim(dim, -1)
        summed = functional.conv1d(line.reshape(-1, 1, line.shape[-1]), share.to(maps)[None, None], padding=reach)
        maps = summed.view(line.shape).movedim(-1, dim)
    return maps
