"""Explainer: a classifier, the scores that explain it, and the words they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from whytube.checks import check_int
from whytube.explainer.forms import Forms
from whytube.explainer.regions import Question, Regions, box_masks
from whytube.explainer.scores import Scores
from whytube.subpath import Subpath, max_subpath_difference, top_subpaths
from whytube.tubes import erase

if TYPE_CHECKING:
    from whytube.classifiers.base import VideoClassifier

VERIFYING_FILL = "mean"
"""What a candidate tube is filled with while candidates are compared."""

_TUBES_PER_WORD = 2
_GAP = 2  # cells between two candidate tubes of one word


@dataclass(frozen=True, eq=False)
class Explainer:
    """Explains `classifier` in the words of `attributes`.

    table: (C, S) bool, which class has which attribute. objective: the name of what `scores` was trained for, which also
    decides how a question is answered: "ours" verifies its candidates with the classifier.
    """

    classifier: VideoClassifier
    scores: Scores
    attributes: tuple[str, ...]
    table: torch.Tensor
    objective: str

    @property
    def name(self) -> str:
        """Name among methods."""
        return self.objective

    @property
    def classes(self) -> tuple[str, ...]:
        """The classifier's."""
        return self.classifier.classes

    def question(self, clips: torch.Tensor, *, negatives: int = 1) -> Question:
        """Ask why clips (B, 3, T, H, W) are classified as they are, not as the `negatives` next probable classes."""
        check_int(negatives, "negatives", 1, len(self.classes) - 1)
        with torch.no_grad():
            features = self.classifier.features(clips)
        ranked = features.logits.argsort(dim=1, descending=True, stable=True)
        return Question(clips, features, ranked[:, 0], ranked[:, 1 : 1 + negatives])

    @torch.no_grad()
    def __call__(self, question: Question, k: int) -> Regions:
        """Answer with the k best (attribute, tube) pairs for every clip and negative class."""
        if self.objective == "ours":
            return self._verified(question, k)
        maps = self.scores.normalise(question.features.maps)
        parts = [self._ranked(question, maps, b, k) for b in range(len(question.clips))]
        return _stacked(parts)

    def _ranked(self, question: Question, maps: tuple[torch.Tensor, ...], b: int, k: int) -> Regions:
        """Eq. (9): the best tube of every attribute, ranked by its score (the sigmoid is monotonous, and saturates)."""
        own = tuple(h[b : b + 1] for h in maps)
        every = torch.arange(len(self.attributes), device=question.clips.device)[None]
        volumes = self.scores.class_volumes(own, every)  # (1, C, S, K, T, H, W)
        path = max_subpath_difference(volumes, question.positive[b : b + 1], question.negative[b : b + 1])
        return self._top(path, every[0], k)

    def _top(self, path: Subpath, words: torch.Tensor, k: int) -> Regions:
        """Keep the k attributes with the largest values of `path` with batch (1, N, S)."""
        count = min(k, path.value.shape[-1])
        value, place = path.value.topk(count, dim=-1)  # (1, N, k)
        index = place[..., None, None].expand(*place.shape, *path.cells.shape[-2:])
        cells = path.cells.gather(2, index)
        return _padded(self.scores.forms.boxes(cells), words[place], value, k)

    def _verified(self, question: Question, k: int) -> Regions:
        """Candidates from the layer, ranked by what masking them does to the classifier's log-odds of A over B."""
        maps = self.scores.normalise(question.features.maps)
        volumes = self.scores.attribute_volumes(maps)  # (B, S, K, T, H, W)
        paths = top_subpaths(volumes, _TUBES_PER_WORD, gap=_GAP)  # (B, S, tubes)
        boxes = self.scores.forms.boxes(paths.cells)  # (B, S, tubes, T, 4)
        batch, words, tubes = boxes.shape[:3]
        after = self._after(question, boxes.flatten(1, 2)).view(batch, words, tubes, -1)  # log-probabilities
        before = question.features.logits.log_softmax(1)
        gain = _log_odds(before[:, None, None], question) - _log_odds(after, question)  # (B, S, tubes, N)
        gain, best = gain.max(2)  # (B, S, N): the tube that moves the decision most, for every word
        suited = self._suited(question)  # (B, N, S)
        ranked = torch.where(suited, gain.transpose(1, 2), -torch.inf)
        value, place = ranked.topk(min(k, words), dim=-1)  # (B, N, k)
        each = torch.arange(batch, device=boxes.device)[:, None, None]
        tube = best.transpose(1, 2).gather(2, place)
        place = torch.where(value > -torch.inf, place, -1)
        chosen = torch.where((place >= 0)[..., None, None], boxes[each, place, tube], 0)
        return _padded(chosen, place, value, k)

    def _suited(self, question: Question) -> torch.Tensor:
        """Words that can answer: attributes that A has and B lacks; if there is none, those that A has: (B, N, S)."""
        table = self.table.to(question.clips.device)
        of_a = table[question.positive][:, None]
        only = of_a & ~table[question.negative]
        return torch.where(only.any(-1, keepdim=True), only, of_a)

    def _after(self, question: Question, boxes: torch.Tensor, *, chunk: int = 128) -> torch.Tensor:
        """Log-probabilities once each of boxes (B, n, T, 4) is masked: (B, n, C)."""
        batch, count = boxes.shape[:2]
        owner = torch.arange(batch, device=boxes.device).repeat_interleave(count)
        flat = boxes.flatten(0, 1)
        results = []
        for first in range(0, len(flat), chunk):
            clips = question.clips[owner[first : first + chunk]]
            masks = box_masks(flat[first : first + chunk], self.classifier.size)
            results.append(self.classifier(erase(clips, masks, fill=VERIFYING_FILL)).log_softmax(1))
        return torch.cat(results).view(batch, count, -1)


def build_scores(classifier: VideoClassifier, attributes: int, *, seed: int = 0) -> Scores:
    """Untrained scores that fit a classifier's maps."""
    shapes = classifier.map_shapes()
    forms = Forms(tuple((t, h, w) for _, t, h, w in shapes), classifier.size, classifier.frames)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Scores(len(classifier.classes), attributes, [d for d, *_ in shapes], forms)


def _log_odds(log_probability: torch.Tensor, question: Question) -> torch.Tensor:
    """log p(A) - log p(B) from (B, ..., C): (B, ..., N)."""
    extra = log_probability.ndim - 2
    a = question.positive.view(-1, *[1] * extra, 1).expand(*log_probability.shape[:-1], 1)
    b = question.negative.view(len(question.negative), *[1] * extra, -1)
    b = b.expand(*log_probability.shape[:-1], b.shape[-1])
    return log_probability.gather(-1, a) - log_probability.gather(-1, b)


def _padded(boxes: torch.Tensor, attributes: torch.Tensor, scores: torch.Tensor, k: int) -> Regions:
    """Fill up to k answers with none."""
    missing = k - scores.shape[-1]
    if missing:
        boxes = torch.nn.functional.pad(boxes, (0, 0, 0, 0, 0, missing))
        attributes = torch.nn.functional.pad(attributes, (0, missing), value=-1)
        scores = torch.nn.functional.pad(scores, (0, missing), value=-torch.inf)
    return Regions(boxes, attributes, scores)


def _stacked(parts: list[Regions]) -> Regions:
    return Regions(
        torch.cat([p.boxes for p in parts]),
        torch.cat([p.attributes for p in parts]),
        torch.cat([p.scores for p in parts]),
    )
