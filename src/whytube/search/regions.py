"""Regions without words, for any classifier: the search with proposals that need no training."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from whytube.checks import check_int
from whytube.search.anytime import Effort, predict, search
from whytube.search.grad_cam import map_tubes
from whytube.search.response import Predictor, untrained_response
from whytube.search.verify import VERIFIED_SCORE

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

    from whytube.classifiers.base import VideoClassifier
    from whytube.search.response import Response
    from whytube.search.verify import Question, Regions


@dataclass(frozen=True, eq=False)
class RegionSearch:
    """Explains `classifier` by moving regions, each checked by masking it.

    response: predicts what masking does; by default untrained, for networks that can be run in parts.
    """

    classifier: VideoClassifier
    effort: Effort = field(default_factory=Effort)
    response: Response | None = None
    name: str = "ours-regions"
    attribute_names: tuple[str, ...] = ()
    verifies: ClassVar[bool] = True

    @property
    def settings(self) -> dict[str, str | int | float]:
        """What an explanation says about how it was made."""
        return {"objective": self.name, "score": VERIFIED_SCORE, "effort": self.effort.tubes, "area": self.effort.area}

    @property
    def device(self) -> torch.device:
        """Where it runs."""
        return self.classifier.device

    def to(self, device: torch.device | str) -> RegionSearch:
        """Move the classifier; returns itself."""
        self.classifier.to(device)
        if self.response is not None:
            self.response.to(device)
        return self

    def with_effort(self, effort: Effort) -> RegionSearch:
        """Return the same with another effort."""
        return replace(self, effort=effort)

    def regions(self, effort: Effort) -> RegionSearch:
        """Return the same with another effort, as an explainer with words does."""
        return self.with_effort(effort)

    def __call__(self, question: Question, k: int) -> Regions:
        """Answer with the k best tubes for every clip and negative class; none has a word."""
        (found,) = self.rounds(question, k, every=False)
        return found

    def rounds(self, question: Question, k: int, *, every: bool = True) -> Iterator[Regions]:
        """Yield the answer after every round of the search, or the last alone."""
        check_int(k, "k", 1)
        predictor = predictor_of(self.classifier, question, self.response)
        given = [map_tubes(self.classifier, question)]
        return search(self.classifier, question, k, self.effort, given=given, predictor=predictor, every=every)


@dataclass(frozen=True, eq=False)
class Predicted:
    """Answers with the tubes that are predicted to be best, of which none is tried: one shot."""

    classifier: VideoClassifier
    response: Response
    effort: Effort = field(default_factory=Effort)
    name: str = "predicted"

    def __call__(self, question: Question, k: int) -> Regions:
        """Answer with k tubes; none has a word."""
        predictor = Predictor(self.classifier, self.response, question.clips)
        given = [map_tubes(self.classifier, question)]
        return predict(self.classifier, question, k, self.effort, predictor, given=given)


def predictor_of(classifier: VideoClassifier, question: Question, response: Response | None) -> Predictor | None:
    """Return what predicts masked runs of a question's clips; untrained without a response, None where nothing can."""
    found = response or untrained_response(classifier)
    return None if found is None else Predictor(classifier, found, question.clips)
