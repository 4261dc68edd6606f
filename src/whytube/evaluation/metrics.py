"""What a region is worth, case by case: the metrics of the paper's section 4.1 and their controls.

A case is (clip, negative class, rank of the region); tensors are (B, N, k) over cases, floating point, NaN where a
figure is not defined. Two decisions hold everywhere:

- Ties: where several classes or attributes share a value, a hit counts as the chance of a hit when ties are broken at
  random. An entity's box belongs to all its attributes, so a tube that lies on it cannot tell them apart.
- Empties: a region without volume hits nothing, and a word whose box the region does not touch is no hit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from whytube.checks import check_int
from whytube.tubes import box_areas, region_iou

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np


def expected_top(
    values: torch.Tensor, target: torch.Tensor, *, top: int, among: torch.Tensor | None = None
) -> torch.Tensor:
    """Chance that `target` is among the `top` largest values, ties broken at random.

    values: (..., M). target: (...) places in M; -1 is never a hit. among: (..., M) bool, which places take part.
    """
    check_int(top, "top", 1)
    taking = torch.ones_like(values, dtype=torch.bool) if among is None else among.expand_as(values)
    place = target.clamp_min(0)[..., None]
    own = values.gather(-1, place)
    better = (taking & (values > own)).sum(-1)
    tied = (taking & (values == own)).sum(-1).clamp_min(1)
    chance = ((top - better) / tied).clamp(0, 1)
    return torch.where((target >= 0) & taking.gather(-1, place)[..., 0], chance, 0).double()


def negative_class_hits(
    before: torch.Tensor, after: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor, *, top: int
) -> torch.Tensor:
    """Negative class accuracy: whether the class asked about is among the `top` that gain most by the masking.

    before: (B, C) probabilities, or their logarithms. after: (..., B, N, k, C), the same once the region is masked.
    positive: (B,). negative: (B, N). All classes but the positive one are ranked: (..., B, N, k).
    """
    change = after - before[:, None, None]
    among = torch.ones_like(before, dtype=torch.bool).scatter(1, positive[:, None], False)
    target = negative[..., None].expand(change.shape[:-1])
    return expected_top(change, target, top=top, among=among[:, None, None])


def class_change(before: torch.Tensor, after: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    """How the value of one class per case changes: (B, C), (..., B, N, k, C) and classes (B, N) -> (..., B, N, k)."""
    change = after - before[:, None, None]
    place = classes[..., None].expand(change.shape[:-1])[..., None]
    return change.gather(-1, place)[..., 0]


def annotated_boxes(
    boxes: Sequence[Mapping[str, np.ndarray]], attribute_names: Sequence[str], *, frames: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Annotated boxes (B, S, T, 4), zeros where there is none, and which attribute has any, (B, S) bool."""
    places = {name: place for place, name in enumerate(attribute_names)}
    found = torch.zeros(len(boxes), len(attribute_names), frames, 4, dtype=torch.float64)
    for b, of_clip in enumerate(boxes):
        for name, track in of_clip.items():
            if name in places:
                found[b, places[name]] = torch.as_tensor(track, dtype=torch.float64)
    return found, (box_areas(found) > 0).any(-1)


