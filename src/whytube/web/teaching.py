"""Teaches a model the words that were drawn. Runs in a worker only."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from whytube import explaining
from whytube.data.layout.clips import boxes_at
from whytube.data.source import BoxedBatch
from whytube.errors import ArgumentError, DataError
from whytube.explainer.explainer import Explainer
from whytube.search.anytime import AREA, EFFORTS
from whytube.search.verify import ask
from whytube.training.teach import STEPS
from whytube.training.teach import teach as teach_words
from whytube.tubes import Tube
from whytube.web.decoding import load_clip
from whytube.web.taught import save_taught
from whytube.web.work import Outcome
from whytube.web.worker import describe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from whytube.training.teach import Taught
    from whytube.web.work import Context

HOW: dict[str, Any] = {"k": 2, "effort": EFFORTS["normal"], "area": AREA}
"""How the asked video is asked: as a job `explain` does unless told otherwise, so that its answers are found again."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """A video that a person drew in. clip: the frames that the classifier sees, see decoding.py. label: its class.

    present: whether it has attributes, as far as anybody said. tubes: by attribute, in pixels and frames of the video.
    """

    clip: str
    label: str
    present: Mapping[str, bool]
    tubes: Mapping[str, Tube]


class DrawnSource:
    """What was drawn, as `teach` takes it: all clips are "train".

    table: a class has what the explainer says it has; a new word, if at least half of its videos that say anything of
    it have it.
    """

    def __init__(self, videos: Sequence[Drawn], explainer: Explainer) -> None:
        self.videos = tuple(videos)
        self.frames, self.size = explainer.classifier.frames, explainer.classifier.size
        known = {name: place for place, name in enumerate(explainer.attribute_names)}
        labels = {name: place for place, name in enumerate(explainer.classes)}
        self.classes = tuple(sorted({video.label for video in videos}, key=lambda name: labels.get(name, -1)))
        said = {word for video in videos for word in (*video.present, *video.tubes)}
        self.attribute_names = tuple(sorted(said, key=lambda name: (known.get(name, len(known)), name)))
        self.table = torch.zeros(len(self.classes), len(self.attribute_names), dtype=torch.bool)
        for c, label in enumerate(self.classes):
            for s, word in enumerate(self.attribute_names):
                if word in known:
                    self.table[c, s] = explainer.table[labels[label], known[word]]
                else:
                    votes = [video.present[word] for video in videos if video.label == label and word in video.present]
                    self.table[c, s] = bool(votes) and 2 * sum(votes) >= len(votes)

    def count(self, split: str) -> int:
        """Return how many clips a split has."""
        return len(self.videos) if split == "train" else 0

    def boxed(self, split: str) -> list[int]:
        """Return which clips have boxes."""
        return [place for place, video in enumerate(self.videos) if video.tubes] if split == "train" else []

    def batch(self, split: str, indices: Sequence[int], device: torch.device | str = "cpu") -> BoxedBatch:
        """Return clips with their boxes."""
        if split != "train":
            raise LookupError(f"there are only clips of 'train', not of {split!r}")
        chosen = [self.videos[place] for place in indices]
        clips = [load_clip(video.clip) for video in chosen]
        edges = np.array([*self.size[::-1]] * 2, dtype=np.float64)
        boxes = []
        for video, clip in zip(chosen, clips, strict=True):
            scale = edges / np.array([*clip.size[::-1]] * 2)
            at = {word: boxes_at(tube, clip.indices) for word, tube in video.tubes.items()}
            boxes.append({word: (corners * scale).clip(0, edges) for word, corners in at.items()})
        labels = torch.tensor([self.classes.index(video.label) for video in chosen])
        attributes = self.table[labels]
        for row, video in zip(attributes, chosen, strict=True):
            for word, there in video.present.items():
                row[self.attribute_names.index(word)] = there
        pixels = torch.stack([clip.frames for clip in clips]).to(device)
        return BoxedBatch(pixels, labels.to(device), attributes.to(device), boxes)


def teach(inputs: dict[str, Any], context: Context) -> Outcome:
    """Teach the model, keep what it became, and answer the asked question with both.

    inputs: videos, as Drawn has them, a label of None for what the model says; folder: where to keep it; base: the name
    of the model that the server was started with; asked: None or {"clip", "name", "hash", "why", "why_not"}.
    The value: words with how well they were placed before and after. The document: what the taught model is, and both
    answers, for `keep_teach` of annotate_jobs.py.
    """
    explainer = context.model
    if not isinstance(explainer, Explainer):
        raise ArgumentError("this model answers without words, so it cannot be taught any. Train an explainer first")
    context.progress(0, 1, "reading what was drawn")
    videos = [_drawn(video, explainer) for video in inputs["videos"]]
    unknown = sorted({video.label for video in videos} - set(explainer.classes))
    if unknown:
        raise DataError(f"the model has no class {unknown[0]!r}: choose one of its classes for those videos")
    parts = 1

    def step(done: int, total: int) -> None:
        nonlocal parts
        parts = total
        context.progress(done, total + 2, f"learning, part {done} of {total}")

    steps = inputs["steps"] or STEPS
    taught = teach_words(explainer, DrawnSource(videos, explainer), steps=steps, on_step=step)
    context.progress(parts, parts + 2, "keeping what was learnt")
    save_taught(Path(inputs["folder"]), taught, inputs["base"], len(videos))
    document: dict[str, Any] = {"model": describe(taught.explainer)}
    if inputs["asked"] is not None:
        context.progress(parts + 1, parts + 2, "asking again")
        document |= {"how": HOW, "before_hash": describe(explainer)["hash"]}
        document |= {"before": _answer(inputs["asked"], explainer), "after": _answer(inputs["asked"], taught.explainer)}
    return Outcome(value={**_report(taught), "videos": len(videos)}, document=document)


def _drawn(video: dict[str, Any], explainer: Explainer) -> Drawn:
    tubes = {word: Tube(np.array(tube["frames"]), np.array(tube["boxes"])) for word, tube in video["tubes"].items()}
    label = video["label"]
    if label is None:
        clip = load_clip(video["clip"]).frames[None].to(explainer.device)
        label = explainer.classes[int(ask(explainer.classifier, clip).positive)]
    return Drawn(video["clip"], label, video["present"], tubes)


def _report(taught: Taught) -> dict[str, Any]:
    before, after = (None if part is None else asdict(part) for part in (taught.before, taught.after))
    return {"words": [asdict(word) for word in taught.words], "before": before, "after": after}


def _answer(asked: dict[str, Any], model: Explainer) -> dict[str, Any]:
    found = explaining.explain(load_clip(asked["clip"]), model, why=asked["why"], why_not=asked["why_not"], **HOW)
    return replace(found, source=asked["name"], video_hash=asked["hash"]).to_dict()
