"""Explainer: a classifier, the scores that explain it, and the words they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from whytube.checks import check_int, fail, shape_of
from whytube.classifiers.base import evaluating
from whytube.explainer.objective import find_objective
from whytube.search.question import Question, Regions, listed, padded
from whytube.search.verify import log_odds, masked_logits
from whytube.subpath import Subpath, max_subpath, max_subpath_difference

if TYPE_CHECKING:
    from whytube.classifiers.base import VideoClassifier
    from whytube.explainer.scores import Scores

NEARLY = 0.5
"""Share of its word's best score that a tube must reach to stand for it; chosen of 0, .5, .7, .85 on 72 val clips."""


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
        return "log-odds of B" if find_objective(self.objective).verify else "tube score"

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

    def question(self, clips: torch.Tensor, *, negatives: int = 1) -> Question:
        """Ask why clips (B, 3, T, H, W) are classified as they are, not as the `negatives` next probable classes."""
        check_int(negatives, "negatives", 1, len(self.classes) - 1)
        with torch.no_grad(), evaluating(self.classifier):
            features = self.classifier.features(clips)
        ranked = features.logits.argsort(dim=1, descending=True, stable=True)
        return Question(clips, features, ranked[:, 0], ranked[:, 1 : 1 + negatives])

    @torch.no_grad()
    def __call__(self, question: Question, k: int) -> Regions:
        """Answer with the k best (attribute, tube) pairs for every clip and negative class."""
        check_int(k, "k", 1)
        if find_objective(self.objective).verify:
            return self._verified(question, k)
        maps = self.scores.normalise(question.features.maps)
        parts = [self._ranked(question, maps, b, k) for b in range(len(question.clips))]
        return _stacked(parts)

    def _ranked(self, question: Question, maps: tuple[torch.Tensor, ...], b: int, k: int) -> Regions:
        """Eq. (9): the best tube of every attribute, ranked by its score (the sigmoid is monotonous, and saturates)."""
        own = tuple(h[b : b + 1] for h in maps)
        every = torch.arange(len(self.attribute_names), device=question.clips.device)[None]
        volumes = self.scores.class_volumes(own, every)  # (1, C, S, K, T, H, W)
        path = max_subpath_difference(volumes, question.positive[b : b + 1], question.negative[b : b + 1])
        return self._top(path, every[0], k)

    def _top(self, path: Subpath, words: torch.Tensor, k: int) -> Regions:
        """Keep the k attributes with the largest values of `path` with batch (1, N, S)."""
        count = min(k, path.value.shape[-1])
        value, place = path.value.topk(count, dim=-1)  # (1, N, k)
        index = place[..., None, None].expand(*place.shape, *path.cells.shape[-2:])
        cells = path.cells.gather(2, index)
        return padded(self.scores.forms.boxes(cells), words[place], value, k)

    def _verified(self, question: Question, k: int) -> Regions:
        """Candidates from the layer, ranked by what the classifier says once they are masked.

        Each suited word proposes its best tube in every form, as long as the tube is nearly as good for the word as its
        best: candidates must differ for verification to have a choice, and still be where the word is. The score is the
        rise of the log-odds of B, against A and all other classes.
        """
        suited = self._suited(question)  # (B, N, S)
        words = listed(suited.any(1))  # (B, s), -1 where there are fewer
        boxes, likely = self._candidates(question, words)  # (B, s, K, T, 4), (B, s, K)
        batch, count = boxes.shape[:2]
        before = log_odds(question.features.logits, question.negative)  # (B, N)
        tried = likely & (words >= 0)[..., None]
        after = log_odds(masked_logits(self.classifier, question, boxes, tried), question.negative[:, None, None])
        rises = after - before[:, None, None]  # (B, s, K, N)
        rise, best = torch.where(tried[..., None], rises, -torch.inf).max(2)  # (B, s, N): the best form
        fits = suited.gather(2, words.clamp_min(0)[:, None].expand(-1, before.shape[1], -1))
        ranked = torch.where(fits & (words >= 0)[:, None], rise.transpose(1, 2), -torch.inf)  # (B, N, s)
        value, place = ranked.topk(min(k, count), dim=-1)
        each = torch.arange(batch, device=boxes.device)[:, None, None]
        found = value > -torch.inf
        chosen = boxes[each, place, best.transpose(1, 2).gather(2, place)]
        chosen = torch.where(found[..., None, None], chosen, 0)
        return padded(chosen, torch.where(found, words[each, place], -1), value, k)

    def _candidates(self, question: Question, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Best tube of every form for words (B, s): boxes (B, s, K, T, 4), and whether it may stand for the word."""
        maps = self.scores.normalise(question.features.maps)
        volumes = self.scores.attribute_volumes(maps)  # (B, S, K, T, H, W)
        each = torch.arange(len(words), device=words.device)[:, None]
        path = max_subpath(volumes[each, words.clamp_min(0)].unsqueeze(3))  # a form at a time
        cells = path.cells.clone()  # (B, s, K, T, 3)
        form = torch.arange(cells.shape[2], device=cells.device).view(-1, 1)
        cells[..., 0] = torch.where(cells[..., 0] >= 0, form, -1)
        top = path.value.amax(2, keepdim=True)
        likely = torch.where(top > 0, path.value >= NEARLY * top, path.value == top)
        return self.scores.forms.boxes(cells), likely

    def _suited(self, question: Question) -> torch.Tensor:
        """Words that can answer: attributes that A has and B lacks; if there is none, those that A has: (B, N, S)."""
        table = self.table.to(question.clips.device)
        of_a = table[question.positive][:, None]
        only = of_a & ~table[question.negative]
        return torch.where(only.any(-1, keepdim=True), only, of_a)


def _stacked(parts: list[Regions]) -> Regions:
    """Join the answers of single clips."""
    return Regions(
        torch.cat([p.boxes for p in parts]),
        torch.cat([p.attribute_ids for p in parts]),
        torch.cat([p.scores for p in parts]),
    )