def attribute_iou(regions: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
    """IoU of regions (B, N, k, T, 4) with every attribute's boxes (B, S, T, 4): (B, N, k, S).

    Only frames with an annotated box of any attribute count: where nobody drew boxes, none can be missed.
    """
    drawn = (box_areas(boxes) > 0).any(1)[:, None, None, :, None]
    seen = torch.where(drawn, regions.to(boxes.dtype), 0)
    return region_iou(seen[:, :, :, None], boxes[:, None, None])


def concept_hits(iou: torch.Tensor, known: torch.Tensor, ids: torch.Tensor, *, top: int) -> torch.Tensor:
    """Concept accuracy: whether the region's word is among the `top` annotated attributes by IoU with the region.

    iou: (B, N, k, S). known: (B, S), the attributes annotated in the clip. ids: (B, N, k), -1 for none.
    Returns (B, N, k): 0 for a word that is not annotated or whose box is not touched, NaN for a clip without boxes.
    """
    touched = iou.gather(-1, ids.clamp_min(0)[..., None])[..., 0] > 0
    hits = expected_top(iou, ids, top=top, among=known[:, None, None]) * touched
    return _defined(hits, known.any(1))


def tied_hits(iou: torch.Tensor, known: torch.Tensor, ids: torch.Tensor, *, top: int) -> torch.Tensor:
    """Concept accuracy in which a tie counts as a hit: whether fewer than `top` boxes overlap the region more.

    As in `concept_hits`, where attributes that share a box share the hit; at top-1 it is `right_box`.
    """
    own = iou.gather(-1, ids.clamp_min(0)[..., None])
    better = (known[:, None, None] & (iou > own)).sum(-1)
    annotated = known[:, None, None].expand(iou.shape).gather(-1, ids.clamp_min(0)[..., None])[..., 0]
    return _defined(((ids >= 0) & annotated & (own[..., 0] > 0) & (better < top)).double(), known.any(1))


def printed_hits(
    regions: torch.Tensor, boxes: torch.Tensor, known: torch.Tensor, ids: torch.Tensor, *, top: int
) -> torch.Tensor:
    """Concept accuracy as the paper prints it: whether the word is among the `top` attributes of the largest IoU.

    Unlike in `concept_hits` all frames count, also those in which nobody drew a box, and a box that the region does
    not touch is one of the boxes: where fewer than `top` are touched, it is a hit. Ties are broken at random; the paper
    does not say how. regions: (B, N, k, T, 4). boxes: (B, S, T, 4). known: (B, S). ids: (B, N, k); -1 is a miss.
    Returns (B, N, k), 0 for no region, NaN for a clip without boxes.
    """
    iou = region_iou(regions.to(boxes.dtype)[:, :, :, None], boxes[:, None, None])
    hits = expected_top(iou, ids, top=top, among=known[:, None, None])
    return _defined(hits * (box_areas(regions).sum(-1) > 0), known.any(1))


def right_box(iou: torch.Tensor, known: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Whether no box overlaps the region more than its word's does: (B, N, k), empties as in `concept_hits`.

    Unlike concept accuracy at top-1 it can reach 1 where the attributes of an entity share a box.
    """
    return tied_hits(iou, known, ids, top=1)


def true_box_iou(iou: torch.Tensor, known: torch.Tensor, separating: torch.Tensor) -> torch.Tensor:
    """IoU with the nearest box of a separating attribute, (B, N, k); NaN where none is annotated."""
    answers = separating & known[:, None]
    best = torch.where(answers[:, :, None], iou, 0).amax(-1)
    return torch.where(answers.any(-1)[..., None], best, torch.nan)


def pointing(regions: torch.Tensor, boxes: torch.Tensor, known: torch.Tensor, separating: torch.Tensor) -> torch.Tensor:
    """Share of the region's frames in which its centre lies in the box of a separating attribute.

    Only frames with an annotated box of any attribute count. regions: (B, N, k, T, 4). boxes: (B, S, T, 4). Returns
    (B, N, k), NaN where no separating attribute is annotated, or a region has no such frame; 0 for no region.
    """
    answers = separating & known[:, None]
    inside = _centre_in(regions[:, :, :, None], boxes[:, None, None]) & answers[:, :, None, :, None]
    exists = box_areas(regions) > 0
    there = exists & (box_areas(boxes) > 0).any(1)[:, None, None]
    hits = (inside.any(3) & there).sum(-1) / there.sum(-1).clamp_min(1)
    defined = answers.any(-1)[..., None] & (there.any(-1) | ~exists.any(-1))
    return torch.where(defined, hits.double(), torch.nan)


def actor_pointing(regions: torch.Tensor, actors: torch.Tensor) -> torch.Tensor:
    """Share of the region's frames in which its centre lies on the actor: (B, N, k, T, 4), (B, T, 4) -> (B, N, k).

    Only frames with an actor's box count; NaN where there is none of them, and for a clip without boxes.
    """
    seen = (box_areas(regions) > 0) & (box_areas(actors) > 0)[:, None, None]
    hits = (_centre_in(regions, actors[:, None, None]) & seen).sum(-1)
    return torch.where(seen.any(-1), (hits / seen.sum(-1).clamp_min(1)).double(), torch.nan)


def actor_iou(regions: torch.Tensor, actors: torch.Tensor) -> torch.Tensor:
    """IoU with the actor's boxes: (B, N, k, T, 4), (B, T, 4) -> (B, N, k); NaN for a clip without them."""
    iou = region_iou(regions, actors[:, None, None].to(regions.dtype))
    return _defined(iou.double(), (box_areas(actors) > 0).any(-1))


def tube_change(regions: torch.Tensor) -> torch.Tensor:
    """How much a region differs from those for the other negatives, 1 - mean IoU: (B, N, k, T, 4) -> (B, N, k).

    0 for the same region whatever B is; NaN with a single negative.
    """
    negatives = regions.shape[1]
    if negatives < 2:
        return regions.new_full(regions.shape[:3], torch.nan)
    iou = region_iou(regions[:, :, None], regions[:, None])  # (B, N, N, k)
    other = ~torch.eye(negatives, dtype=torch.bool, device=regions.device)[None, :, :, None]
    return 1 - torch.where(other, iou, 0).sum(2) / (negatives - 1)


def _centre_in(regions: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
    """Whether the centres of regions (..., 4) lie in boxes (..., 4), broadcast."""
    x, y = ((regions[..., i] + regions[..., i + 2]) / 2 for i in (0, 1))
    x1, y1, x2, y2 = boxes.unbind(-1)
    return (x >= x1) & (x < x2) & (y >= y1) & (y < y2)


def attribute_in_class(table: torch.Tensor, positive: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Whether the word is one of the positive class's, S(A): (B, N, k), 0 for no word."""
    row = table[positive][:, None, None].expand(*ids.shape, -1)
    return ((ids >= 0) & row.gather(-1, ids.clamp_min(0)[..., None])[..., 0]).double()


def attribute_separates(separating: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Whether A has the word and B lacks it: (B, N, S), (B, N, k) -> (B, N, k), NaN where there is no such word."""
    hits = (ids >= 0) & separating.gather(-1, ids.clamp_min(0))
    return torch.where(separating.any(-1)[..., None], hits.double(), torch.nan)


def tube_area(regions: torch.Tensor, *, size: tuple[int, int]) -> torch.Tensor:
    """Share of the clip's pixels inside the region: (..., T, 4) -> (...), at frames of `size` (height, width)."""
    height, width = size
    edges = regions.new_tensor([width, height, width, height])
    inside = torch.minimum(regions.clamp_min(0), edges)
    return box_areas(inside).mean(-1) / (height * width)


def tube_frames(regions: torch.Tensor) -> torch.Tensor:
    """Share of the clip's frames in which the region has a box: (..., T, 4) -> (...)."""
    return (box_areas(regions) > 0).double().mean(-1)


def _defined(values: torch.Tensor, clips: torch.Tensor) -> torch.Tensor:
    """Values (B, N, k) where clips (B,) holds, else NaN."""
    return torch.where(clips[:, None, None], values, torch.nan)
