"""The losses that the scores of (class, attribute) pairs are trained for.

`paper-sgd` is eq. (7) to the letter: for every negative class and every attribute of the clip, -log sigmoid of the
*smallest* tube score of m[pos] - m[neg]. Its all-zero level is (C - 1) log 2. It cannot fall below that level when
some cell looks alike in all classes, and the classes are equally frequent and share their attributes. The smallest
tube then scores no more than this cell, and the cell's scores for A against B and for B against A add up to zero.
When classes differ in their attributes, the loss can fall whatever the clip shows. See docs/method.md. `paper` is the
same loss at its best: with standardised features and a bias for every (class, attribute) pair.

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

from typing import TYPE_CHECKING

import torch
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from whytube.explainer.values import attribute_values, difference_values
from whytube.search.verify import listed

if TYPE_CHECKING:
    from whytube.explainer.explainer import Objective
    from whytube.explainer.scores import Scores
    from whytube.explainer.values import Maps


def loss_terms(
    objective: Objective,
    scores: Scores,
    maps: Maps,
    positive: torch.Tensor,
    present: torch.Tensor,
    *,
    negative: torch.Tensor | None = None,
    sides: torch.Tensor | None = None,
) -> dict[str, torch.Tensor]:
    """Return the weighted terms for maps (B, d, T, H, W), c_pos (B,) and S(x) (B, S); the loss is their sum.

    negative: see `class_term`. sides: see `attribute_term`.
    """
    maps = scores.normalise(maps)
    terms = {}
    if objective.class_term:
        term = class_term(scores, maps, positive, present, negative=negative, two_sided=objective.two_sided)
        terms["class"] = objective.class_term * term
    if objective.attribute_term:
        terms["attribute"] = objective.attribute_term * attribute_term(scores, maps, present, sides)
    return terms


def class_term(
    scores: Scores,
    maps: Maps,
    positive: torch.Tensor,
    present: torch.Tensor,
    *,
    negative: torch.Tensor | None = None,
    two_sided: bool = False,
) -> torch.Tensor:
    """Eq. (7), averaged over the batch: sum over negatives, mean over S(x), of -log sigmoid(tube score).

    negative: (B, N) classes, drawn alike from all but c_pos: their sum, times (C - 1) / N, then stands for the sum over
    all, whose mean over draws it has. None for all.
    """
    attribute_ids, counts = listed(present), present.sum(1)  # (B, s), (B,)
    value = difference_values(scores, maps, positive, attribute_ids, negative, two_sided=two_sided)  # (B, N, s)
    share = (attribute_ids >= 0) / counts[:, None].clamp_min(1)
    all_of_them = len(scores.class_weights[0]) - 1
    return (softplus(-value).sum(1) * share).sum(1).mean() * (all_of_them / value.shape[1])


def drawn_negatives(
    positive: torch.Tensor, classes: int, count: int | None, generator: torch.Generator
) -> torch.Tensor | None:
    """Draw `count` different classes but c_pos for every clip, all alike: (B,) -> (B, count); None for all there are.

    generator: of the host, so that every device draws the same.
    """
    if count is None or count >= classes - 1:
        return None
    order = torch.rand(len(positive), classes - 1, generator=generator).argsort(1)[:, :count].to(positive.device)
    return order + (order >= positive[:, None])


def attribute_term(
    scores: Scores, maps: Maps, present: torch.Tensor, sides: torch.Tensor | None = None
) -> torch.Tensor:
    """Mean over present plus mean over absent attributes of -log sigmoid(+-best tube of w_s . h + b_s).

    sides: (2,) what the sums over present and over absent ones are divided by, where these clips are a share of a
    batch; by default how many these are.
    """
    value = attribute_values(scores, maps)  # (B, S)
    loss = binary_cross_entropy_with_logits(value, present.to(value.dtype), reduction="none")
    parts = (loss[present], loss[~present])  # a batch may have nothing on one of them
    if sides is not None:
        return (torch.stack([part.sum() for part in parts]) / sides).sum()
    return torch.stack([part.sum() / max(1, len(part)) for part in parts]).sum()


def place_term(scores: Scores, rows: Maps, attribute_ids: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Cross-entropy over all places of a step, averaged over drawn boxes.

    rows: R steps of standardised maps, (R, d, h, w) per scale. attribute_ids: (R, s), -1 for none. targets: (R, s, P),
    see `place_targets`.
    """
    logits = scores.step_volumes(rows, attribute_ids).flatten(2)  # (R, s, P)
    loss = -(targets * logits.log_softmax(-1)).sum(-1)
    drawn = attribute_ids >= 0
    return loss[drawn].sum() / drawn.sum().clamp_min(1)
