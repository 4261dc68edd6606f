"""The losses that the scores of (class, attribute) pairs are trained for.

`paper` is eq. (7) to the letter: for every negative class and every attribute of the clip, -log sigmoid of the
*smallest* tube score of m[pos] - m[neg]. Its all-zero level is (C - 1) log 2. It cannot fall below that level when
some cell looks alike in all classes, and the classes are equally frequent and share their attributes. The smallest
tube then scores no more than this cell, and the cell's scores for A against B and for B against A add up to zero.
When classes differ in their attributes, the loss can fall, but through w_s alone and whatever the clip shows. See
docs/method.md.

`two-sided` compares the best tube for A with the best tube for B: -log sigmoid(max + min). Cells that do not tell the
classes apart can score 0, so the loss can fall.

`ours` trains attributes, not classes. The best tube of w_s . h + b_s shall be positive for attributes that the clip
has, and negative for the others. This tells attribute s from attribute s', which the paper's loss does not. All tubes
of absent attributes become negative, so background cells do too, and tubes become short. Which tube speaks for A
against B is not predicted: it is measured, see `Explainer`.

Class labels alone do not say where in the clip an attribute is. Where training clips have boxes, `place_term` then
trains the same weights to find the places that were drawn.

`ours+class` is `ours` plus a fifth of the two-sided term, for comparison.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import binary_cross_entropy_with_logits, softplus
from torch.utils.checkpoint import checkpoint

from whytube.search.verify import listed
from whytube.subpath import max_subpath, max_subpath_difference, min_subpath_difference, other_classes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from whytube.explainer.explainer import Objective
    from whytube.explainer.scores import Scores

    Maps: TypeAlias = Sequence[torch.Tensor]  # (B, d, T, H, W), one per scale

_VOLUME_BYTES = 128 << 20  # of the score volumes that exist at one time while paths are searched


def loss_terms(
    objective: Objective, scores: Scores, maps: Maps, positive: torch.Tensor, present: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Return the weighted terms for maps (B, d, T, H, W), c_pos (B,) and S(x) (B, S); the loss is their sum."""
    maps = scores.normalise(maps)
    terms = {}
    if objective.class_term:
        term = class_term(scores, maps, positive, present, two_sided=objective.two_sided)
        terms["class"] = objective.class_term * term
    if objective.attribute_term:
        terms["attribute"] = objective.attribute_term * attribute_term(scores, maps, present)
    return terms


def class_term(
    scores: Scores, maps: Maps, positive: torch.Tensor, present: torch.Tensor, *, two_sided: bool = False
) -> torch.Tensor:
    """Eq. (7), averaged over the batch: sum over negatives, mean over S(x), of -log sigmoid(tube score)."""
    attribute_ids, counts = listed(present), present.sum(1)  # (B, s), (B,)
    value = difference_values(scores, maps, positive, attribute_ids, two_sided=two_sided)  # (B, N, s)
    share = (attribute_ids >= 0) / counts[:, None].clamp_min(1)
    return (softplus(-value).sum(1) * share).sum(1).mean()


def difference_values(
    scores: Scores, maps: Maps, positive: torch.Tensor, attribute_ids: torch.Tensor, *, two_sided: bool = False
) -> torch.Tensor:
    """Return min over tubes of dm (plus the max when two-sided), differentiable in w: (B, C - 1, s).

    attribute_ids: (B, s), -1 where a clip has fewer. The search sees chunks of the batch and needs no gradient. The
    gradient runs through the features pooled along the paths. They are pooled again in backward, since keeping them
    would take most of a step's memory.
    """
    classes, count = scores.class_weights[0].shape[0], attribute_ids.shape[1]
    grid = math.prod(scores.forms.grid) * scores.forms.count
    chunk = max(1, _VOLUME_BYTES // (4 * classes * count * grid))
    searches = (min_subpath_difference, max_subpath_difference) if two_sided else (min_subpath_difference,)
    negative, values = other_classes(positive, classes), []
    for first in range(0, len(attribute_ids), chunk):
        part = slice(first, first + chunk)
        own, ids = [h[part] for h in maps], attribute_ids[part]
        with torch.no_grad():
            volumes = scores.class_volumes(own, ids)
            paths = [search(volumes, positive[part]).cells for search in searches]
            del volumes
        cells = torch.stack(paths)  # (1 or 2, b, C - 1, s, T, 3)
        given = (scores, own, cells, positive[part], negative[part], ids)
        values.append(checkpoint(_path_scores, *given, use_reentrant=False, preserve_rng_state=False))
    return torch.cat(values)


def _path_scores(
    scores: Scores,
    maps: Maps,
    cells: torch.Tensor,
    positive: torch.Tensor,
    negative: torch.Tensor,
    attribute_ids: torch.Tensor,
) -> torch.Tensor:
    """Return dw . pool(h, R), summed over the sides: cells (sides, B, N, s, T, 3) -> (B, N, s), differentiable in w."""
    sides, batch, others, count = cells.shape[:4]
    item = torch.arange(batch, device=cells.device)[:, None, None].expand(sides, batch, others, count)
    pooled = scores.pool(maps, cells.flatten(0, 3), item.flatten())
    value = torch.zeros((), device=cells.device)
    for scale, windows in enumerate(pooled):
        w_c, w_s = scores.tap_weights("class", scale), scores.tap_weights("attribute", scale)
        both = windows.view(sides, batch, others, count, -1).sum(0) if sides > 1 else windows
        weighted = both.view(batch, others, count, -1) * (1 + w_s[attribute_ids.clamp_min(0)])[:, None]
        value = value + torch.einsum("bnx,bnsx->bns", w_c[positive][:, None] - w_c[negative], weighted)
    return value


def attribute_term(scores: Scores, maps: Maps, present: torch.Tensor) -> torch.Tensor:
    """Mean over present plus mean over absent attributes of -log sigmoid(+-best tube of w_s . h + b_s)."""
    with torch.no_grad():
        volumes = scores.attribute_volumes(maps)
        path = max_subpath(volumes)
        batch, count = path.value.shape
        item = torch.arange(batch, device=volumes.device).repeat_interleave(count)
        pooled = scores.pool(maps, path.cells.flatten(0, 1), item)
        length = (path.stop - path.start).to(volumes.dtype)
    value = scores.attribute_bias * length
    for scale, windows in enumerate(pooled):
        w_s = scores.tap_weights("attribute", scale)
        value = value + torch.einsum("sx,bsx->bs", w_s, windows.view(batch, count, -1))
    loss = binary_cross_entropy_with_logits(value, present.to(value.dtype), reduction="none")
    sides = (loss[present], loss[~present])  # a batch may have nothing on one of them
    return torch.stack([side.sum() / max(1, len(side)) for side in sides]).sum()


def place_term(scores: Scores, rows: Maps, attribute_ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Cross-entropy over all places of a step, averaged over drawn boxes.

    rows: R steps of standardised maps, (R, d, h, w) per scale. attribute_ids: (R, s), -1 for none. targets: (R, s, P),
    see `place_targets`.
    """
    logits = scores.step_volumes(rows, attribute_ids).flatten(2)  # (R, s, P)
    loss = -(targets * logits.log_softmax(-1)).sum(-1)
    drawn = attribute_ids >= 0
    return loss[drawn].sum() / drawn.sum().clamp_min(1)
