"""explain(): a video and a model in, an Explanation out."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from whytube.checks import check_choice, check_int, fail
from whytube.errors import ArgumentError
from whytube.explanation import Evidence, Explanation, Reason
from whytube.models import load_model
from whytube.search.verify import ask, masked_logits
from whytube.tubes import FILLS, Tube
from whytube.versions import versions
from whytube.video import MAX_PIXELS, Clip, read_clip

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import torch

    from whytube.classifiers.base import VideoClassifier
    from whytube.models.find import Model
    from whytube.search.verify import Question, Regions


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
    max_pixels: int = MAX_PIXELS,
) -> Explanation:
    """Explain why a video was classified as `why`, not as `why_not`.

    Every reason is checked: its tube is masked with each of `fills` and the classifier run again.

    Args:
        video: a file, a folder of frames, a .seq, or a Clip of the classifier's frames and size.
        model: what `load_model` takes: a name, a folder, a file, FILE.py:NAME, an Explainer or a classifier. A
            classifier without words is explained by regions.
        why: the positive class A; by default the predicted one.
        why_not: the negative class B; by default the most probable other class.
        k: how many reasons at most.
        fills: what masked regions are filled with: "mean", "blur", "freeze", "zero".
        sampling: how frames are taken from a file, see `read_clip`.
        salvage: use what decodes of a damaged file.
        max_pixels: refuse a video whose frames have more pixels, see `read_clip`.

    >>> explain("clip.mp4", why_not="waltz").sentence  # doctest: +SKIP
    'classified as twist, not waltz, because of "swaying"'
    """
    reading = {"sampling": sampling, "salvage": salvage, "max_pixels": max_pixels}
    return _explanations(video, model, why, [why_not], k=k, fills=fills, reading=reading)[0]


def explain_all(
    video: str | os.PathLike[str] | Clip,
    model: str | os.PathLike[str] | Model | VideoClassifier = "demo",
    *,
    why: str | None = None,
    k: int = 2,
    fills: Sequence[str] = ("mean", "blur", "freeze"),
    sampling: str = "uniform",
    salvage: bool = False,
    max_pixels: int = MAX_PIXELS,
) -> tuple[Explanation, ...]:
    """Explain why a video was classified as A, not as each of the other classes, the most probable first.

    As `explain` does for one, with the same arguments; the video is read and classified once for all.
    """
    reading = {"sampling": sampling, "salvage": salvage, "max_pixels": max_pixels}
    return _explanations(video, model, why, None, k=k, fills=fills, reading=reading)


def _explanations(
    video: str | os.PathLike[str] | Clip,
    model: str | os.PathLike[str] | Model | VideoClassifier,
    why: str | None,
    why_not: list[str | None] | None,
    *,
    k: int,
    fills: Sequence[str],
    reading: dict[str, Any],
) -> tuple[Explanation, ...]:
    """Explain against the one class in `why_not` (None: the most probable), or against every other.

    reading: what `read_clip` is told beside the frames and size of the classifier.
    """
    check_int(k, "k", 1)
    for fill in fills:
        check_choice(fill, "fills", FILLS)
    seconds: dict[str, float] = {}
    started = time.perf_counter()

    def done(stage: str) -> None:
        seconds[stage] = round(time.perf_counter() - started - sum(seconds.values()), 4)

    explainer = load_model(model)
    classifier = explainer.classifier
    done("load model")
    if isinstance(video, Clip):
        clip = video
    else:
        clip = read_clip(video, frames=classifier.frames, size=classifier.size, **reading)
    done("read video")
    question = ask(classifier, clip.frames[None].to(explainer.device), negatives=len(classifier.classes) - 1)
    question = _named(question, classifier, why, why_not)
    done("classify")
    regions = explainer(question, k)
    done("search")
    found = regions.scores.isfinite()
    after = {
        fill: masked_logits(classifier, question, regions.boxes, found, fill=fill)[0].softmax(-1) for fill in fills
    }
    done("verify")
    chances = question.features.logits[0].softmax(0).tolist()
    return tuple(
        Explanation(
            source=clip.source,
            size=clip.size,
            frames=tuple(int(i) for i in clip.indices),
            times=tuple(float(t) for t in clip.times),
            fps=clip.fps,
            duration=clip.duration,
            positive=classifier.classes[int(question.positive)],
            negative=classifier.classes[negative],
            probabilities=dict(zip(classifier.classes, chances, strict=True)),
            reasons=_reasons(explainer.attribute_names, clip, question, regions, after, n),
            settings={**explainer.settings, "k": k, "fills": list(fills), "sampling": reading["sampling"]},
            versions=versions(),
            timings=seconds,
        )
        for n, negative in enumerate(question.negative[0].tolist())
    )


def _named(
    question: Question, classifier: VideoClassifier, why: str | None, why_not: list[str | None] | None
) -> Question:
    """Turn a question about every class, the most probable first, to the classes that are named."""
    ranked = [int(question.positive), *question.negative[0].tolist()]
    asked = None if why_not is None else why_not[0]
    other = None if asked is None else classifier.class_index(asked)
    if why is None and other == ranked[0]:
        raise ArgumentError(
            f"`why_not` is {asked!r}, the predicted class: ask about another, or name a class A with `why`"
        )
    positive = ranked[0] if why is None else classifier.class_index(why)
    if other == positive:
        raise fail("why_not", f"another class than {classifier.classes[positive]!r}", repr(asked))
    others = [c for c in ranked if c != positive]
    negative = others if why_not is None else others[:1] if other is None else [other]
    return replace(
        question,
        positive=question.positive.new_tensor([positive]),
        negative=question.negative.new_tensor([negative]),
    )


def _reasons(
    attribute_names: tuple[str, ...],
    clip: Clip,
    question: Question,
    regions: Regions,
    after: dict[str, torch.Tensor],
    n: int,
) -> tuple[Reason, ...]:
    """Write down the regions for negative n of a clip; after: fill -> probabilities (N, k, C) once each is masked."""
    pair = [int(question.positive), int(question.negative[0, n])]
    before = question.features.logits[0].softmax(0)[pair].tolist()
    told = {fill: chances[n][:, pair].tolist() for fill, chances in after.items()}
    ids, scores = regions.attribute_ids[0, n].tolist(), regions.scores[0, n].tolist()
    return tuple(
        Reason(
            attribute=attribute_names[ids[r]] if ids[r] >= 0 else "",
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
