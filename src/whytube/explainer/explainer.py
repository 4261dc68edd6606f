"""Explainer: a classifier, the scores that explain it, and the words they stand for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch

from whytube.checks import check_int, fail, shape_of, unknown_name
from whytube.explainer.fit import SAID
from whytube.explainer.places import find_places, place_boxes, place_iou
from whytube.explainer.values import VOLUME_BYTES, volume_bytes
from whytube.search.anytime import SILENT, Effort, search
from whytube.search.grad_cam import map_tubes
from whytube.search.regions import Predicted, RegionSearch, predictor_of
from whytube.search.response import untrained_response
from whytube.search.verify import SELECTING_FILLS, VERIFIED_SCORE, listed, suited_attributes, top_regions
from whytube.subpath import max_subpath, max_subpath_difference
from whytube.tubes import box_areas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whytube.classifiers.base import VideoClassifier
    from whytube.explainer.fit import FitCurve
    from whytube.explainer.places import Places
    from whytube.explainer.scores import Scores
    from whytube.search.response import Response
    from whytube.search.verify import Question, Regions

FORMS = 2
"""Forms in which an attribute proposes its best tube."""


@dataclass(frozen=True, kw_only=True)
class Objective:
    """Weights of the two terms, and what goes with them.

    class_term: weight of the paper's term. two_sided: smallest plus largest tube instead of the smallest alone.
    attribute_term: weight of the contrast between present and absent attributes.
    places: afterwards train attributes to be where boxes of training clips are, where the data have any.
    standardise: bring every feature channel to mean 0 and deviation 1. class_bias: class scores have a bias.
    verify: answer with the tubes whose masking moves the classifier most, not with those that score highest.
    """

    class_term: float = 1.0
    two_sided: bool = False
    attribute_term: float = 0.0
    places: bool = False
    standardise: bool = False
    class_bias: bool = False
    verify: bool = False


OBJECTIVES = {
    "paper": Objective(standardise=True, class_bias=True),
    "paper-sgd": Objective(),
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
    response: predicts what masking does; None for one that was not trained. effort: of those that verify.
    """

    classifier: VideoClassifier
    scores: Scores
    attribute_names: tuple[str, ...]
    table: torch.Tensor
    objective: str
    fit: FitCurve | None = None
    response: Response | None = None
    effort: Effort = field(default_factory=Effort)

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
    def settings(self) -> dict[str, str | int | float]:
        """What an explanation says about how it was made: the objective, and what the scores of its reasons are."""
        if not self.verifies:
            return {"objective": self.objective, "score": "tube score"}
        how = {"effort": self.effort.tubes, "area": self.effort.area}
        tried = {"tried with": ", ".join(SELECTING_FILLS)}
        return {"objective": self.objective, "score": VERIFIED_SCORE, **how, **tried}

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
        if self.response is not None:
            self.response.to(device)
        return self

    def with_effort(self, effort: Effort) -> Explainer:
        """Return the same with another effort."""
        return replace(self, effort=effort)

    def regions(self, effort: Effort | None = None) -> RegionSearch:
        """Return what explains the same classifier without words."""
        return RegionSearch(self.classifier, effort or self.effort, self.response)

    def predicted(self) -> Predicted:
        """Return what explains the same classifier by prediction alone, without words."""
        response = self.response or untrained_response(self.classifier)
        if response is None:
            raise fail("predicted", "a network that can be run in parts", self.classifier.architecture)
        return Predicted(self.classifier, response, self.effort)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classifier's."""
        return self.classifier.classes

    @torch.no_grad()
    def __call__(self, question: Question, k: int) -> Regions:
        """Answer with the k best (attribute, tube) pairs for every clip and negative class."""
        check_int(k, "k", 1)
        if not self.verifies:
            boxes, values = self.attribute_tubes(question)
            every = torch.arange(values.shape[-1], device=values.device)
            return top_regions(boxes, every.expand(values.shape), values, k)
        (found,) = self.rounds(question, k, every=False)
        return found

    @torch.no_grad()
    def rounds(self, question: Question, k: int, *, every: bool = True) -> Iterator[Regions]:
        """Yield the answer after every round of the search, or the last alone; for objectives that verify."""
        check_int(k, "k", 1)
        places = self.places(question)
        suited = self._suited(places, question)
        given = [self.word_tubes(places, question), map_tubes(self.classifier, question)]
        predictor = predictor_of(self.classifier, question, self.response)
        ids = torch.where(suited, places.attribute_ids[:, None], -1)

        def words(boxes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            fits = places.fits_or_raw(boxes)
            # What has no fit is not silent for that, and still ranked by the raw one.
            fits = torch.where(places.known[:, None, None], fits, SILENT + (1 - SILENT) * fits)
            return torch.where(suited[:, :, None], fits, 0), ids

        found = search(
            self.classifier, question, k, self.effort, given=given, predictor=predictor, words=words, every=every
        )
        for regions in found:
            yield self.spoken(places, regions)

    def places(self, question: Question) -> Places:
        """Where the attributes of A are in each clip of a question; the attributes of class A, listed, are its s."""
        ids = listed(self.table.to(question.clips.device)[question.positive])
        return find_places(self.scores, question.features.maps, ids, self.fit)

    def word_volumes(self, question: Question, attribute_ids: torch.Tensor) -> torch.Tensor:
        """Scores in which `max_subpath` finds the best tubes of attributes (B, s): (B, s, K, t, H, W).

        Expected IoUs, see `Places.volumes`, or for attributes without boxes the scores w_s . h + b_s as they are.
        """
        return find_places(self.scores, question.features.maps, attribute_ids, self.fit).volumes_or_scores()

    def spoken(self, places: Places, regions: Regions) -> Regions:
        """Fill in the fits of regions, and take away words that are too likely to be wrong, see SAID.

        Fits that regions have already are kept. Words whose fit is not known stay.
        """
        if self.fit is None:
            return replace(regions, fits=None)
        if regions.fits is None:
            fits = places.fit_of(regions.boxes, regions.attribute_ids)
        else:
            fits = torch.where(places.has_fit(regions.attribute_ids), regions.fits, torch.nan)
        silent = fits < SAID
        return replace(
            regions,
            attribute_ids=torch.where(silent, -1, regions.attribute_ids),
            fits=torch.where(silent, torch.nan, fits),
        )

    def attribute_tubes(self, question: Question) -> tuple[torch.Tensor, torch.Tensor]:
        """Eq. (9): the best tube of every attribute, (B, N, S, T, 4), and its score, (B, N, S).

        Ranked by the score: the sigmoid is monotonous, and saturates.
        """
        first = torch.zeros(1, dtype=torch.long, device=question.clips.device)
        paths = [max_subpath_difference(volumes, first) for _, volumes in self._class_volumes(question)]
        boxes = self.scores.forms.boxes(torch.cat([path.cells[0] for path in paths]))  # (B * N, S, T, 4)
        shape = (*question.negative.shape, len(self.attribute_names))
        return boxes.view(*shape, -1, 4), torch.cat([path.value[0] for path in paths]).view(shape)

    def tube_scores(self, question: Question, boxes: torch.Tensor) -> torch.Tensor:
        """Eq. (5) for any tubes (B, N, k, T, 4) and every attribute: (B, N, k, S).

        A step of a tube counts with the score of the form and cell whose box overlaps it most.
        """
        forms = self.scores.forms
        exists = box_areas(boxes) > 0
        frames = torch.arange(forms.grid[0], device=boxes.device) * forms.frames // forms.grid[0]
        steps = boxes[..., frames, :]
        found = []
        for own, volumes in self._class_volumes(question):
            place = place_iou(forms, steps[own], place_boxes(forms).to(steps)).argmax(-1)  # (n, k, t)
            apart = volumes[0, :1] - volumes[0, 1:]  # (n, S, K, t, H, W)
            flat = apart.transpose(2, 3).flatten(3)[:, None].expand(-1, place.shape[1], -1, -1, -1)  # (n, k, S, t, P)
            each = flat.gather(4, place[:, :, None, :, None].expand(*flat.shape[:4], 1))[..., 0]
            found.append((each * exists[own][..., frames][:, :, None]).sum(-1))
        return torch.cat(found).view(*boxes.shape[:3], -1)

    def _class_volumes(self, question: Question) -> Iterator[tuple[tuple[int, slice], torch.Tensor]]:
        """Yield class scores of all attributes for a clip's A and some of its negatives: (1, 1 + n, S, K, t, H, W).

        A comes first. They are large: there are no others, and a few at a time. With them comes which clip and which
        of its negatives.
        """
        maps = self.scores.normalise(question.features.maps)
        every = torch.arange(len(self.attribute_names), device=question.clips.device)[None]
        count = question.negative.shape[1]
        some = max(1, VOLUME_BYTES // volume_bytes(self.scores, len(self.attribute_names)) - 1)
        for b in range(len(question.clips)):
            for start in range(0, count, some):
                own = slice(start, start + some)
                chosen = torch.cat([question.positive[b : b + 1], question.negative[b, own]])[None]
                yield (b, own), self.scores.class_volumes([h[b : b + 1] for h in maps], every, chosen)

    def _suited(self, places: Places, question: Question) -> torch.Tensor:
        """Which of the listed attributes can answer each negative: (B, N, s) bool."""
        suited, ids = suited_attributes(self.table, question), places.attribute_ids
        each = ids.clamp_min(0)[:, None].expand(-1, suited.shape[1], -1)
        return suited.gather(2, each) & (ids >= 0)[:, None]

    def word_tubes(self, places: Places, question: Question) -> tuple[torch.Tensor, torch.Tensor]:
        """Best tubes of every attribute of A, in its FORMS best forms: boxes (B, N, M, T, 4), which are suited."""
        suited = self._suited(places, question)
        path = max_subpath(places.volumes_or_scores().unsqueeze(3))  # a form at a time
        cells = path.cells.clone()  # (B, s, K, t, 3)
        form = torch.arange(cells.shape[2], device=cells.device).view(-1, 1)
        cells[..., 0] = torch.where(cells[..., 0] >= 0, form, -1)
        best = path.value.topk(min(FORMS, cells.shape[2]), 2).indices
        boxes = self.scores.forms.boxes(cells.gather(2, best[..., None, None].expand(*best.shape, *cells.shape[-2:])))
        each = boxes.flatten(1, 2)[:, None].expand(-1, suited.shape[1], -1, -1, -1)
        return each, suited.repeat_interleave(best.shape[2], 2)
