"""Clips with two coloured squares and a classifier that adds colours up, so that what masking does is known."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch.nn.functional import avg_pool3d

from whytube.classifiers.base import Features, VideoClassifier
from whytube.evaluation.methods import TrueBox
from whytube.evaluation.suite import truth_of
from whytube.search import verify as question

FRAMES, SIZE, SIDE = 4, 32, 8
WORDS = ("red square", "green square", "blue square", "striped")
LEFT, RIGHT = 4, 20
"""First column of the two squares; both stand in rows 12 to 20 and walk down one row per frame."""


@dataclass(frozen=True)
class Shown:
    clips: torch.Tensor
    labels: torch.Tensor
    attributes: torch.Tensor
    boxes: list


class Squares:
    """Clip i is of class i % 3: a bright square of its colour at the left, a dim one of the next at the right."""

    classes = ("red", "green", "blue", "plain")
    attribute_names = WORDS
    table = torch.tensor([[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 1, 0], [0, 0, 0, 1]], dtype=torch.bool)

    def __init__(self, number=None):
        self.number = number

    def count(self, split):
        return self.number

    def batch(self, split, indices, device="cpu"):
        chosen = list(indices)
        clips = torch.full((len(chosen), 3, FRAMES, SIZE, SIZE), 0.02)
        boxes = []
        for clip, index in zip(clips, chosen, strict=True):
            clip += 0.001 * torch.rand(clip.shape, generator=torch.Generator().manual_seed(index))
            boxes.append({})
            for colour, left, brightness in ((index % 3, LEFT, 0.9), ((index + 1) % 3, RIGHT, 0.5)):
                track = np.array([[left, 12 + t, left + SIDE, 12 + t + SIDE] for t in range(FRAMES)], float)
                for t, (x1, y1, x2, y2) in enumerate(track.astype(int)):
                    clip[colour, t, y1:y2, x1:x2] = brightness
                boxes[-1][WORDS[colour]] = track
        labels = torch.tensor([index % 3 for index in chosen])
        return Shown(clips.to(device), labels.to(device), self.table[labels].to(device), boxes)


class WithoutBoxes(Squares):
    """Squares of which nobody drew a box."""

    def batch(self, split, indices, device="cpu"):
        shown = super().batch(split, indices, device)
        return replace(shown, boxes=[{} for _ in shown.boxes])


class Adder(VideoClassifier):
    """Logits are weighted sums of the mean red, green and blue; red also speaks against green."""

    architecture = "adder"
    weights = torch.tensor([[60.0, 0, 0], [-30, 60, 0], [0, 0, 60], [0, 0, 0]])

    def __init__(self, classes=Squares.classes):
        super().__init__(classes, frames=FRAMES, size=(SIZE, SIZE))
        self.scale = torch.nn.Parameter(torch.ones(()))
        self.head = torch.nn.Dropout(0.5)
        self.seen = 0

    @property
    def settings(self):
        return {}

    def features(self, clips):
        self.seen += len(clips)
        coarse = avg_pool3d(self.check_clips(clips) * self.scale, (1, 4, 4))
        logits = self.head(coarse.mean((2, 3, 4))) @ self.weights.T.to(clips.device)
        return Features(logits, (coarse, coarse))


class Parted(Adder):
    """The adder in two parts: means of 4 x 4 pixels, then the sum of what they say."""

    architecture = "parted"
    cuts = ("cells",)
    response_cut = "cells"

    def front(self, clips, cut):
        return avg_pool3d(self.check_clips(clips) * self.scale, (1, 4, 4))

    def back(self, x, cut):
        return self.head(x.mean((2, 3, 4))) @ self.weights.T.to(x.device)


def ask(count=3, negatives=2):
    """Ask the adder about the first clips, and what the source says about them."""
    shown = Squares().batch("test", range(count))
    return question.ask(Adder().eval(), shown.clips, negatives=negatives), shown


def ask_next(count=3):
    """Ask why the bright square's class, not the dim one's: masking the bright square is the answer."""
    asked, _ = ask(count, negatives=1)
    return replace(asked, negative=((asked.positive + 1) % 3)[:, None])


class Knowing:
    """A method that knows the squares by heart: it answers as `TrueBox` does, without being told the truth."""

    name = "knowing"

    def __call__(self, asked, k):
        every = Squares().batch("test", range(12))
        indices = [int((every.clips == clip).flatten(1).all(1).nonzero()[0]) for clip in asked.clips]
        return TrueBox().with_truth(asked, truth(Squares().batch("test", indices)), k)


def truth(shown):
    """Return what baselines made of the truth are given."""
    return truth_of(Squares(), shown)
