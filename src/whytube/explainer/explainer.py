"""Explainer: a classifier, the scores that explain it, and the words they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from whytube.checks import check_int, fail, shape_of
from whytube.explainer.objective import find_objective
from whytube.search.question import listed, suited_attributes, top_regions
from whytube.search.verify import VERIFIED_SCORE, best_regions
from whytube.subpath import max_subpath, max_subpath_difference

if TYPE_CHECKING:
    from whytube.classifiers.base import VideoClassifier
    from whytube.explainer.scores import Scores
    from whytube.search.question import Question, Regions

NEARLY = 0.5
"""Fraction of its attribute's best score that a tube must reach; chosen of 0, .5, .7, .85 on 72 val clips."""


@dataclass(frozen=True, eq=False)
class Explainer:
    """Explains `classifier` in the words of `attribute_names`.

    table: (C, S) bool, which class has which attribute. objective: the name of what `scores` was trained for, which
    also decides how a question is answered: those that `verify` compare their candidates with the classifier.
    """

    classifier: VideoClassifier
    scores: Scores
    attribute_names: tuple[str, ...]
    table: torch.Tensor
    objective: str

    def __post_init__(self) -> None:
        expected = (len(self.classes), len(self.attribute_names))
        if self.table.shape != expected or self.table.dtype != torch.bool:
            raise fail("table", f"bool of shape {expected}", f"{self.table.dtype} of shape {shape_of(self.table)}")
        found = tuple(len(weights[0]) for weights in (self.scores.class_weights, self.scores.attribute_weights))
        if found != expected:
            raise fail("scores", f"for (classes, attributes) {expected}", f"scores for {found}")

    @property
    def name(self) -> str:
        """Name among methods."""
        return self.objective

    @property
    def score_name(self) -> str:
        """What its scores are: how much the log-odds of B rise, see `_verified`; or the sum along the tube, eq. (9)."""
        return VERIFIED_SCORE if self.verifies else "tube score"

    @property
    def verifies(self) -> bool:
        """Whether candidates are compared by masking them."""
        return find_objective(self.objective).verify

    @property
    def device(self) -> torch.device:
        """Where it runs."""
        return self.scores.attribute_bias.device

    def to(self, device: torch.device | str) -> Explainer:
        """Move classifier and scores; returns itself."""
        self.classifier.to(device)
        self.scores.to(device)
        return self

    @property
    def classes(self) -> tuple[str, ...]:
        """The classifier's."""
        return self.classifier.classes

    @torch.no_grad()
    def __call__(self, question: Question, k: int) -> Regions:
        """Answer with the k best (attribute, tube) pairs for every clip and negative class."""
        check_int(k, "k", 1)
        maps = self.scores.normalise(question.features.maps)
        return self._verified(question, maps, k) if self.verifies else self._ranked(question, maps, k)

    def _ranked(self, question: Question, maps: tuple[torch.Tensor, ...], k: int) -> Regions:
        """Eq. (9): the best tube of every attribute, ranked by its score (the sigmoid is monotonous, and saturates)."""
        every = torch.arange(len(self.attribute_names), device=question.clips.device)[None]
        paths = []
        for b in range(len(question.clips)):  # a clip at a time: the volumes of all classes are large
            volumes = self.scores.class_volumes([h[b : b + 1] for h in maps], every)  # (1, C, S, K, T, H, W)
            own = slice(b, b + 1)
            paths.append(max_subpath_difference(volumes, question.positive[own], question.negative[own]))
        value = torch.cat([path.value for path in paths])  # (B, N, S)
        boxes = self.scores.forms.boxes(torch.cat([path.cells for path in paths]))
        return top_regions(boxes, every[None].expand(value.shape), value, k)

    def _verified(self, question: Question, maps: tuple[torch.Tensor, ...], k: int) -> Regions:
        """Candidates from the layer, ranked by what the classifier says once they are masked.

        Each suited attribute proposes its best tube in every form, if the tube scores at least NEARLY of the best: the
        classifier then has a choice, and all of it is where the attribute is.
        """
        suited = suited_attributes(self.table, question)  # (B, N, S)
        ids = listed(suited.any(1))  # (B, s), -1 where there are fewer
        clip = torch.arange(len(ids), device=ids.device)[:, None]
        volumes = self.scores.attribute_volumes(maps)[clip, ids.clamp_min(0)]  # (B, s, K, T, H, W)
        path = max_subpath(volumes.unsqueeze(3))  # a form at a time
        cells = path.cells.clone()  # (B, s, K, T, 3)
        form = torch.arange(cells.shape[2], device=cells.device).view(-1, 1)
        cells[..., 0] = torch.where(cells[..., 0] >= 0, form, -1)
        top = path.value.amax(2, keepdim=True)
        likely = torch.where(top > 0, path.value >= NEARLY * top, path.value == top)  # (B, s, K)
        negatives = question.negative.shape[1]
        fits = suited.gather(2, ids.clamp_min(0)[:, None].expand(-1, negatives, -1)) & (ids >= 0)[:, None]  # (B, N, s)
        boxes = self.scores.forms.boxes(cells)[:, None].expand(-1, negatives, -1, -1, -1, -1)
        exists = fits[..., None] & likely[:, None]
        every = ids[:, None].expand(fits.shape)
        return best_regions(self.classifier, question, boxes, exists, k, attribute_ids=every)
