"""The auxiliary model g: a linear score for every (class, attribute) pair, cell and form (sections 3.3 and 3.6).

    w_cs = w_c * w_s + w_c + w_s                                per scale, on 3x3 windows
    dm   = (w_pos - w_neg) * (1 + w_s) . window(h)              the additive w_s cancels in the difference

With a class bias, that of a convolution with an output for every (c, s), dm also has b_(pos, s) - b_(neg, s).

Scores of tubes are linear in the weights, so training needs no tape through the search: see values.py.

A tube's element takes one of K forms, scales x shapes. A shape is a box of 2 or 3 cells in each direction. Its weight
on the 3x3 window is the share of each cell that the box covers, normalised to sum 1. The windows of the four shapes are
combinations of the same four partial sums (centre, sides, ends, corners), so that four shapes cost one convolution.
The single form of section 3.2 is a box of one cell of the last map: K = 1, and of the window only its centre counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import nn

from whytube.checks import check_choice
from whytube.tubes import cell_boxes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from whytube.classifiers.base import VideoClassifier

Shapes: TypeAlias = "tuple[tuple[int, int], ...]"
SHAPES = ((2, 2), (2, 3), (3, 2), (3, 3))
"""Height and width in cells."""
SHAPE_SETS = {"multiple": SHAPES, "single": ((1, 1),)}
"""Shapes by name: those of section 3.6, on every scale, and that of section 3.2, on the last map alone."""
PARTS = 4
"""Partial sums of a window: centre, sides, ends, corners."""

TAPS = tuple((dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1))
"""The 3x3 window, row by row."""


def shape_windows(shapes: Shapes = SHAPES) -> torch.Tensor:
    """Overlap weights a_i of n shapes with the window's cells: (n, 9), each summing to 1."""
    rows = []
    for height, width in shapes:
        window = [_overlap(dy, height) * _overlap(dx, width) for dy, dx in TAPS]
        rows.append([weight / sum(window) for weight in window])
    return torch.tensor(rows)


def shape_parts(shapes: Shapes = SHAPES) -> torch.Tensor:
    """Weights of the partial sums (centre, sides, ends, corners) in n shapes: (n, 4)."""
    windows = shape_windows(shapes)
    one_of_each = [TAPS.index(tap) for tap in ((0, 0), (0, 1), (1, 0), (1, 1))]
    return windows[:, one_of_each]


def _overlap(offset: int, extent: int) -> float:
    """Share of the cell `offset` away from the centre that a box of `extent` cells covers."""
    return 1.0 if offset == 0 else (extent - 1) / 2


