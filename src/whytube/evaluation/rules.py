"""The rules that every answer must keep, whoever's method it is: shapes, numbers, the frame, the area.

What cannot be judged is refused: wrong shapes, NaN, attributes that do not exist. What can be mended is: boxes are cut
off at the frame, as masking does, and a tube above the area is shrunk to it, which the results note.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from whytube.checks import fail, shape_of
from whytube.evaluation.metrics import tube_area
from whytube.search.verify import Regions
from whytube.tubes import box_areas

if TYPE_CHECKING:
    from whytube.search.verify import Question

ROUNDING = 1e-4
"""Share by which a tube may exceed the area: rounding, no enlargement."""


def checked_regions(regions: object, question: Question, k: int, *, name: str, words: int) -> Regions:
    """Require what a method promises; return its regions on the question's device, with boxes inside the frame.

    words: S. Boxes without an area become zeros.
    """
    if not isinstance(regions, Regions):
        raise fail(f"answer of {name!r}", "whytube.search.verify.Regions", type(regions).__name__)
    cases = (*question.negative.shape, k)
    for field, expected in (
        ("boxes", (*cases, question.clips.shape[2], 4)),
        ("attribute_ids", cases),
        ("scores", cases),
    ):
        value = getattr(regions, field)
        if not isinstance(value, torch.Tensor) or tuple(value.shape) != expected:
            got = shape_of(value) if isinstance(value, torch.Tensor) else type(value).__name__
            raise fail(f"{field} of {name!r}", f"of shape {expected}", got)
    if not torch.isfinite(regions.boxes).all():
        raise fail(f"boxes of {name!r}", "finite, zeros where there is no box", "NaN or infinite ones")
    if regions.scores.isnan().any():
        raise fail(f"scores of {name!r}", "numbers, -inf where there is no region", "NaN")
    for field, value, expected in (("masked_clips", regions.masked_clips, cases[:2]), ("fits", regions.fits, cases)):
        if value is not None and (not isinstance(value, torch.Tensor) or tuple(value.shape) != expected):
            raise fail(f"{field} of {name!r}", f"None or of shape {expected}", type(value).__name__)
    claimed = regions.masked_clips
    if claimed is not None and not bool((claimed.isfinite() & (claimed >= 0)).all()):
        raise fail(f"masked_clips of {name!r}", "numbers of at least 0", "others")
    ids = regions.attribute_ids
    if ids.is_floating_point() or ids.is_complex() or bool(((ids < -1) | (ids >= words)).any()):
        got = str(ids.dtype) if ids.is_floating_point() else f"{int(ids.min())} to {int(ids.max())}"
        raise fail(f"attribute_ids of {name!r}", f"whole numbers from -1 (no word) to {words - 1}", got)
    device, (height, width) = question.clips.device, question.clips.shape[-2:]
    boxes = regions.boxes.detach().to(device).float()
    boxes = torch.minimum(boxes.clamp_min(0), boxes.new_tensor([width, height, width, height]))
    boxes = torch.where((box_areas(boxes) > 0)[..., None], boxes, 0)
    return replace(regions, boxes=boxes, attribute_ids=ids.to(device).long(), scores=regions.scores.detach().to(device))


def limited(regions: Regions, question: Question, area: float | None) -> tuple[Regions, torch.Tensor]:
    """Shrink tubes that cover more than `area` of the clip; also say which were, (B, N, k) bool.

    Every box of such a tube is scaled about its centre by the same factor. None: no limit.
    """
    size = (question.clips.shape[-2], question.clips.shape[-1])
    covered = tube_area(regions.boxes.double(), size=size)
    large = torch.zeros_like(covered, dtype=torch.bool) if area is None else covered > area * (1 + ROUNDING)
    if area is None or not large.any():
        return regions, large
    factor = (area / covered).sqrt()[..., None, None]
    start, stop = torch.split(regions.boxes.double(), 2, dim=-1)
    middle, half = (start + stop) / 2, (stop - start) / 2 * factor
    shrunk = torch.cat([middle - half, middle + half], dim=-1).to(regions.boxes.dtype)
    return replace(regions, boxes=torch.where(large[..., None, None], shrunk, regions.boxes)), large
