"""The question "why A, not B?", regions as its answer, and verification: mask, classify again, rank, keep k."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch.nn.functional import pad

from whytube.checks import check_int
from whytube.classifiers.base import evaluating
from whytube.explanation import MOVED
from whytube.search.masked import masked_logits
from whytube.search.score import margin_fall, value
from whytube.tubes import region_iou

if TYPE_CHECKING:
    from whytube.classifiers.base import Features, VideoClassifier

SELECTING_FILLS = ("still", "shift")
"""What candidate tubes are filled with while they are compared; answers are judged by other fills.

One takes away that something moves, the other what is there (docs/method.md has what others were worth).
"""
SEEN_FILLS = (*SELECTING_FILLS, "zero", "noise")
"""What answers are not judged by: those, and two that peers and the responses of shipped models have seen."""
VERIFIED_SCORE = "search score"
"""What the scores of answers are that were found by masking: see search/score.py."""
SAME = 0.5
"""Two tubes with an IoU above this are the same region; of these only the better one is an answer."""


@dataclass(frozen=True)
class Question:
    """Ask why clip b was classified as `positive[b]`, not as each of `negative[b]`.

    Attributes:
        clips: (B, 3, T, H, W) in [0, 1], at the classifier's input size.
        features: the classifier's answer on these clips.
        positive: (B,) class indices.
        negative: (B, N) class indices.
    """

    clips: torch.Tensor
    features: Features
    positive: torch.Tensor
    negative: torch.Tensor


def ask(classifier: VideoClassifier, clips: torch.Tensor, *, negatives: int = 1) -> Question:
    """Classify clips (B, 3, T, H, W); ask why the most probable class, not each of the `negatives` next probable."""
    check_int(negatives, "negatives", 1, len(classifier.classes) - 1)
    with torch.no_grad(), evaluating(classifier):
        features = classifier.features(classifier.check_clips(clips))
    ranked = features.logits.argsort(dim=1, descending=True, stable=True)
    return Question(clips, features, ranked[:, 0], ranked[:, 1 : 1 + negatives])


@dataclass(frozen=True)
class Regions:
    """Ranked answers, best first: k pairs of a tube and an attribute for each clip and negative class.

    Attributes:
        boxes: (B, N, k, T, 4) x1, y1, x2, y2 in pixels of the clip; zeros where the tube does not exist at that step.
        attribute_ids: (B, N, k) attribute indices, -1 for a region without a word.
        scores: (B, N, k), descending; comparable within one clip and negative only.
        fits: (B, N, k), chance that the tube is where its attribute is; NaN where there is no attribute, or the method
            does not say. None: it never says.
        masked_clips: (B, N), how many masked clips the classifier was run on for the answer; None for none.
    """

    boxes: torch.Tensor
    attribute_ids: torch.Tensor
    scores: torch.Tensor
    fits: torch.Tensor | None = None
    masked_clips: torch.Tensor | None = None


class Method(Protocol):
    """Anything that answers a question with regions."""

    @property
    def name(self) -> str:
        """What its results are filed under."""

    def __call__(self, question: Question, k: int) -> Regions:
        """Answer with the k best regions; fewer are padded with empty tubes, attribute -1 and score -inf."""
        ...


def top_regions(boxes: torch.Tensor, attribute_ids: torch.Tensor, scores: torch.Tensor, k: int) -> Regions:
    """Keep the k candidates with the largest scores, best first; fewer are padded.

    boxes: (B, N, M, T, 4). attribute_ids, scores: (B, N, M); a score of -inf is no candidate.
    """
    value, place = scores.topk(min(k, scores.shape[-1]), dim=-1)
    found = value > -torch.inf
    chosen = boxes.gather(2, place[..., None, None].expand(*place.shape, *boxes.shape[-2:]))
    missing = k - place.shape[-1]
    return Regions(
        pad(torch.where(found[..., None, None], chosen, 0), (0, 0, 0, 0, 0, missing)),
        pad(torch.where(found, attribute_ids.gather(2, place), -1), (0, missing), value=-1),
        pad(value, (0, missing), value=-torch.inf),
    )


def separating_attributes(table: torch.Tensor, positive: torch.Tensor, negative: torch.Tensor) -> torch.Tensor:
    """Attributes that A has and B lacks, S(A) minus S(B): table (C, S), (B,), (B, N) -> bool (B, N, S)."""
    return table[positive][:, None] & ~table[negative]


def suited_attributes(table: torch.Tensor, question: Question) -> torch.Tensor:
    """Attributes that can answer: those that A has and B lacks, or, where there is none, those that A has: (B, N, S).

    table: (C, S) bool, on any device.
    """
    table = table.to(question.clips.device)
    only = separating_attributes(table, question.positive, question.negative)
    return torch.where(only.any(-1, keepdim=True), only, table[question.positive][:, None])


def listed(rows: torch.Tensor) -> torch.Tensor:
    """List where rows (B, S) are true: (B, s), -1 where a row has fewer than others."""
    order = rows.to(torch.int8).argsort(dim=1, descending=True, stable=True)[:, : max(1, int(rows.sum(1).max()))]
    return torch.where(rows.gather(1, order), order, -1)


def best_regions(
    classifier: VideoClassifier, question: Question, boxes: torch.Tensor, exists: torch.Tensor, k: int
) -> Regions:
    """Mask every candidate tube, classify again, and keep k different ones by their value (search/score.py).

    boxes: (B, N, M, T, 4) candidates. exists: (B, N, M) bool, which of them there are.
    """
    tries = [masked_logits(classifier, question, boxes, exists, fill=fill, exact=False) for fill in SELECTING_FILLS]
    values, falls = (torch.stack([of(question, x) for x in tries]).mean(0) for of in (value, margin_fall))
    best = different(boxes, torch.where(exists, values, -torch.inf), k, moving=falls >= MOVED)
    return replace(best, masked_clips=len(SELECTING_FILLS) * exists.sum(-1))


def different(
    boxes: torch.Tensor,
    values: torch.Tensor,
    k: int,
    *,
    fits: torch.Tensor | None = None,
    ids: torch.Tensor | None = None,
    moving: torch.Tensor | None = None,
) -> Regions:
    """Keep the k best answers of which no two are the same region (see SAME) or have the same word.

    boxes: (B, N, M, T, 4). values: (B, N, M), or (B, N, M, s) for each of s words, whose fits are (B, N, M, s) and ids
    (B, N, s). The last of them stands for no word, and may come again; others whose id is -1 are none.
    moving: (B, N, M) bool, which tubes move the decision. Where none of k - 1 answers does, the last one is of these,
    if one is left: the first k - 1 are the same without it.
    """
    shape, device = (*values.shape[:2], k), boxes.device
    # On the host: a GPU would be asked, and waited for, several times for every answer.
    boxes, values = boxes.cpu(), values.cpu()
    fits, ids, moving = (None if x is None else x.cpu() for x in (fits, ids, moving))
    chosen = torch.zeros(*shape, *boxes.shape[-2:])
    words = torch.full(shape, -1)
    scores, fitting = (torch.full(shape, filler) for filler in (-torch.inf, torch.nan))
    for b, n in np.ndindex(*shape[:2]):
        own, moves = values[b, n].double().numpy().copy(), None if moving is None else moving[b, n].numpy()
        moved = False
        if ids is not None:
            own[:, :-1][:, ids[b, n, :-1].numpy() < 0] = -np.inf
        for r in range(k):
            if moves is not None and 0 < r == k - 1 and not moved and (own[moves] > -np.inf).any():
                own[~moves] = -np.inf
            place = np.unravel_index(int(own.argmax()), own.shape)
            if own[place] == -np.inf:
                break
            m = int(place[0])
            moved |= moves is not None and bool(moves[m])
            chosen[b, n, r], scores[b, n, r] = boxes[b, n, m], float(own[place])
            if ids is not None and fits is not None and place[1] < own.shape[1] - 1:
                words[b, n, r], fitting[b, n, r] = ids[b, n, place[1]], fits[b, n, m, place[1]]
                own[:, place[1]] = -np.inf
            own[m] = -np.inf  # also one without volume
            own[(region_iou(boxes[b, n, m], boxes[b, n]) > SAME).numpy()] = -np.inf
    fitting_there = fitting.to(device) if ids is not None else None
    return Regions(chosen.to(device), words.to(device), scores.to(device), fitting_there)
