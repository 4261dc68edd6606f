"""Calibrate the fit of words: learn places from four fifths of the boxed clips, and judge them on the rest."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import torch

from whytube.explainer.fit import fit_curve, reliability, rivals
from whytube.explainer.places import place_boxes, place_iou
from whytube.search.verify import listed
from whytube.training.places import fit_places
from whytube.tubes import region_iou

if TYPE_CHECKING:
    from whytube.explainer.fit import FitCurve
    from whytube.explainer.scores import Scores
    from whytube.training.places import DrawnSteps

FOLDS = 5
FEWEST = 10
"""Clips with boxes; with fewer nothing can be said about fits."""
RANDOM = 24
"""Random tubes per clip among the cases, beside the best of every form and attribute."""


class Cases(NamedTuple):
    """N words about tubes of held-out clips: expected IoU, the best other word's, whether right, fold, attribute."""

    raw: torch.Tensor
    rival: torch.Tensor
    right: torch.Tensor
    fold: torch.Tensor
    attribute_ids: torch.Tensor


def calibrate(scores: Scores, drawn: DrawnSteps, *, steps: int, lr: float, seed: int = 0) -> FitCurve | None:
    """Fit the curve of a fit; None where there are too few clips with boxes, or all words are right, or none.

    scores: before places are learnt; they stay as they are.
    """
    clips = int(drawn.clip.max()) + 1
    if clips < FEWEST:
        return None
    parts = []
    for fold in range(FOLDS):
        held = drawn.clip % FOLDS == fold
        own = copy.deepcopy(scores)
        fit_places(own, drawn.part(~held), steps=steps, lr=lr, seed=seed)
        learnt = torch.unique(drawn.attribute_ids[~held])
        generator = torch.Generator().manual_seed(seed * FOLDS + fold)
        parts += [
            _cases(own, drawn.part((drawn.clip == clip) & (drawn.copy == 0)), learnt, generator)
            for clip in torch.unique(drawn.clip[held]).tolist()
        ]
    cases = Cases(*(torch.cat(column) for column in zip(*parts, strict=True)))
    if cases.right.all() or not cases.right.any():
        return None
    return _curve(cases, drawn.clips_per_attribute)


def _curve(cases: Cases, boxes: tuple[int, ...]) -> FitCurve:
    """Fit the curve to all cases; its reliability is that of curves fitted without the fold that they are judged on."""
    fits = torch.empty_like(cases.raw)
    for fold in range(FOLDS):
        held = cases.fold == fold
        if held.any() and (~held).any():
            other = _fitted(Cases(*(column[~held] for column in cases)), boxes)
            level = other.level_of(cases.attribute_ids[held]).to(fits)
            fits[held] = other(cases.raw[held], cases.rival[held], level=level)
    return replace(_fitted(cases, boxes), reliability=reliability(fits, cases.right))


def _fitted(cases: Cases, boxes: tuple[int, ...]) -> FitCurve:
    return fit_curve(cases.raw, cases.rival, cases.right, boxes, cases.attribute_ids)


@torch.no_grad()
def _cases(scores: Scores, clip: DrawnSteps, learnt: torch.Tensor, generator: torch.Generator) -> Cases:
    """Words about tubes of one clip with F drawn steps.

    Tubes have a box at each of these steps: the best place of a form for each drawn attribute, or a random place. Words
    are the drawn attributes, as others cannot be judged; rivals are all attributes of the clip.
    """
    count = len(scores.attribute_bias)
    drawn = torch.zeros(count, dtype=torch.bool, device=clip.clip.device)
    drawn[clip.attribute_ids[clip.attribute_ids >= 0]] = True
    known = torch.zeros_like(drawn)
    known[learnt[learnt >= 0]] = True
    ids = listed(((drawn | clip.present[0]) & known)[None])[0]
    words = drawn[ids.clamp_min(0)] & (ids >= 0)  # (s,)
    if not words.any():
        nothing = clip.boxes.new_empty(0)
        return Cases(nothing, nothing, nothing.bool(), nothing.long(), nothing.long())
    own = place_boxes(scores.forms).to(clip.boxes)
    every = ids.expand(len(clip), -1)
    chances = scores.step_volumes(clip.rows, every).flatten(2).softmax(-1)  # (F, s, P)
    expected = chances @ place_iou(scores.forms, own, own).to(chances)  # (F, s, P)
    cells = len(own) // scores.forms.count
    best = expected[:, words].view(len(clip), -1, scores.forms.count, cells).argmax(-1)  # (F, w, K)
    best = best + cells * torch.arange(scores.forms.count, device=best.device)
    random = torch.randint(len(own), (RANDOM,), generator=generator).to(best.device).expand(len(clip), -1)
    tubes = torch.cat([best.flatten(1), random], 1)  # (F, M) places
    raw = expected.gather(2, tubes[:, None].expand(-1, len(ids), -1)).mean(0)  # (s, M)
    boxes = clip.every_box[:, ids.clamp_min(0)[words]]  # (F, w, 4)
    overlap = region_iou(own[tubes].transpose(0, 1)[None], boxes.transpose(0, 1)[:, None])  # (w, M)
    right = (overlap > 0) & (overlap >= overlap.amax(0))
    return Cases(
        raw[words].flatten(),
        rivals(raw, ids >= 0)[words].flatten(),
        right.flatten(),
        (clip.clip[0] % FOLDS).expand(right.numel()),
        ids[words][:, None].expand_as(right).flatten(),
    )
