"""The same search on shuffled scores: what is left of a method once trying tubes tells it nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from whytube.classifiers.base import Features
from whytube.evaluation.methods.controls import Remembered
from whytube.evaluation.runs import watched
from whytube.search.anytime import clip_keys

if TYPE_CHECKING:
    from whytube.classifiers.base import VideoClassifier
    from whytube.search.verify import Method, Question, Regions


@dataclass(frozen=True, eq=False)
class ShuffledScores:
    """Another method, asked while every masked clip gets logits of chance, whatever tube was masked.

    The logits are those of a plain clip of the question in a random order of classes with a random scale, so that no
    tube can be better than another: the tube that wins is a random one of those tried. Runs with gradients on, which
    say where to look and not what masking does, stay as they are. The work is the same. What chance gives depends on
    the batch that a clip is in.
    """

    like: Method
    classifier: VideoClassifier
    seed: int = 0
    name: str = "shuffled-scores"

    def __call__(self, question: Question, k: int) -> Regions:
        """Answer as the method would, had it learned nothing from masking."""
        method = self.like.method if isinstance(self.like, Remembered) else self.like
        rng = np.random.default_rng([self.seed, *clip_keys(question.clips)])
        plain = question.features.logits.detach().cpu().numpy()

        def see(name: str, _given: torch.Tensor, result: Any) -> Any:
            logits = result.logits if isinstance(result, Features) else result
            if name == "front" or (torch.is_grad_enabled() and logits.requires_grad):
                return result
            drawn = rng.permuted(plain[rng.integers(len(plain), size=len(logits))], axis=1)
            chance = torch.from_numpy(drawn * rng.random((len(drawn), 1))).to(logits)
            return Features(chance, result.maps) if isinstance(result, Features) else chance

        with watched(type(self.classifier), see):
            return method(question, k)
