"""Hide what a tube covers: tubes -> mask at the classifier's resolution -> erased clips."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

from whytube.checks import check_choice, check_tensor, fail, shape_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from whytube.tubes.tube import Tube

# Standard deviation of the "blur" fill, as a fraction of the frame's shorter side.
BLUR = 0.1


def tube_mask(
    tubes: Sequence[Tube],
    indices: ArrayLike,
    size: ArrayLike,
    *,
    resolution: tuple[int, int],
    device: torch.device | str | None = None,
) -> torch.Tensor:
    """Rasterise B tubes: True where the centre of an input pixel lies in the tube's box, (B, T, H, W) bool.

    indices: (T,) source frames of the clip, shared by all tubes, or (B, T). A frame without a box is all False.
    size: (height, width) of the video's own frames, shared, or (B, 2).
    resolution: (H, W) of the clips the mask is for, which show the whole frame.
    """
    count = len(tubes)
    frames = np.asarray(indices, dtype=np.int64)
    sizes = np.asarray(size, dtype=np.float64)
    if frames.ndim not in (1, 2) or (frames.ndim == 2 and len(frames) != count):
        raise fail("indices", f"of shape (T,) or ({count}, T)", frames.shape)
    if sizes.shape not in ((2,), (count, 2)) or not (sizes > 0).all():
        raise fail("size", f"(height, width), or of shape ({count}, 2)", size)
    frames = np.broadcast_to(frames, (count, frames.shape[-1]))
    sizes = np.broadcast_to(sizes, (count, 2))
    boxes = np.zeros((count, frames.shape[1], 4))
    for b, tube in enumerate(tubes):
        scale = np.array(resolution) / sizes[b]
        boxes[b] = tube.at(frames[b]) * [scale[1], scale[0], scale[1], scale[0]]
    return box_masks(torch.from_numpy(boxes).to(device), resolution)


def box_masks(boxes: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    """Pixels whose centre lies in the box: boxes (..., T, 4) -> bool (..., T, H, W)."""
    rows, columns = _sides(boxes, size)
    return rows[..., :, None] & columns[..., None, :]


def cell_coverage(boxes: torch.Tensor, grid: tuple[int, int, int], size: tuple[int, int]) -> torch.Tensor:
    """Share of every cell of a grid (t, h, w) that tubes (M, T, 4) in pixels of `size` cover: (M, t, h, w).

    A step covers its frames, as in `cell_boxes`.
    """
    steps, rows, columns = grid
    frames = boxes.shape[1]
    step = torch.arange(frames, device=boxes.device) * steps // frames
    share = functional.one_hot(step, steps).to(boxes.dtype)
    share = share / share.sum(0).clamp_min(1)  # (T, t)
    high = _covered(boxes[..., 1], boxes[..., 3], rows, size[0] / rows)  # (M, T, h)
    wide = _covered(boxes[..., 0], boxes[..., 2], columns, size[1] / columns)
    return torch.einsum("ft,mfh,mfw->mthw", share, high, wide)


def _covered(low: torch.Tensor, high: torch.Tensor, cells: int, pitch: float) -> torch.Tensor:
    """Share of each of `cells` intervals of length `pitch` between low and high (...): (..., cells)."""
    edge = torch.arange(cells, device=low.device) * pitch
    return (torch.minimum(high[..., None], edge + pitch) - torch.maximum(low[..., None], edge)).clamp_min(0) / pitch


def _sides(boxes: torch.Tensor, size: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows (..., T, H) and columns (..., T, W) of pixels whose centre lies in the box: (..., T, 4) -> bool."""
    x1, y1, x2, y2 = (boxes[..., i, None] for i in range(4))
    x = torch.arange(size[1], device=boxes.device) + 0.5
    y = torch.arange(size[0], device=boxes.device) + 0.5
    return (y >= y1) & (y < y2), (x >= x1) & (x < x2)


def erase(clips: torch.Tensor, mask: torch.Tensor, *, fill: str = "mean") -> torch.Tensor:
    """Replace what the mask covers: clips (B, 3, T, H, W) and mask (B, T, H, W) bool -> new (B, 3, T, H, W).

    fill, one of FILLS: "mean", the clip's mean colour; "blur", the frame under a strong Gaussian; "freeze", what was at
    that place in the first frame of the clip that the mask touches, so that motion stops and appearance stays; "zero",
    black; "still", what is at that place on average over the clip, where nothing moves; "shift", what is half a frame
    to the side; "noise", random pixels with the clip's mean and deviation, always the same for clips of one shape.
    """
    check_tensor(clips, "clips", "(B, 3, T, H, W)", ndim=5)
    check_tensor(mask, "mask", "(B, T, H, W)", ndim=4, floating=False)
    check_choice(fill, "fill", FILLS)
    if mask.dtype != torch.bool:
        raise fail("mask", "bool", str(mask.dtype))
    if mask.shape != (clips.shape[0], *clips.shape[2:]):
        raise fail("mask", f"of shape (B, T, H, W) for clips of shape {shape_of(clips)}", shape_of(mask))
    return torch.where(mask[:, None], FILLS[fill](clips, mask), clips)


def erase_boxes(clips: torch.Tensor, boxes: torch.Tensor, *, fill: str = "mean") -> torch.Tensor:
    """Replace what boxes (B, T, 4) in pixels of clips (B, 3, T, H, W) cover; see `erase`."""
    return erase(clips, box_masks(boxes, (clips.shape[-2], clips.shape[-1])), fill=fill)


