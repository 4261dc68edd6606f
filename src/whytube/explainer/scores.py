"""The auxiliary model g: a linear score for every (class, attribute) pair, cell and form (sections 3.3 and 3.6).

    w_cs = w_c * w_s + w_c + w_s                                per scale, on 3x3 windows
    dm   = (w_pos - w_neg) * (1 + w_s) . window(h)              the additive w_s cancels in the difference

Scores of tubes are linear in the features, so training needs no tape through the search: find the paths, pool the
features along them, and differentiate `dw . pool(h, R*)` (the paper's maximum subpath pooling).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from torch import nn

from whytube.explainer.forms import SHAPES, TAPS, Forms, shape_parts, shape_windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whytube.classifiers.base import VideoClassifier

PARTS, WINDOWS = shape_parts(), shape_windows()


class Scores(nn.Module):
    """Weights w_c and w_s for C classes and S attributes on maps of `channels` channels each, one per scale.

    Maps are standardised first, (h - mean) * gain per channel: the identity until `standardise` is called.
    """

    def __init__(self, classes: int, attributes: int, channels: Sequence[int], forms: Forms) -> None:
        super().__init__()
        self.forms = forms
        self.channels = tuple(channels)
        self.class_weights = nn.ParameterList(_weights(classes, d) for d in channels)
        self.attribute_weights = nn.ParameterList(_weights(attributes, d) for d in channels)
        self.attribute_bias = nn.Parameter(torch.zeros(attributes))
        for i, d in enumerate(channels):
            self.register_buffer(f"mean{i}", torch.zeros(d))
            self.register_buffer(f"gain{i}", torch.ones(d))
        self.register_buffer("parts", PARTS.clone(), persistent=False)
        self.register_buffer("windows", WINDOWS.clone(), persistent=False)

    parts: torch.Tensor
    windows: torch.Tensor

    def standardise(self, means: Sequence[torch.Tensor], deviations: Sequence[torch.Tensor]) -> None:
        """Give every channel mean 0 and a cell's d channels about unit length, so that tube sums are well scaled.

        means, deviations: (d,) of each scale's map.
        """
        for i, (mean, deviation) in enumerate(zip(means, deviations, strict=True)):
            self.get_buffer(f"mean{i}").copy_(mean)
            self.get_buffer(f"gain{i}").copy_(1 / (deviation.clamp_min(1e-3) * math.sqrt(self.channels[i])))

    def normalise(self, maps: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Standardise maps (B, d, T, H, W)."""
        shape = (1, -1, 1, 1, 1)
        return tuple(
            (h - self.get_buffer(f"mean{i}").view(shape)) * self.get_buffer(f"gain{i}").view(shape)
            for i, h in enumerate(maps)
        )

    def class_volumes(self, maps: Sequence[torch.Tensor], attributes: torch.Tensor) -> torch.Tensor:
        """M without what cancels, w_c * (1 + w_s) . h: maps and attributes (B, s) -> (B, C, s, K, T, H, W)."""
        volumes = []
        for scale, h in enumerate(maps):
            w_c, w_s = self.class_weights[scale], self.attribute_weights[scale]
            kernels = w_c[None, :, None] * (1 + w_s[attributes.clamp_min(0)])[:, None]  # (B, C, s, d, 3, 3)
            volumes.append(self._volumes(h, kernels, scale))
        return torch.cat(volumes, 3)

    def attribute_volumes(self, maps: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return what cancels, w_s . h + b_s, how much a cell looks like attribute s: maps -> (B, S, K, T, H, W)."""
        volumes = [self._volumes(h, self.attribute_weights[scale][None], scale) for scale, h in enumerate(maps)]
        return torch.cat(volumes, 2) + self.attribute_bias.view(1, -1, 1, 1, 1, 1)

    def _volumes(self, h: torch.Tensor, kernels: torch.Tensor, scale: int) -> torch.Tensor:
        """Convolve h (B, d, t, h, w) with kernels (B or 1, ..., d, 3, 3): (B, ..., 4, T, H, W).

        Nine matrix products, one per tap, gathered into the four partial sums that all shapes share.
        """
        batch, d, *grid = h.shape
        many = kernels.shape[1:-3]
        padded = torch.nn.functional.pad(h, (1, 1, 1, 1))
        weights = kernels.flatten(1, -4).expand(batch, -1, -1, -1, -1).permute(3, 4, 0, 1, 2)  # (3, 3, B, n, d)
        weights = weights.contiguous()
        sums = h.new_zeros(4, batch, weights.shape[3], math.prod(grid))
        for dy, dx in TAPS:
            x = padded[..., 1 + dy : 1 + dy + grid[1], 1 + dx : 1 + dx + grid[2]].reshape(batch, d, -1)
            part = abs(dx) + 2 * abs(dy)  # centre, sides, ends, corners
            sums[part].baddbmm_(weights[1 + dy, 1 + dx], x)
        scores = torch.einsum("kp,pbnx->bnkx", self.parts, sums)
        return self.forms.to_common(scores.view(batch, *many, len(SHAPES), *grid), scale)

    def pool(self, maps: Sequence[torch.Tensor], cells: torch.Tensor, item: torch.Tensor) -> list[torch.Tensor]:
        """Sum windows of features along paths, weighted by their forms: the paper's pool of h over R.

        maps of B items, cells (N, T, 3), item (N,) the clip of each path -> per scale (N, 9 * d).
        """
        scales, rows, cols = self.forms.scale_cells(cells)  # (N, T) each
        windows = self.windows[cells[..., 0].clamp_min(0) % len(SHAPES)]  # (N, T, 9)
        inside = cells[..., 0] >= 0
        steps = torch.arange(cells.shape[1], device=cells.device)
        taps = torch.tensor(TAPS, device=cells.device)  # (9, 2)
        pooled = []
        for scale, h in enumerate(maps):
            _, d, t, height, width = h.shape
            table = F.pad(h, (1, 1, 1, 1)).permute(0, 2, 3, 4, 1).reshape(-1, d)  # a row of features per padded cell
            step = steps * t // len(steps)
            row = rows[:, None] + 1 + taps[:, :1]  # (N, 9, T)
            col = cols[:, None] + 1 + taps[:, 1:]
            index = ((item[:, None, None] * t + step) * (height + 2) + row) * (width + 2) + col
            here = (inside & (scales == scale))[:, None]  # (N, 1, T)
            weight = torch.where(here, windows.transpose(1, 2), 0)
            bags = F.embedding_bag(
                torch.where(here, index, 0).flatten(0, 1),
                table,
                mode="sum",
                per_sample_weights=weight.flatten(0, 1).to(table.dtype),
            )
            pooled.append(bags.view(len(cells), -1))
        return pooled

    def tap_weights(self, kind: str, scale: int) -> torch.Tensor:
        """Weights of a scale laid out as `pool` does: (classes or attributes, 9 * d)."""
        weights = self.class_weights if kind == "class" else self.attribute_weights
        laid: torch.Tensor = weights[scale].permute(0, 2, 3, 1).flatten(1)
        return laid


def build_scores(classifier: VideoClassifier, attributes: int, *, seed: int = 0) -> Scores:
    """Build untrained scores that fit a classifier's maps."""
    shapes = classifier.map_shapes()
    forms = Forms(tuple((t, h, w) for _, t, h, w in shapes), classifier.size, classifier.frames)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Scores(len(classifier.classes), attributes, [d for d, *_ in shapes], forms)


def _weights(rows: int, channels: int) -> nn.Parameter:
    """Draw a convolution's usual initial weights: (rows, d, 3, 3)."""
    bound = 1 / math.sqrt(9 * channels)
    return nn.Parameter(torch.empty(rows, channels, 3, 3).uniform_(-bound, bound))
