"""Counterparts: an explainer with, or without, a search, so that figures say what is due to what.

`paper+verified` is the paper's objective with our search: its tubes are proposals, the classifier decides. What it
lacks to `ours` is due to the objective, what it gains over `paper` to the search. `ours-unverified` is ours without a
search: its words' best tubes as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from whytube.checks import fail
from whytube.explainer.explainer import OBJECTIVES
from whytube.search.anytime import search
from whytube.search.grad_cam import map_tubes
from whytube.search.regions import predictor_of
from whytube.search.verify import top_regions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from whytube.explainer.explainer import Explainer
    from whytube.search.response import Response
    from whytube.search.verify import Question, Regions

VERIFIED, UNVERIFIED = "+verified", "-unverified"
COUNTERPARTS = {f"{name}{UNVERIFIED if objective.verify else VERIFIED}": name for name, objective in OBJECTIVES.items()}
"""Counterparts by name, and the name of the explainer that each needs."""


@dataclass(frozen=True, eq=False)
class Verified:
    """The search of `ours`, with the tubes of an explainer that does not verify in place of our words' tubes.

    explainer: gives the best tube of every attribute, eq. (9), and names what the search finds: by the attribute whose
    score along the tube is largest. response: predicts masked runs, as for `ours`.
    """

    explainer: Explainer
    name: str
    response: Response | None = None

    @torch.no_grad()
    def __call__(self, question: Question, k: int) -> Regions:
        """Answer with the k best tubes of those tried, each with an attribute of its own."""
        own, classifier = self.explainer, self.explainer.classifier
        boxes, values = own.attribute_tubes(question)
        given = [(boxes, values.isfinite()), map_tubes(classifier, question)]
        predictor = predictor_of(classifier, question, self.response)
        (found,) = search(classifier, question, k, own.effort, given=given, predictor=predictor, every=False)
        ids = _each_once(own.tube_scores(question, found.boxes))
        return replace(found, attribute_ids=torch.where(found.scores > -torch.inf, ids, -1))


@dataclass(frozen=True, eq=False)
class Unverified:
    """The best tubes of the words that A has and B lacks, by how well each word fits its tube; none is tried."""

    explainer: Explainer
    name: str

    @torch.no_grad()
    def __call__(self, question: Question, k: int) -> Regions:
        """Answer with the k words whose tubes fit best; words that fit none well enough are not said, as in `ours`."""
        own, places = self.explainer, self.explainer.places(question)
        boxes, exists = own.word_tubes(places, question)  # a few forms of every attribute
        ids = places.attribute_ids
        each = boxes.shape[2] // ids.shape[1]
        word = torch.arange(boxes.shape[2], device=boxes.device) // each
        fits = places.fits_or_raw(boxes).gather(3, word[:, None].expand(*boxes.shape[:3], 1))[..., 0]
        best, form = torch.where(exists, fits, -torch.inf).view(*fits.shape[:2], -1, each).max(3)
        place = form + each * torch.arange(ids.shape[1], device=boxes.device)
        chosen = boxes.gather(2, place[..., None, None].expand(*place.shape, *boxes.shape[-2:]))
        return own.spoken(places, top_regions(chosen, ids[:, None].expand(best.shape), best, k))


def available(names: Iterable[str], explainers: Mapping[str, Explainer]) -> list[str]:
    """Leave out counterparts of explainers that are not there."""
    return [name for name in names if name not in COUNTERPARTS or COUNTERPARTS[name] in explainers]


def counterpart(
    name: str, explainers: Mapping[str, Explainer], response: Response | None = None
) -> Verified | Unverified:
    """Make a counterpart by name, of one of the explainers by theirs."""
    base = COUNTERPARTS[name]
    if base not in explainers:
        raise fail(name, f"beside an explainer called {base!r}", f"those called {sorted(explainers)}")
    found = explainers[base]
    return Unverified(found, name) if found.verifies else Verified(found, name, response)


def _each_once(scores: torch.Tensor) -> torch.Tensor:
    """Give tubes, best first, the attribute of the largest score that none before has: (B, N, k, S) -> (B, N, k)."""
    left, ids = scores.clone(), []
    for rank in range(scores.shape[2]):
        ids.append(left[:, :, rank].argmax(-1))
        if rank + 1 < scores.shape[-1]:  # with fewer attributes than tubes they come again
            left.scatter_(3, ids[-1][..., None, None].expand(-1, -1, scores.shape[2], 1), -torch.inf)
    return torch.stack(ids, 2)
