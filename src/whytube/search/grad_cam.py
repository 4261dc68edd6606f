"""GradCamRegions: explains any classifier by verified Grad-CAM tubes, with no training and no words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from whytube.checks import check_int
from whytube.search.contrast import box_tubes, contrastive_maps
from whytube.search.question import Regions, padded
from whytube.search.verify import log_odds, masked_logits
from whytube.tubes import box_masks

if TYPE_CHECKING:
    from whytube.classifiers.base import VideoClassifier
    from whytube.search.question import Question

SIDES = (2 / 7, 3 / 7)
"""Of a square box, as shares of the frame's shorter side: those of the paper's smallest and largest coarse forms."""
STRETCH = 1.5
"""How much longer than a square of the same area tall and wide boxes are."""
PER_FORM = 2
"""Tubes that each form proposes."""
SAME = 0.5
"""Two tubes whose overlap over their union is above this say the same, and only the better one is an answer."""


@dataclass(frozen=True, eq=False)
class GradCamRegions:
    """Explains `classifier` by moving regions, each checked by masking it.

    Small and large, square, tall and wide boxes each propose their best tubes through the contrastive Grad-CAM map; the
    classifier is asked again with each of them masked, and they are ranked by how much the log-odds of B rise.
    """

    classifier: VideoClassifier
    name: str = "grad-cam-regions"
    attribute_names: tuple[str, ...] = ()
    score_name: str = "log-odds of B"

    @property
    def device(self) -> torch.device:
        """Where it runs."""
        return self.classifier.device

    def to(self, device: torch.device | str) -> GradCamRegions:
        """Move the classifier; returns itself."""
        self.classifier.to(device)
        return self

    def __call__(self, question: Question, k: int) -> Regions:
        """Answer with the k best tubes for every clip and negative class; none has a word."""
        check_int(k, "k", 1)
        boxes, exists = self._candidates(question)  # (B, N, M, T, 4), (B, N, M)
        logits = masked_logits(self.classifier, question, boxes, exists)  # (B, N, M, C)
        before = log_odds(question.features.logits, question.negative)  # (B, N)
        after = log_odds(logits, question.negative[..., None, None])[..., 0]  # (B, N, M)
        rise = torch.where(exists, after - before[..., None], -torch.inf)
        rise = _without_repeats(rise, box_masks(boxes, self.classifier.size).flatten(3))
        value, place = rise.topk(min(k, rise.shape[-1]), dim=-1)
        index = place[..., None, None].expand(*place.shape, *boxes.shape[-2:])
        chosen = torch.where((value > -torch.inf)[..., None, None], boxes.gather(2, index), 0)
        return padded(chosen, torch.full_like(place, -1), value, k)

    def _candidates(self, question: Question) -> tuple[torch.Tensor, torch.Tensor]:
        """Tubes of all forms, (B, N, M, T, 4), and which of them exist, (B, N, M)."""
        frames, height, width = question.clips.shape[2:]
        maps = contrastive_maps(self.classifier, question.clips, question.positive, question.negative)
        found = []
        for side in (share * min(height, width) for share in SIDES):
            for stretch in (1.0, STRETCH, 1 / STRETCH):
                form = (min(side * stretch, height), min(side / stretch, width))
                found.append(box_tubes(maps, form, PER_FORM, frames=frames, size=(height, width)))
        boxes, values = zip(*found, strict=True)
        return torch.cat(boxes, 2), torch.cat(values, 2) > -torch.inf


def _without_repeats(rise: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Set the rise (B, N, M) of tubes that repeat a better one to -inf; masks: (B, N, M, T * H * W) bool."""
    rise = rise.clone()
    for b, n in torch.cartesian_prod(*(torch.arange(count) for count in rise.shape[:2])).tolist():
        own, better = masks[b, n].float(), list[int]()
        both = own @ own.T
        area = own.sum(1)
        overlap = both / (area[:, None] + area - both).clamp_min(1)
        for place in rise[b, n].argsort(descending=True, stable=True).tolist():
            if any(float(overlap[place, other]) > SAME for other in better):
                rise[b, n, place] = -torch.inf
            else:
                better.append(place)
    return rise
