"""Map makers that change the clip and look at what the classifier does: occlusion, RISE, extremal perturbations.

They fill with what tubes may be selected with, never with what answers are judged by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn.functional import adaptive_avg_pool3d, conv_transpose3d, interpolate

from whytube.classifiers.base import evaluating
from whytube.evaluation.methods.answers import clip_chances
from whytube.evaluation.methods.gradients import CELLS
from whytube.evaluation.methods.maps import MapMaker
from whytube.search.anytime import AREA
from whytube.search.grad_cam import differentiating, margins
from whytube.search.masked import masked_logits
from whytube.search.score import log_odds
from whytube.tubes import FILLS, PAPERS_FILL

if TYPE_CHECKING:
    import numpy as np

    from whytube.classifiers.base import VideoClassifier
    from whytube.search.verify import Question

OCCLUDED = (4, 8, 8)
"""Steps, rows and columns of occlusion's map; a box covers two of each and moves by one."""
MASKS, COARSE, KEPT = 512, (4, 7, 7), 0.5
"""Random masks of RISE, their cells, and the share of cells that they keep."""
STEPS, FINE, RATE = 40, (8, 14, 14), 0.3
"""Steps of an extremal perturbation, cells of its mask, learning rate."""
WEIGHTS = (1.0, 40.0)
"""Weight of an extremal mask's area, at the first and last step; the margin counts in units of what it was."""
HIDING = (PAPERS_FILL, "noise")
"""What extremal masks are filled with: what leaves nothing of what was there."""
CHUNK = 16
"""Clips that are changed and classified at a time."""


@torch.no_grad()
def occlusion_maps(classifier: VideoClassifier, question: Question, _seed: int = 0) -> torch.Tensor:
    """Rise of the log-odds of B when a sliding space-time box is black: the mean over the boxes on each cell."""
    frames, height, width = question.clips.shape[2:]
    counts = [cells - 1 for cells in OCCLUDED]
    t, y, x = (axis.flatten() for axis in torch.meshgrid(*map(torch.arange, counts), indexing="ij"))
    places = torch.stack([x, y, x + 2, y + 2], -1) * torch.tensor([width / OCCLUDED[2], height / OCCLUDED[1]] * 2)
    step = torch.arange(frames) * OCCLUDED[0] // frames - t[:, None]  # (M, T)
    boxes = torch.where(((step == 0) | (step == 1))[..., None], places[:, None], 0).to(question.clips)
    tried = torch.ones(len(question.clips), len(boxes), dtype=torch.bool, device=boxes.device)
    every = boxes.expand(len(tried), *boxes.shape)
    logits = masked_logits(classifier, question, every, tried, fill=PAPERS_FILL)  # (B, M, C)
    before = log_odds(question.features.logits, question.negative)
    rise = (log_odds(logits, question.negative[:, None]) - before[:, None]).transpose(1, 2)  # (B, N, M)
    spread = rise.new_ones(1, 1, 2, 2, 2)
    summed = conv_transpose3d(rise.reshape(-1, 1, *counts), spread)
    return (summed / conv_transpose3d(torch.ones_like(rise[:1, :1]).view(1, 1, *counts), spread)).view(
        *question.negative.shape, *OCCLUDED
    )


@torch.no_grad()
def rise_maps(classifier: VideoClassifier, question: Question, seed: int = 0) -> torch.Tensor:
    """RISE: how the log-odds against B go with a cell's being kept, over random smooth space-time masks."""
    frames, height, width = question.clips.shape[2:]
    cells = (frames, min(height, CELLS), min(width, CELLS))
    found = []
    for b, rng in enumerate(clip_chances(question.clips, "rise", seed)):
        kept, against = [], []
        for first in range(0, MASKS, CHUNK):
            masks = _random_masks(min(CHUNK, MASKS - first), question.clips, rng)
            with evaluating(classifier):
                logits = classifier(question.clips[b] * masks)
            against.append(-log_odds(logits, question.negative[b, None]))
            kept.append(adaptive_avg_pool3d(masks[:, 0], cells))
        score = torch.cat(against)
        found.append(torch.einsum("mn,mthw->nthw", score - score.mean(0), torch.cat(kept)) / (MASKS * KEPT))
    return torch.stack(found)


def _random_masks(count: int, clips: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Draw coarse masks for clips (B, 3, T, H, W), enlarged smoothly, shifted by up to a cell: (count, 1, T, H, W)."""
    frames, height, width = size = clips.shape[2:]
    coarse = torch.from_numpy(rng.random((count, 1, *(cells + 1 for cells in COARSE))) < KEPT).to(clips)
    cell = [-(-length // cells) for length, cells in zip(size, COARSE, strict=True)]
    large = interpolate(
        coarse, size=[(cells + 1) * one for cells, one in zip(COARSE, cell, strict=True)], mode="trilinear"
    )
    shifts = rng.integers(0, cell, size=(count, 3))
    cut = [one[:, t : t + frames, y : y + height, x : x + width] for one, (t, y, x) in zip(large, shifts, strict=True)]
    return torch.stack(cut)


def extremal_maps(classifier: VideoClassifier, question: Question, _seed: int = 0) -> torch.Tensor:
    """Extremal perturbation: the smooth mask of AREA that lowers logit A minus logit B most once it is filled."""
    negatives = question.negative.shape[1]
    owner = torch.arange(len(question.clips), device=question.clips.device).repeat_interleave(negatives)
    asked = question.negative.flatten()
    parts = [slice(first, first + CHUNK) for first in range(0, len(asked), CHUNK)]
    masks = torch.cat([_extremal(classifier, question, owner[part], asked[part]) for part in parts])
    return masks.view(-1, negatives, *masks.shape[1:])


def _extremal(
    classifier: VideoClassifier, question: Question, whose: torch.Tensor, negative: torch.Tensor
) -> torch.Tensor:
    """Masks (M, t, h, w) for the clips `whose` (M,) of a question and the class `negative` (M,) of each."""
    apart = margins(question.positive[whose], negative[:, None])
    with differentiating(classifier):
        clips = question.clips[whose].detach().clone()
        unit = apart(question.features.logits[whose].clone()).abs().clamp_min(1)
        fills = [FILLS[name](clips, clips[:, 0] > -1) for name in HIDING]
        cells = [min(most, length) for most, length in zip(FINE, clips.shape[2:], strict=True)]
        raw = torch.full((len(clips), 1, *cells), AREA, device=clips.device).logit().requires_grad_()
        target = (torch.linspace(0, 1, raw[0].numel(), device=clips.device) > 1 - AREA).to(raw)
        adam = torch.optim.Adam([raw], lr=RATE)
        for step in range(STEPS):
            mask = raw.sigmoid()
            large = interpolate(mask, size=clips.shape[2:], mode="trilinear")
            changed = clips * (1 - large) + fills[step % len(fills)] * large
            area = (mask.flatten(1).sort(dim=1).values - target).square().mean(1)
            weight = WEIGHTS[0] * (WEIGHTS[1] / WEIGHTS[0]) ** (step / (STEPS - 1))
            loss = (apart(classifier(changed)) / unit).sum() + weight * area.sum()
            (raw.grad,) = torch.autograd.grad(loss, raw)
            adam.step()
        return raw.detach().sigmoid()[:, 0]


MAKERS = (
    MapMaker("occlusion", occlusion_maps, (OCCLUDED[0] - 1) * (OCCLUDED[1] - 1) * (OCCLUDED[2] - 1)),
    MapMaker("rise", rise_maps, MASKS),
    MapMaker("extremal", extremal_maps, STEPS, STEPS),
)
