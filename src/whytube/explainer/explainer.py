"""Explainer: a classifier, the scores that explain it, and the words they stand for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from whytube.checks import check_int, fail, shape_of, unknown_name
from whytube.explainer.fit import SAID
from whytube.explainer.places import find_places
from whytube.search.verify import VERIFIED_SCORE, best_regions, listed, listed_suited, top_regions
from whytube.subpath import max_subpath, max_subpath_difference

if TYPE_CHECKING:
    from whytube.classifiers.base import VideoClassifier
    from whytube.explainer.fit import FitCurve
    from whytube.explainer.places import Places
    from whytube.explainer.scores import Scores
    from whytube.search.verify import Question, Regions

NEARLY = 0.5
"""Fraction of its attribute's best score that a tube must reach; chosen of 0, .5, .7, .85 on 72 val clips."""


@dataclass(frozen=True, kw_only=True)
class Objective:
    """Weights of the two terms, and what goes with them.

    class_term: weight of the paper's term. two_sided: smallest plus largest tube instead of the smallest alone.
    attribute_term: weight of the contrast between present and absent attributes.
    places: afterwards train attributes to be where boxes of training clips are, where the data have any.
    standardise: bring every feature channel to mean 0 and deviation 1.
    verify: answer with the tubes whose masking moves the classifier most, not with those that score highest.
    """

    class_term: float = 1.0
    two_sided: bool = False
    attribute_term: float = 0.0
    places: bool = False
    standardise: bool = False
    verify: bool = False


OBJECTIVES = {
    "paper": Objective(),
    "two-sided": Objective(two_sided=True, standardise=True),
    "ours": Objective(class_term=0.0, attribute_term=1.0, places=True, standardise=True, verify=True),
    "ours+class": Objective(
        class_term=0.2, two_sided=True, attribute_term=1.0, places=True, standardise=True, verify=True
    ),
}


def find_objective(name: str) -> Objective:
    """Return an objective by name."""
    if name not in OBJECTIVES:
        raise unknown_name("objective", name, OBJECTIVES)
    return OBJECTIVES[name]


@dataclass(frozen=True, eq=False)
class Explainer:
    """Explains `classifier` in the words of `attribute_names`.

    table: (C, S) bool, which class has which attribute. objective: the name of what `scores` was trained for, which
    also decides how a question is answered: those that `verify` compare their candidates with the classifier.
    fit: how well words are known to be where they say; None where there were too few boxes to tell.
    """

    classifier: VideoClassifier
    scores: Scores
    attribute_names: tuple[str, ...]
    table: torch.Tensor
    objective: str
    fit: FitCurve | None = None

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
    def settings(self) -> dict[str, str]:
        """What an explanation says about how it was made: the objective, and what the scores of its reasons are."""
        return {"objective": self.objective, "score": VERIFIED_SCORE if self.verifies else "tube score"}

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
        return self._verified(question, k) if self.verifies else self._ranked(question, k)

    def places(self, question: Question) -> Places:
        """Where the attributes of A are in each clip of a question; the attributes of class A, listed, are its s."""
        ids = listed(self.table.to(question.clips.device)[question.positive])
        return find_places(self.scores, question.features.maps, ids, self.fit)

    def word_volumes(self, question: Question, attribute_ids: torch.Tensor) -> torch.Tensor:
        """Scores in which `max_subpath` finds the best tubes of attributes (B, s): (B, s, K, t, H, W).

        Expected IoUs, see `Places.volumes`, or for attributes without boxes the scores w_s . h + b_s as they are.
        """
        clip = torch.arange(len(attribute_ids), device=attribute_ids.device)[:, None]
        plain: torch.Tensor = self.scores(question.features.maps)[clip, attribute_ids.clamp_min(0)]
        if self.fit is None:
            return plain
        places = find_places(self.scores, question.features.maps, attribute_ids, self.fit)
        return torch.where(places.known[..., None, None, None, None], places.volumes(), plain)

    def spoken(self, question: Question, regions: Regions) -> Regions:
        """Fill in the fits of regions, and take away words that are more likely wrong than right, see SAID.

        Words whose fit is not known stay.
        """
        if self.fit is None:
            return regions
        fits = self.places(question).fit_of(regions.boxes, regions.attribute_ids)
        silent = fits < SAID
        return replace(
            regions,
            attribute_ids=torch.where(silent, -1, regions.attribute_ids),
            fits=torch.where(silent, torch.nan, fits),
        )

    def _ranked(self, question: Question, k: int) -> Regions:
        """Eq. (9): the best tube of every attribute, ranked by its score (the sigmoid is monotonous, and saturates)."""
        maps = self.scores.normalise(question.features.maps)
        every = torch.arange(len(self.attribute_names), device=question.clips.device)[None]
        paths = []
        for b in range(len(question.clips)):  # a clip at a time: the volumes of all classes are large
            volumes = self.scores.class_volumes([h[b : b + 1] for h in maps], every)  # (1, C, S, K, T, H, W)
            own = slice(b, b + 1)
            paths.append(max_subpath_difference(volumes, question.positive[own], question.negative[own]))
        value = torch.cat([path.value for path in paths])  # (B, N, S)
        boxes = self.scores.forms.boxes(torch.cat([path.cells for path in paths]))
        return top_regions(boxes, every[None].expand(value.shape), value, k)

    def _verified(self, question: Question, k: int) -> Regions:
        """Candidates from the layer, ranked by what the classifier says once they are masked.

        Each suited attribute proposes its best tube in every form, if the tube scores at least NEARLY of the best: the
        classifier then has a choice, and all of it is where the attribute is.
        """
        ids, fits = listed_suited(self.table, question)  # (B, s), (B, N, s)
        path = max_subpath(self.word_volumes(question, ids).unsqueeze(3))  # a form at a time
        cells = path.cells.clone()  # (B, s, K, T, 3)
        form = torch.arange(cells.shape[2], device=cells.device).view(-1, 1)
        cells[..., 0] = torch.where(cells[..., 0] >= 0, form, -1)
        top = path.value.amax(2, keepdim=True)
        likely = torch.where(top > 0, path.value >= NEARLY * top, path.value == top)  # (B, s, K)
        negatives = question.negative.shape[1]
        boxes = self.scores.forms.boxes(cells)[:, None].expand(-1, negatives, -1, -1, -1, -1)
        exists = fits[..., None] & likely[:, None]
        every = ids[:, None].expand(fits.shape)
        found = best_regions(self.classifier, question, boxes, exists, k, attribute_ids=every)
        return self.spoken(question, found)
