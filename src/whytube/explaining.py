"""explain(): a video and a model in, an Explanation out."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import numpy as np
import torch

from whytube.checks import check_choice, check_int, check_tensor, fail
from whytube.classifiers.base import evaluating
from whytube.errors import ArgumentError
from whytube.explanation import Explanation
from whytube.models.find import load_model
from whytube.reason import Evidence, Reason
from whytube.search.question import Question, Regions
from whytube.search.verify import masked_logits
from whytube.tubes import FILLS, Tube
from whytube.versions import versions
from whytube.video import Clip, probe, read_clip

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from whytube.classifiers.base import VideoClassifier
    from whytube.models.find import Model


def explain(
    video: str | os.PathLike[str] | Clip,
    model: str | os.PathLike[str] | Model | VideoClassifier = "demo",
    *,
    why: str | None = None,
    why_not: str | None = None,
    k: int = 2,
    fills: Sequence[str] = ("mean", "blur", "freeze"),
    sampling: str = "uniform",
    salvage: bool = False,
) -> Explanation:
    """Explain why a video was classified as `why`, not as `why_not`.

    Every reason is checked: its tube is masked with each of `fills` and the classifier run again.

    Args:
        video: a file, a folder of frames, a .seq, or a Clip of the classifier's frames and size.
        model: the name or folder of a model, an Explainer, or a classifier alone, which is explained by regions
            without words.
        why: the positive class A; by default the predicted one.
        why_not: the negative class B; by default the most probable other class.
        k: how many reasons at most.
        fills: what masked regions are filled with: "mean", "blur", "freeze", "zero".
        sampling: how frames are taken from a file, see `read_clip`.
        salvage: use what decodes of a damaged file.

    >>> explain("clip.mp4", why_not="waltz").sentence  # doctest: +SKIP
    'classified as twist, not waltz, because of "swaying"'
    """
    return _explanations(
        video, model, why=why, why_not=why_not, every=False, k=k, fills=fills, sampling=sampling, salvage=salvage
    )[0]


def explain_all(
    video: str | os.PathLike[str] | Clip,
    model: str | os.PathLike[str] | Model | VideoClassifier = "demo",
    *,
    why: str | None = None,
    k: int = 2,
    fills: Sequence[str] = ("mean", "blur", "freeze"),
    sampling: str = "uniform",
    salvage: bool = False,
) -> tuple[Explanation, ...]:
    """Explain why a video was classified as A, not as each of the other classes, the most probable first.

    As `explain` does for one, with the same arguments; the video is read and classified once for all.
    """
    return _explanations(
        video, model, why=why, why_not=None, every=True, k=k, fills=fills, sampling=sampling, salvage=salvage
    )


def _explanations(
    video: str | os.PathLike[str] | Clip,
    model: str | os.PathLike[str] | Model | VideoClassifier,
    *,
    why: str | None,
    why_not: str | None,
    every: bool,
    k: int,
    fills: Sequence[str],
    sampling: str,
    salvage: bool,
) -> tuple[Explanation, ...]:
    """Explain against one class, or against `every` other."""
    check_int(k, "k", 1)
    for fill in fills:
        check_choice(fill, "fills", FILLS)
    clock = _Clock()
    explainer = load_model(model)
    classifier = explainer.classifier
    clock("load model")
    info = None
    if isinstance(video, Clip):
        clip = video
    else:
        info = probe(video, salvage=salvage)
        clip = read_clip(video, frames=classifier.frames, size=classifier.size, sampling=sampling, salvage=salvage)
    clock("read video")
    check_tensor(clip.frames, "video", "(3, T, H, W)", ndim=4)
    clips = clip.frames[None].to(explainer.device)
    with torch.no_grad(), evaluating(classifier):
        features = classifier.features(classifier.check_clips(clips))
    clock("classify")
    positive, others = _classes(classifier, features.logits[0], why, why_not, every=every)
    question = Question(clips, features, clips.new_tensor([positive]).long(), clips.new_tensor([others]).long())
    regions = explainer(question, k)
    clock("search")
    found = torch.isfinite(regions.scores)
    after = {
        fill: masked_logits(classifier, question, regions.boxes, found, fill=fill)[0].softmax(-1) for fill in fills
    }
    reasons = [_reasons(explainer, clip, question, regions, after, n) for n in range(len(others))]
    clock("verify")
    chances = features.logits[0].softmax(0).tolist()
    return tuple(
        Explanation(
            source=clip.source,
            size=clip.size,
            frames=tuple(int(i) for i in clip.indices),
            times=tuple(float(t) for t in clip.times),
            fps=None if info is None else info.fps,
            duration=None if info is None else info.duration,
            positive=classifier.classes[positive],
            negative=classifier.classes[negative],
            probabilities=dict(zip(classifier.classes, chances, strict=True)),
            reasons=reasons[n],
            settings={
                "objective": explainer.name,
                "score": explainer.score_name,
                "k": k,
                "fills": list(fills),
                "sampling": sampling,
            },
            versions=versions(),
            timings=clock.seconds,
        )
        for n, negative in enumerate(others)
    )


def _classes(
    classifier: VideoClassifier, logits: torch.Tensor, why: str | None, why_not: str | None, *, every: bool
) -> tuple[int, list[int]]:
    """Find A, and B or every other class, from their names or from logits (C,)."""
    index = classifier.class_index
    ranked = logits.argsort(descending=True).tolist()
    if why is None and why_not is not None and index(why_not) == ranked[0]:
        raise ArgumentError(
            f"`why_not` is {why_not!r}, the predicted class: ask about another, or name a class A with `why`"
        )
    positive = ranked[0] if why is None else index(why)
    others = [c for c in ranked if c != positive]
    if why_not is None:
        return positive, others if every else others[:1]
    if index(why_not) == positive:
        raise fail("why_not", f"another class than {classifier.classes[positive]!r}", repr(why_not))
    return positive, [index(why_not)]


def _reasons(
    explainer: Model,
    clip: Clip,
    question: Question,
    regions: Regions,
    after: Mapping[str, torch.Tensor],
    n: int,
) -> tuple[Reason, ...]:
    """Write down the regions for negative n of a clip; after: fill -> probabilities (N, k, C) once each is masked."""
    pair = torch.cat([question.positive, question.negative[0, n : n + 1]])
    before = question.features.logits[0].softmax(0)[pair].tolist()
    told = {fill: chances[n][:, pair].tolist() for fill, chances in after.items()}
    words, scores = regions.attribute_ids[0, n].tolist(), regions.scores[0, n].tolist()
    return tuple(
        Reason(
            attribute=explainer.attribute_names[words[r]] if words[r] >= 0 else "",
            score=scores[r],
            tube=_tube(regions.boxes[0, n, r], clip),
            evidence=tuple(Evidence(fill, before[0], rows[r][0], before[1], rows[r][1]) for fill, rows in told.items()),
        )
        for r in range(len(scores))
        if math.isfinite(scores[r])
    )


def _tube(boxes: torch.Tensor, clip: Clip) -> Tube:
    """Boxes (T, 4) in pixels of the clip, as a tube of the video's own frames; a frame shown twice counts once."""
    height, width = clip.size
    scale = np.array([width, height, width, height]) / np.array([*clip.frames.shape[:-3:-1]] * 2)
    there = (boxes[:, 2] > boxes[:, 0]).cpu().numpy()
    frames, first = np.unique(clip.indices[there], return_index=True)
    return Tube(frames, (boxes.cpu().double().numpy() * scale)[there][first], clip.times[there][first])


class _Clock:
    """Seconds between calls, by what was done."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.last = time.perf_counter()

    def __call__(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = round(now - self.last, 4)
        self.last = now
