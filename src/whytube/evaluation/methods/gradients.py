"""Map makers that differentiate the classifier: class activation maps, Integrated Gradients, SCOUT."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn.functional import adaptive_avg_pool3d, relu

from whytube.evaluation.methods.maps import MapMaker
from whytube.search.grad_cam import contrastive_maps, differentiating, map_slopes, margins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whytube.classifiers.base import VideoClassifier
    from whytube.search.verify import Question

CELLS = 28
"""Maps of pixels are averaged to this many rows and columns."""
STEPS = 16
"""Points between a black clip and the clip at which Integrated Gradients takes slopes."""
SIMILAR = 2
"""Classes beside B that Finer-CAM holds against A: the most probable ones."""
STRENGTH = 0.6
"""How much of the similar classes' logits Finer-CAM takes away."""


def grad_cam_maps(classifier: VideoClassifier, question: Question, _seed: int = 0) -> torch.Tensor:
    """Grad-CAM of logit A minus logit B."""
    return contrastive_maps(classifier, question.clips, question.positive, question.negative)


def hires_cam_maps(classifier: VideoClassifier, question: Question, _seed: int = 0) -> torch.Tensor:
    """Multiply slope and feature at every cell, instead of the mean slope as Grad-CAM: (B, N, t, h, w)."""
    features, slopes = map_slopes(classifier, question.clips, margins(question.positive, question.negative))
    return relu((slopes * features).sum(2)).transpose(0, 1)


def finer_cam_maps(classifier: VideoClassifier, question: Question, _seed: int = 0) -> torch.Tensor:
    """Grad-CAM of logit A minus a share of the mean logit of classes like it: B and the most probable others."""
    asked = torch.zeros_like(question.features.logits, dtype=torch.int64)
    asked = asked[:, None].expand(-1, question.negative.shape[1], -1).scatter(2, question.negative[..., None], 1)
    asked = asked.scatter(2, question.positive[:, None, None].expand(-1, asked.shape[1], 1), -1)
    # B first, then by probability, A last.
    order = (question.features.logits.softmax(-1)[:, None] + 2 * asked).argsort(-1, descending=True)
    similar = order[..., : min(1 + SIMILAR, order.shape[-1] - 1)]

    def targets(logits: torch.Tensor) -> torch.Tensor:
        theirs = logits[:, None].expand(-1, similar.shape[1], -1).gather(2, similar.clone()).mean(-1)
        return logits.gather(1, question.positive.clone()[:, None]) - STRENGTH * theirs

    features, slopes = map_slopes(classifier, question.clips, targets)
    return relu(torch.einsum("nbd,bdthw->bnthw", slopes.mean((3, 4, 5)), features))


def gradient_input_maps(classifier: VideoClassifier, question: Question, _seed: int = 0) -> torch.Tensor:
    """Slope of logit A minus logit B at every pixel, times the pixel."""
    return _cells(attributions(classifier, question, (1.0,)))


def integrated_maps(classifier: VideoClassifier, question: Question, _seed: int = 0) -> torch.Tensor:
    """Integrated Gradients of logit A minus logit B on the way from a black clip."""
    return _cells(attributions(classifier, question, [(step + 0.5) / STEPS for step in range(STEPS)]))


def attributions(classifier: VideoClassifier, question: Question, points: Sequence[float]) -> torch.Tensor:
    """Mean slope of the margins at the given shares of the clips, times the pixels: (B, N, T, H, W), signed."""
    clips, apart = question.clips, margins(question.positive, question.negative)
    total = clips.new_zeros(question.negative.shape[1], *clips.shape)
    for point in points:
        with differentiating(classifier):
            shown = (point * clips.detach().clone()).requires_grad_()
            wanted = apart(classifier(shown))
            slopes = [torch.autograd.grad(one.sum(), shown, retain_graph=True)[0] for one in wanted.unbind(1)]
        total += torch.stack(slopes) / len(points)
    return (total * clips).sum(2).transpose(0, 1)


def scout_maps(classifier: VideoClassifier, question: Question, _seed: int = 0) -> torch.Tensor:
    """SCOUT's discriminant map: what speaks for A, and not for B, and for being sure.

    Being sure is the log-odds of A: it rises with A's probability, so its scaled map is the same, and never saturates.
    """

    def targets(logits: torch.Tensor) -> torch.Tensor:
        mine = logits.gather(1, question.positive.clone()[:, None])
        others = logits.scatter(1, question.positive.clone()[:, None], -torch.inf).logsumexp(1, keepdim=True)
        return torch.cat([mine, mine - others, logits.gather(1, question.negative.clone())], 1)

    features, slopes = map_slopes(classifier, question.clips, targets)
    found = relu((slopes * features).sum(2)).transpose(0, 1)  # (B, 2 + N, t, h, w)
    scaled = found / found.amax((2, 3, 4), keepdim=True).clamp_min(torch.finfo(found.dtype).tiny)
    return scaled[:, :1] * scaled[:, 1:2] * (1 - scaled[:, 2:])


def _cells(maps: torch.Tensor) -> torch.Tensor:
    """Average maps of pixels (B, N, T, H, W) to cells of space; every frame stays."""
    frames, height, width = maps.shape[2:]
    return adaptive_avg_pool3d(maps, (frames, min(height, CELLS), min(width, CELLS)))


MAKERS = (
    MapMaker("grad-cam", grad_cam_maps, 1, 1),
    MapMaker("hires-cam", hires_cam_maps, 1, 1),
    MapMaker("finer-cam", finer_cam_maps, 1, 1),
    MapMaker("gradient-input", gradient_input_maps, 1, 1),
    MapMaker("integrated-gradients", integrated_maps, STEPS, STEPS),
    MapMaker("scout", scout_maps, 1, 3),
)
