"""Asked: videos that were put to a model. Reads, classifies, searches, checks, and writes explanations down."""

from __future__ import annotations

import math
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from whytube.checks import check_choice, check_int, fail
from whytube.errors import ArgumentError
from whytube.explanation import Evidence, Explanation, Reason
from whytube.given import Reading, identity, model_hash
from whytube.models import load_model
from whytube.search.masked import masked_logits
from whytube.search.verify import Regions, ask
from whytube.tubes import FILLS, Tube
from whytube.versions import versions
from whytube.video import Clip

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from whytube.classifiers.base import VideoClassifier
    from whytube.given import Video
    from whytube.models.find import Model
    from whytube.search.anytime import Effort
    from whytube.search.verify import Question


class Asked:
    """B videos that were put to a model: the question, and what masking did to the tubes that were checked so far."""

    def __init__(
        self,
        videos: Sequence[Video],
        model: str | os.PathLike[str] | Model | VideoClassifier,
        why: str | None,
        why_not: Sequence[str | None] | None,
        *,
        k: int,
        fills: Sequence[str],
        effort: Effort,
        reading: Reading,
        contents: Sequence[str] | None = None,
        weights: str | None = None,
    ) -> None:
        """Read and classify; why_not: the classes to ask about (None: the most probable), or None for every other.

        contents, weights: the hash of each video, and of the classifier, where they are known already.
        """
        self.weights = weights
        self.contents = [None] * len(videos) if contents is None else list(contents)
        self.k, self.fills, self.videos, self.reading = check_int(k, "k", 1), tuple(fills), tuple(videos), reading
        for fill in self.fills:
            check_choice(fill, "fills", FILLS)
        self.seconds: dict[str, float] = {}
        self.mark = time.perf_counter()
        self.checked: dict[tuple[str, tuple[int, bytes]], torch.Tensor] = {}
        self.explainer = load_model(model).with_effort(effort)
        self.classifier = self.explainer.classifier
        self._done("load model")
        self.clips = [reading.clip(video, self.classifier) for video in self.videos]
        self._done("read video")
        clips = torch.stack([clip.frames for clip in self.clips]).to(self.explainer.device)
        question = ask(self.classifier, clips, negatives=len(self.classifier.classes) - 1)
        self.question = named(question, self.classifier, why, why_not)
        self._done("classify")

    def _done(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = round(self.seconds.get(stage, 0.0) + now - self.mark, 4)
        self.mark = now

    def answer(self) -> Regions:
        """Search, and return the answer."""
        regions = self.explainer(self.question, self.k)
        self._done("search")
        return regions

    def rounds(self) -> Iterator[Regions]:
        """Search, and yield what is found after every round; objectives that do not verify have one."""
        if not self.explainer.verifies:
            yield self.answer()
            return
        for regions in self.explainer.rounds(self.question, self.k):
            self._done("search")
            yield regions
            self.mark = time.perf_counter()

    def given(self, tube: Tube) -> Regions:
        """Take a tube of the one video for an answer."""
        boxes = _sampled_boxes(tube, self.clips[0]).to(self.question.clips)[None, None, None]
        nothing = torch.full(boxes.shape[:3], -1, device=boxes.device)
        return Regions(boxes, nothing, torch.zeros(boxes.shape[:3], device=boxes.device))

    def told(self, regions: Regions, how: dict[str, Any] | None = None) -> list[tuple[Explanation, ...]]:
        """Check regions and write them down: for each video an Explanation for each negative class.

        how: settings of an answer that was not searched, whose score then is the fall of p(A) - p(B).
        """
        after = self._after(regions)
        self._done("verify")
        identities = [identity(*given) for given in zip(self.videos, self.clips, self.contents, strict=True)]
        weights = self.weights or model_hash(self.classifier)
        self._done("hash")
        settings = {**(self.explainer.settings if how is None else how), "k": self.k, "fills": list(self.fills)}
        settings |= {"sampling": self.reading.sampling, **self.reading.kept}
        whole: list[tuple[Explanation, ...]] = []
        for b, (video, clip, (source, content)) in enumerate(zip(self.videos, self.clips, identities, strict=True)):
            timed = isinstance(video, str | os.PathLike | Clip) or clip.fps is not None
            chances = self.question.features.logits[b].softmax(0).tolist()
            explanations = []
            for n, negative in enumerate(dict.fromkeys(self.question.negative[b].tolist())):
                reasons = _reasons(
                    self.explainer.attribute_names, clip, self.question, regions, after, b, n, timed=timed
                )
                if how is not None:
                    reasons = tuple(replace(reason, score=reason.fall or 0.0) for reason in reasons)
                explanations.append(
                    Explanation(
                        source=source,
                        size=clip.size,
                        frames=tuple(int(i) for i in clip.indices),
                        times=tuple(float(t) for t in clip.times) if timed else None,
                        fps=clip.fps,
                        duration=clip.duration,
                        positive=self.classifier.classes[int(self.question.positive[b])],
                        negative=self.classifier.classes[negative],
                        probabilities=dict(zip(self.classifier.classes, chances, strict=True)),
                        reasons=reasons,
                        settings=settings,
                        versions=versions(),
                        timings=dict(self.seconds),
                        video_hash=content,
                        model=self.classifier.title,
                        model_hash=weights,
                    )
                )
            whole.append(tuple(explanations))
        return whole

    def _after(self, regions: Regions) -> dict[str, torch.Tensor]:
        """Probabilities (B, N, k, C) once each region is masked with each fill; none is run a second time."""
        found = regions.scores.isfinite()
        places = [tuple(place) for place in found.nonzero().tolist()]
        rows = [(place, (place[0], regions.boxes[place].cpu().numpy().tobytes())) for place in places]
        after = {}
        for fill in self.fills:
            new = found.clone()
            for place, key in rows:
                new[place] = (fill, key) not in self.checked
            logits = masked_logits(self.classifier, self.question, regions.boxes, new, fill=fill)
            for place, key in rows:
                logits[place] = self.checked.setdefault((fill, key), logits[place].clone())
            after[fill] = logits.softmax(-1)
        return after


class SameClassError(ArgumentError):
    """Why a clip is its class, not that same class, was asked."""


def named(
    question: Question, classifier: VideoClassifier, why: str | None, why_not: Sequence[str | None] | None
) -> Question:
    """Turn a question about every class, the most probable first, to the classes that are named.

    Of several classes in `why_not`, one that a clip was classified as is left out for that clip; where clips then have
    fewer than others, the last one comes again.
    """
    own = None if why is None else classifier.class_index(why)
    others = None if why_not is None else [None if name is None else classifier.class_index(name) for name in why_not]
    positives, negatives = [], []
    for first, rest in zip(question.positive.tolist(), question.negative.tolist(), strict=True):
        positive = first if own is None else own
        ranked = [c for c in (first, *rest) if c != positive]
        wanted = ranked if others is None else [ranked[0] if c is None else c for c in others if c != positive]
        if not wanted and own is None:
            if not why_not:
                raise ArgumentError("`why_not` names no class")
            raise SameClassError(
                f"`why_not` is {why_not[0]!r}, the predicted class: ask about another, or name a class A with `why`"
            )
        if not wanted:
            raise fail("why_not", f"another class than {classifier.classes[positive]!r}", repr(why_not and why_not[0]))
        positives.append(positive)
        negatives.append(wanted)
    longest = max(map(len, negatives))
    rows = [row + row[-1:] * (longest - len(row)) for row in negatives]
    return replace(
        question, positive=question.positive.new_tensor(positives), negative=question.negative.new_tensor(rows)
    )


def _reasons(
    attribute_names: tuple[str, ...],
    clip: Clip,
    question: Question,
    regions: Regions,
    after: dict[str, torch.Tensor],
    b: int,
    n: int,
    *,
    timed: bool,
) -> tuple[Reason, ...]:
    """Write down the regions for negative n of clip b; after: fill -> probabilities (B, N, k, C) once masked."""
    pair = [int(question.positive[b]), int(question.negative[b, n])]
    before = question.features.logits[b].softmax(0)[pair].tolist()
    told = {fill: chances[b, n][:, pair].tolist() for fill, chances in after.items()}
    ids, scores = regions.attribute_ids[b, n].tolist(), regions.scores[b, n].tolist()
    fits = [math.nan] * len(ids) if regions.fits is None else regions.fits[b, n].tolist()
    return tuple(
        Reason(
            attribute=attribute_names[ids[r]] if ids[r] >= 0 else "",
            score=scores[r],
            tube=_tube(regions.boxes[b, n, r], clip, timed=timed),
            evidence=tuple(Evidence(fill, before[0], rows[r][0], before[1], rows[r][1]) for fill, rows in told.items()),
            fit=None if ids[r] < 0 or math.isnan(fits[r]) else min(max(fits[r], 0.0), 1.0),
        )
        for r in range(len(scores))
        if math.isfinite(scores[r])
    )


def _tube(boxes: torch.Tensor, clip: Clip, *, timed: bool) -> Tube:
    """Boxes (T, 4) in pixels of the clip, as a tube of the video's own frames; a frame shown twice counts once."""
    height, width = clip.size
    scale = np.array([width, height, width, height]) / np.array([*clip.frames.shape[:-3:-1]] * 2)
    there = (boxes[:, 2] > boxes[:, 0]).cpu().numpy()
    frames, first = np.unique(clip.indices[there], return_index=True)
    own = (boxes.cpu().double().numpy() * scale)[there][first]
    return Tube(frames, own, clip.times[there][first] if timed else None)


def _sampled_boxes(tube: Tube, clip: Clip) -> torch.Tensor:
    """Boxes (T, 4) in pixels of the clip of a tube of the video, interpolated between the tube's frames."""
    first, past = tube.span
    inside = (clip.indices >= first) & (clip.indices < past)
    if not inside.any() or not (tube.areas > 0).any():
        seen = f"frames {clip.indices[0]} to {clip.indices[-1]}"
        raise fail("tube", f"boxes on some of the {len(clip.indices)} frames that were classified, {seen}", tube.span)
    height, width = clip.size
    scale = np.array([*clip.frames.shape[:-3:-1]] * 2) / np.array([width, height, width, height])
    own = np.stack([np.interp(clip.indices, tube.frames, column) for column in tube.boxes.T], axis=1) * scale
    limits = np.array([*clip.frames.shape[:-3:-1]] * 2, dtype=np.float64)
    return torch.from_numpy(np.where(inside[:, None], own.clip(0, limits), 0.0))
