"""Tubes through a contrastive Grad-CAM map: proposals that need no training.

Grad-CAM is Selvaraju et al. 2017, here of the difference of two logits: where the features speak for A rather than B.
The tubes come from the same search that the paper's method uses. It needs no training and works for any classifier.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from whytube.classifiers.base import evaluating
from whytube.errors import ModelError
from whytube.subpath import top_subpaths
from whytube.tubes import cell_boxes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from whytube.classifiers.base import VideoClassifier
    from whytube.search.verify import Question

SIDES = (2 / 7, 3 / 7)
"""Sides of a square box, as fractions of the frame's shorter side: the paper's smallest and largest coarse forms."""
STRETCH = 1.5
"""How much longer than a square of the same area tall and wide boxes are."""
PER_FORM = 2
"""Tubes that each form proposes."""
GRID = 14
"""Cells per side of the frame, at least; a coarser map is upsampled."""
BACKGROUND = 0.5
"""Offset, as a fraction of (max - mean) over boxes; only boxes above it score positive. Higher means shorter tubes."""


def map_tubes(classifier: VideoClassifier, question: Question) -> tuple[torch.Tensor, torch.Tensor]:
    """Find the best tubes of small and large, square, tall and wide boxes through the contrastive Grad-CAM map.

    Returns boxes (B, N, M, T, 4), the best of each form first, and which of them there are, (B, N, M).
    """
    frames, height, width = question.clips.shape[2:]
    maps = contrastive_maps(classifier, question.clips, question.positive, question.negative)
    sides = [share * min(height, width) for share in SIDES]
    shapes = [(side * stretch, side / stretch) for side in sides for stretch in (1.0, STRETCH, 1 / STRETCH)]
    forms = [(min(tall, height), min(wide, width)) for tall, wide in shapes]
    found = box_tubes(maps, forms, PER_FORM, frames=frames, size=(height, width))
    boxes, values = (part.transpose(2, 3).flatten(2, 3) for part in found)
    return boxes, values > -torch.inf


def contrastive_maps(
    classifier: VideoClassifier, clips: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor
) -> torch.Tensor:
    """Grad-CAM of logit[positive] - logit[negative]: (B, 3, T, H, W), (B,), (B, N) -> (B, N, t, h, w).

    It is taken at the last map that the logits depend on. One run of the classifier for the batch, then one step back
    to the map per negative. Works under `no_grad` and `inference_mode`; the classifier's modes and gradients stay as
    they were.
    """
    features, slopes = map_slopes(classifier, clips, margins(positive, negative))
    return functional.relu(torch.einsum("nbd,bdthw->bnthw", slopes.mean((3, 4, 5)), features))


def margins(positive: torch.Tensor, negative: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """Make the function from logits (B, C) to logit[positive] - logit[negative]: (B,), (B, N) -> (B, N)."""
    # Clones may be differentiated also where the question was asked in inference mode.
    return lambda logits: logits.gather(1, positive.clone()[:, None]) - logits.gather(1, negative.clone())


@contextmanager
def differentiating(classifier: VideoClassifier) -> Iterator[None]:
    """Differentiate a network for a block, in evaluation mode, also under `no_grad` and `inference_mode`."""
    with evaluating(classifier), torch.inference_mode(False), torch.enable_grad():
        yield


def map_slopes(
    classifier: VideoClassifier, clips: torch.Tensor, targets: Callable[[torch.Tensor], torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Slopes of targets (B, C) -> (B, N) of the logits, at the last map that they depend on.

    Returns the map (B, d, t, h, w) and the slopes (N, B, d, t, h, w).
    """
    with differentiating(classifier):
        logits, maps = classifier.features(clips.detach().clone().requires_grad_())
        wanted = targets(logits)
        for features in reversed(maps):
            slopes = _slopes(wanted, features)
            if slopes is not None:
                return features.detach(), slopes
    raise ModelError(
        "no gradient of the logits reaches the classifier's maps, so that nothing says where they come from. "
        "Name earlier layers in `wrap`: of a last block often only the class token is read"
    )


def _slopes(wanted: torch.Tensor, features: torch.Tensor) -> torch.Tensor | None:
    """Slopes of wanted (B, N) at features (B, d, t, h, w): (N, B, d, t, h, w), None where all are zero."""
    if not wanted.requires_grad or not features.requires_grad:
        return None
    found = []
    for n in range(wanted.shape[1]):
        (slope,) = torch.autograd.grad(wanted[:, n].sum(), features, retain_graph=True, allow_unused=True)
        found.append(torch.zeros_like(features) if slope is None else slope)
    slopes = torch.stack(found)
    return slopes if slopes.any() else None


def box_tubes(
    maps: torch.Tensor,
    forms: Sequence[tuple[float, float]],
    k: int,
    *,
    frames: int,
    size: tuple[int, int],
    grid: int = GRID,
    background: float | None = BACKGROUND,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Find the k best tubes of F boxes through maps (B, N, t, h, w): boxes (B, N, F, k, T, 4), values (B, N, F, k).

    forms: (height, width) of each box in pixels of the clip, which has `frames` frames of `size`. Tubes of a box keep
    apart by half of it at least; where there are fewer than k, the rest have value -inf. grid, background: see GRID,
    BACKGROUND. Without a background (None) every box scores positive, so that tubes last the whole clip.
    """
    cells = (max(maps.shape[-2], grid), max(maps.shape[-1], grid))
    fine = functional.interpolate(maps.flatten(0, 1), size=cells, mode="bilinear", align_corners=False)
    extents = [(height / size[0] * cells[0], width / size[1] * cells[1]) for height, width in forms]
    means = torch.stack([box_means(fine, extent) for extent in extents], 1)
    means = means.view(*maps.shape[:2], len(forms), maps.shape[2], *cells)
    average = means.mean((3, 4, 5), keepdim=True)
    best = means.amax((3, 4, 5), keepdim=True)
    if background is None:
        least = means.amin((3, 4, 5), keepdim=True)
        scores = means - least + 1e-3 * (best - least) + torch.finfo(means.dtype).tiny
    else:
        scores = means - average - background * (best - average)
    gaps = torch.tensor([round(min(extent) / 2) for extent in extents], device=maps.device)
    found = top_subpaths(scores[:, :, :, None], k, gap=gaps)
    own = torch.arange(len(forms), device=maps.device).view(-1, 1, 1)  # found.cells are (B, N, F, k, t, 3)
    found.cells[..., 0] = torch.where(found.cells[..., 0] >= 0, own, -1)
    grids = maps.new_tensor(cells).expand(len(forms), -1)
    return cell_boxes(found.cells, maps.new_tensor(extents), grids, frames=frames, size=size), found.value


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