@dataclass(frozen=True)
class Forms:
    """K = scales x shapes forms over clips of `frames` x `size` pixels.

    Attributes:
        grids: (T, H, W) of each scale's feature map, finer first; the first is the common grid.
        size: (H, W) of the clip in pixels.
        frames: T of the clip.
        shapes: height and width of each in cells of its scale, 1 to 3.
    """

    grids: tuple[tuple[int, int, int], ...]
    size: tuple[int, int]
    frames: int
    shapes: Shapes = SHAPES

    @property
    def shape_set(self) -> str:
        """Name of the shapes in SHAPE_SETS."""
        return next(name for name, shapes in SHAPE_SETS.items() if shapes == self.shapes)

    @property
    def count(self) -> int:
        """K."""
        return len(self.grids) * len(self.shapes)

    @property
    def grid(self) -> tuple[int, int, int]:
        """The common grid (T, H, W)."""
        return self.grids[0]

    def to_common(self, scores: torch.Tensor, scale: int) -> torch.Tensor:
        """Bring scores (..., t, h, w) of a scale to the common grid: a cell takes the value of the cell it lies in."""
        for dim, (have, want) in enumerate(zip(self.grids[scale], self.grid, strict=True)):
            if have != want:
                index = torch.arange(want, device=scores.device) * have // want
                scores = scores.index_select(dim - 3, index)
        return scores

    def scale_cells(self, cells: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Scale, row and column on that scale's own map of cells (..., 3) of the common grid."""
        grids = torch.tensor(self.grids, device=cells.device)
        scale = cells[..., 0].clamp_min(0) // len(self.shapes)
        place = cells[..., 1:].clamp_min(0) * grids[scale][..., 1:] // grids[0, 1:]
        return scale, place[..., 0], place[..., 1]

    def boxes(self, cells: torch.Tensor) -> torch.Tensor:
        """Boxes in pixels of the clip for paths (..., t, 3) on the common grid: (..., T, 4), zeros outside the path."""
        _, row, col = self.scale_cells(cells)
        shapes = torch.tensor(self.shapes * len(self.grids), dtype=torch.float32, device=cells.device)
        grids = torch.tensor(self.grids, device=cells.device)[:, 1:].repeat_interleave(len(self.shapes), 0)
        own = torch.stack([cells[..., 0], row, col], -1)
        return cell_boxes(own, shapes, grids, frames=self.frames, size=self.size)


def window_tables(forms: Forms) -> dict[str, torch.Tensor]:
    """Tables of the window around every form and cell of the common grid, for every scale's own map.

    Entry 1 + (form * H + row) * W + column of tap i's part, which begins at tap_entries[i]; entry 0 is for no cell.
    places0, ...: the cell of the map's first step that the tap lies on. shares0, ...: its weight in the form's shape, 0
    beyond the border and for forms of other scales; the place then is 0.
    """
    form, row, col = torch.meshgrid(*(torch.arange(n) for n in (forms.count, *forms.grid[1:])), indexing="ij")
    scale, row, col = forms.scale_cells(torch.stack([form, row, col], -1).flatten(0, 2))
    shape, taps = form.flatten() % len(forms.shapes), torch.tensor(TAPS)
    y, x = (place + taps[:, i, None] for i, place in enumerate((row, col)))  # (9, entries - 1)
    tables = {"tap_entries": torch.arange(len(TAPS)) * (1 + len(shape))}
    for i, (_, height, width) in enumerate(forms.grids):
        inside = (scale == i) & (y >= 0) & (y < height) & (x >= 0) & (x < width)
        places = torch.where(inside, y * width + x, 0)
        shares = torch.where(inside, shape_windows(forms.shapes).T[:, shape], 0)
        for name, table in ((f"places{i}", places), (f"shares{i}", shares)):
            tables[name] = nn.functional.pad(table, (1, 0)).flatten()
    return tables


class Scores(nn.Module):
    """Weights w_c and w_s for C classes and S attributes on maps of `channels` channels each, one per scale.

    Maps are standardised first, (h - mean) * gain per channel: the identity until `standardise` is called. Where there
    are fewer scales than maps, the last maps are taken.
    class_bias: whether (class, attribute) pairs have a bias b_cs, (C, S); without one, `class_bias` is None. With one,
    w_c begins at zero, too, and the paper's loss at its all-zero level.
    """

    def __init__(
        self, classes: int, attributes: int, channels: Sequence[int], forms: Forms, *, class_bias: bool = False
    ) -> None:
        super().__init__()
        self.forms = forms
        self.channels = tuple(channels)
        self.class_weights = nn.ParameterList(_weights(classes, d) for d in channels)
        self.attribute_weights = nn.ParameterList(_weights(attributes, d) for d in channels)
        self.attribute_bias = nn.Parameter(torch.zeros(attributes))
        self.class_bias = nn.Parameter(torch.zeros(classes, attributes)) if class_bias else None
        if class_bias:
            for weights in self.class_weights:
                nn.init.zeros_(weights)
        for i, d in enumerate(channels):
            self.register_buffer(f"mean{i}", torch.zeros(d))
            self.register_buffer(f"gain{i}", torch.ones(d))
        self.register_buffer("parts", shape_parts(forms.shapes), persistent=False)
        self.register_buffer("windows", shape_windows(forms.shapes), persistent=False)
        # Constants of index arithmetic. They stay on the device: to copy them there, it would be waited for.
        for name, constant in window_tables(forms).items():
            self.register_buffer(name, constant, persistent=False)
        for i, (t, h, w) in enumerate(forms.grids):
            self.register_buffer(
                f"times{i}", torch.arange(forms.grid[0]) * t // forms.grid[0] * h * w, persistent=False
            )
            cells = forms.to_common(torch.arange(t * h * w).view(t, h, w), i).flatten()
            self.register_buffer(f"common{i}", cells, persistent=False)

    parts: torch.Tensor
    windows: torch.Tensor
    tap_entries: torch.Tensor

    def standardise(self, means: Sequence[torch.Tensor], deviations: Sequence[torch.Tensor]) -> None:
        """Give every channel mean 0 and a cell's d channels about unit length, so that tube sums are well scaled.

        means, deviations: (d,) of each map.
        """
        own = slice(-len(self.channels), None)
        for i, (mean, deviation) in enumerate(zip(means[own], deviations[own], strict=True)):
            self.get_buffer(f"mean{i}").copy_(mean)
            self.get_buffer(f"gain{i}").copy_(1 / (deviation.clamp_min(1e-3) * math.sqrt(self.channels[i])))

    def normalise(self, maps: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Standardise those of a classifier's maps (B, d, T, H, W) that are scored."""
        shape = (1, -1, 1, 1, 1)
        return tuple(
            (h - self.get_buffer(f"mean{i}").view(shape)) * self.get_buffer(f"gain{i}").view(shape)
            for i, h in enumerate(maps[-len(self.channels) :])
        )

    def forward(self, maps: Sequence[torch.Tensor], attributes: torch.Tensor | None = None) -> torch.Tensor:
        """Attribute scores of the classifier's own maps: see `attribute_volumes`, which takes standardised ones."""
        return self.attribute_volumes(self.normalise(maps), attributes)

    def tap_weights(self, kind: str, scale: int, chosen: torch.Tensor | None = None) -> torch.Tensor:
        """Weights of a scale, a row per tap: (classes or attributes, 9, d), or of those `chosen` (...): (..., 9, d)."""
        weights = (self.class_weights if kind == "class" else self.attribute_weights)[scale]
        own = weights if chosen is None else weights[chosen]
        laid: torch.Tensor = own.flatten(-2).transpose(-1, -2).contiguous()
        return laid

    def class_factors(self, attributes: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Weights w_c and 1 + w_s, without the additive w_s, which cancels in any class difference.

        attributes (B, s) -> per scale (C, 9, d) and (B, s, 9, d); -1, for no attribute, stands for the first one.
        """
        chosen, classes, gains = attributes.clamp_min(0).flatten(), [], []
        for scale in range(len(self.channels)):
            w_s = 1 + self.tap_weights("attribute", scale)
            classes.append(self.tap_weights("class", scale))
            gains.append(w_s.index_select(0, chosen).view(*attributes.shape, *w_s.shape[1:]))
        return classes, gains

    def class_kernels(self, attributes: torch.Tensor, classes: torch.Tensor | None = None) -> list[torch.Tensor]:
        """Weights w_c * (1 + w_s): attributes (B, s) -> per scale (B, C, s, 9, d), or of `classes` (B, c) alone."""
        scales, attributes = range(len(self.channels)), attributes.clamp_min(0)
        w_c = (self.tap_weights("class", scale, classes) for scale in scales)  # (C, 9, d) or (B, c, 9, d)
        gains = (1 + self.tap_weights("attribute", scale, attributes) for scale in scales)  # (B, s, 9, d)
        return [w[..., None, :, :] * gain[:, None] for w, gain in zip(w_c, gains, strict=True)]

    def attribute_kernels(self, attributes: torch.Tensor | None = None) -> list[torch.Tensor]:
        """Weights w_s, for any clip: per scale (1, S, 9, d); of `attributes` (B, s) alone: (B, s, 9, d)."""
        chosen = None if attributes is None else attributes.clamp_min(0)
        rows = (self.tap_weights("attribute", scale, chosen) for scale in range(len(self.channels)))
        return [w_s[None] if attributes is None else w_s for w_s in rows]

    def class_offsets(self, attributes: torch.Tensor, classes: torch.Tensor | None = None) -> torch.Tensor | None:
        """Bias b_cs of class scores: attributes (B, s) -> (B, C, s), or of `classes` (B, c); None without one."""
        if self.class_bias is None:
            return None
        attributes = attributes.clamp_min(0)
        if classes is None:
            return self.class_bias.T[attributes].transpose(1, 2)
        return self.class_bias[classes[:, :, None], attributes[:, None]]

    def class_volumes(
        self, maps: Sequence[torch.Tensor], attributes: torch.Tensor, classes: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Class scores w_c * (1 + w_s) . h, and the bias: maps and attributes (B, s) -> (B, C, s, K, T, H, W).

        classes: (B, c) makes volumes of these alone, (B, c, s, K, T, H, W).
        """
        volumes = self.volumes(maps, self.class_kernels(attributes, classes))
        offsets = self.class_offsets(attributes, classes)
        return volumes if offsets is None else volumes + offsets[..., None, None, None, None]

    def attribute_volumes(self, maps: Sequence[torch.Tensor], attributes: torch.Tensor | None = None) -> torch.Tensor:
        """Attribute scores w_s . h + b_s, how much a cell looks like attribute s: maps -> (B, S, K, T, H, W).

        attributes: (B, s) makes volumes of these alone, (B, s, K, T, H, W); -1, for none, stands for the first one.
        """
        bias = self.attribute_bias[None] if attributes is None else self.attribute_bias[attributes.clamp_min(0)]
        return self.volumes(maps, self.attribute_kernels(attributes)) + bias[..., None, None, None, None]

    def step_volumes(self, rows: Sequence[torch.Tensor], attribute_ids: torch.Tensor) -> torch.Tensor:
        """Attribute scores w_s . h of single steps, without b_s: (R, d, h, w) per scale -> (R, s, K, H, W).

        rows: of standardised maps. attribute_ids: (R, s), the few attributes that are asked about in each row. Quick to
        differentiate: one matrix product for all taps, shifted and weighted after.
        """
        volumes = []
        for scale, h in enumerate(rows):
            count, _, *grid = h.shape
            taps = self.tap_weights("attribute", scale)[attribute_ids.clamp_min(0)]
            products = taps.flatten(1, 2) @ h.flatten(2)  # (R, s * 9, h * w)
            padded = torch.nn.functional.pad(products.view(count, -1, len(TAPS), *grid), (1, 1, 1, 1))
            shifted = [
                padded[:, :, tap, 1 + dy : 1 + dy + grid[0], 1 + dx : 1 + dx + grid[1]]
                for tap, (dy, dx) in enumerate(TAPS)
            ]
            own = torch.einsum("kt,trshw->rskhw", self.windows, torch.stack(shifted))
            row, col = (
                torch.arange(want, device=h.device) * have // want
                for have, want in zip(grid, self.forms.grid[1:], strict=True)
            )
            volumes.append(own[..., row, :][..., col])
        return torch.cat(volumes, 2)

    def volumes(self, maps: Sequence[torch.Tensor], kernels: Iterable[torch.Tensor]) -> torch.Tensor:
        """Scores of every form and cell: maps (B, d, t, h, w), kernels (B or 1, ..., 9, d) -> (B, ..., K, T, H, W)."""
        batch, cells = len(maps[0]), math.prod(self.forms.grid)
        volumes = None
        for scale, (h, kernel) in enumerate(zip(maps, kernels, strict=True)):
            sums = self._tap_sums(h, kernel.flatten(1, -3)).flatten(0, 1).flatten(2)  # (B * n, 4, t * h * w)
            if volumes is None:
                rows = kernel.shape[1:-2]
                volumes = h.new_empty(len(sums), self.forms.count, cells)
            shapes = len(self.forms.shapes)
            parts, own = self.parts.expand(len(sums), -1, -1), slice(scale * shapes, (scale + 1) * shapes)
            if self.forms.grids[scale] == self.forms.grid:
                volumes[:, own].baddbmm_(parts, sums, beta=0)
            else:
                scores = torch.bmm(parts, sums)
                del sums
                volumes[:, own] = scores.index_select(2, self.get_buffer(f"common{scale}"))
        assert volumes is not None
        return volumes.view(batch, *rows, self.forms.count, *self.forms.grid)

    def _tap_sums(self, h: torch.Tensor, kernels: torch.Tensor) -> torch.Tensor:
        """Convolve h (B, d, t, h, w) with kernels (B or 1, n, 9, d): the four partial sums (B, n, 4, t, h, w).

        Nine matrix products, one per tap, which are shifted and added. Few operations count on a GPU, where each costs
        its host more than the device: the maps are neither padded nor copied.
        """
        batch, _, *grid = h.shape
        flat = h.flatten(2)
        sums = h.new_zeros(batch, kernels.shape[1], PARTS, *grid)
        for tap, shift in enumerate(TAPS):
            product = torch.bmm(kernels[:, :, tap].expand(batch, -1, -1), flat).view(batch, -1, *grid)
            here, there = (
                [slice(max(0, -sign * by), side - max(0, sign * by)) for by, side in zip(shift, grid[1:], strict=True)]
                for sign in (1, -1)
            )
            part = abs(shift[1]) + 2 * abs(shift[0])  # centre, sides, ends, corners
            sums[:, :, part, :, here[0], here[1]].add_(product[..., there[0], there[1]])
        return sums


def build_scores(
    classifier: VideoClassifier,
    attributes: int,
    *,
    shapes: str = "multiple",
    class_bias: bool = False,
    seed: int = 0,
) -> Scores:
    """Build untrained scores that fit a classifier's maps; shapes: a name of SHAPE_SETS."""
    check_choice(shapes, "shapes", SHAPE_SETS)
    maps = classifier.map_shapes()[-1:] if shapes == "single" else classifier.map_shapes()
    grids = tuple((t, h, w) for _, t, h, w in maps)
    forms = Forms(grids, classifier.size, classifier.frames, SHAPE_SETS[shapes])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        channels = [d for d, *_ in maps]
        return Scores(len(classifier.classes), attributes, channels, forms, class_bias=class_bias)


def _weights(rows: int, channels: int) -> nn.Parameter:
    """Draw a convolution's usual initial weights: (rows, d, 3, 3)."""
    bound = 1 / math.sqrt(9 * channels)
    return nn.Parameter(torch.empty(rows, channels, 3, 3).uniform_(-bound, bound))