@dataclass(frozen=True)
class Eraser:
    """Erases many tubes of the same clips (B, 3, T, H, W), as `erase` does; what all masks share is computed once."""

    clips: torch.Tensor
    fill: str

    def whole(self, whose: torch.Tensor, boxes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Erase boxes (n, T, 4) of the clips whose (n,): (n, 3, T, H, W), and whether any pixel changed, (n, 1)."""
        mask = box_masks(boxes, (self.clips.shape[-2], self.clips.shape[-1]))
        if self._shared is None:
            shown = self.clips[whose]
            filled = FILLS[self.fill](shown, mask)
        else:  # a single clip need not be repeated
            shown, filled = (x if len(x) == 1 else x[whose] for x in (self.clips, self._shared))
        erased = torch.where(mask[:, None], filled, shown)
        return erased, (erased != shown).flatten(1).any(1, keepdim=True)

    def block(self, whose: int, boxes: torch.Tensor) -> tuple[torch.Tensor, tuple[slice, slice, slice]] | None:
        """Erase boxes (T, 4) of a clip, in the smallest block that holds them: (1, 3, t, h, w), and its place.

        None where that changes no pixel.
        """
        shown = self.clips[whose : whose + 1]
        rows, columns = _sides(boxes, (shown.shape[-2], shown.shape[-1]))
        frames = rows.any(1) & columns.any(1)
        sides = [side.nonzero().flatten().tolist() for side in (frames, rows[frames].any(0), columns[frames].any(0))]
        if not all(sides):
            return None
        t, h, w = (slice(side[0], side[-1] + 1) for side in sides)
        if self._shared is None:
            filled = FILLS[self.fill](shown, frames[None, :, None, None])
        else:
            filled = self._shared[whose : whose + 1]
        before, mask = shown[..., t, h, w], rows[t, h, None] & columns[t, None, w]
        erased = torch.where(mask, filled.expand_as(shown)[..., t, h, w], before)
        return None if torch.equal(erased, before) else (erased, (t, h, w))

    @functools.cached_property
    def _shared(self) -> torch.Tensor | None:
        """What any mask is filled with, (B, 3, T, H, W); None where that depends on the mask."""
        check_choice(self.fill, "fill", FILLS)
        no_mask = torch.empty(0, dtype=torch.bool)
        return None if self.fill in MASK_FILLS else FILLS[self.fill](self.clips, no_mask).expand_as(self.clips)


def _mean(clips: torch.Tensor, _mask: torch.Tensor) -> torch.Tensor:
    return clips.mean(dim=(2, 3, 4), keepdim=True)


def _zero(clips: torch.Tensor, _mask: torch.Tensor) -> torch.Tensor:
    return clips.new_zeros(())


def _still(clips: torch.Tensor, _mask: torch.Tensor) -> torch.Tensor:
    return clips.mean(dim=2, keepdim=True)


def _shift(clips: torch.Tensor, _mask: torch.Tensor) -> torch.Tensor:
    return clips.roll(clips.shape[-1] // 2, dims=-1)


def _blur(clips: torch.Tensor, _mask: torch.Tensor) -> torch.Tensor:
    """Two matrix products, one per direction; weights that would fall outside the frame are shared by those inside."""
    height, width = clips.shape[-2:]
    sigma = max(BLUR * min(height, width), 1e-3)
    return _gaussian(height, sigma, clips) @ clips @ _gaussian(width, sigma, clips).T


def _gaussian(n: int, sigma: float, like: torch.Tensor) -> torch.Tensor:
    """Rows of Gaussian weights that sum to 1, (n, n)."""
    place = torch.arange(n, device=like.device, dtype=torch.float32)
    weights = torch.exp(-0.5 * ((place[:, None] - place[None]) / sigma) ** 2)
    return (weights / weights.sum(dim=1, keepdim=True)).to(like.dtype)


def _freeze(clips: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    first = mask.flatten(2).any(dim=2).int().argmax(dim=1)
    return clips[torch.arange(len(clips), device=clips.device), :, first][:, :, None]


def _noise(clips: torch.Tensor, _mask: torch.Tensor) -> torch.Tensor:
    if not len(clips):  # no clip has no deviation
        return clips
    deviation, mean = torch.std_mean(clips, dim=(2, 3, 4), keepdim=True)
    return (mean + deviation * _drawn(tuple(clips.shape[1:]), str(clips.device)).to(clips.dtype)).clamp(0, 1)


@functools.lru_cache(maxsize=4)
def _drawn(shape: tuple[int, ...], device: str) -> torch.Tensor:
    """Draw normal numbers, the same ones for a shape on every machine."""
    return torch.from_numpy(np.random.default_rng(0).standard_normal(shape, dtype=np.float32)).to(device)


FILLS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "mean": _mean,
    "blur": _blur,
    "freeze": _freeze,
    "zero": _zero,
    "still": _still,
    "shift": _shift,
    "noise": _noise,
}
PAPERS_FILL = "zero"
"""What the paper masks with, x * z. Some methods have seen it, so it has figures of its own, "fills.zero..."."""
MASK_FILLS = ("freeze",)
"""Those that depend on which frames the mask touches; the others depend on the clip alone."""
