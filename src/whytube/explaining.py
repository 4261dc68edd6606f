"""explain(): a video and a model in, an Explanation out; classify() and contrastive_map() ask for less."""

from __future__ import annotations

import hashlib
import math
import time
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch.nn.functional import interpolate

from whytube.checks import check_choice, check_int, fail
from whytube.errors import ArgumentError
from whytube.explanation import Evidence, Explanation, Reason
from whytube.models import load_model
from whytube.search.anytime import AREA, Effort, find_effort
from whytube.search.grad_cam import contrastive_maps
from whytube.search.masked import masked_logits
from whytube.search.verify import ask
from whytube.tubes import FILLS, Tube
from whytube.versions import versions
from whytube.video import MAX_PIXELS, Clip, clip_of_array, read_clip
from whytube.video.frames import FRAME_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from whytube.classifiers.base import VideoClassifier
    from whytube.models.find import Model
    from whytube.search.verify import Question, Regions

    Video: TypeAlias = str | PathLike[str] | Clip | torch.Tensor | NDArray[np.generic]


def explain(
    video: Video,
    model: str | PathLike[str] | Model | VideoClassifier = "demo",
    *,
    why: str | None = None,
    why_not: str | None = None,
    k: int = 2,
    fills: Sequence[str] = ("mean", "blur", "freeze"),
    sampling: str = "uniform",
    effort: str | int = "normal",
    area: float = AREA,
    salvage: bool = False,
    max_pixels: int = MAX_PIXELS,
    fps: float | None = None,
    size: tuple[int, int] | None = None,
) -> Explanation:
    """Explain why a video was classified as `why`, not as `why_not`.

    Every reason is checked: its tube is masked with each of `fills` and the classifier run again.

    Args:
        video: a file, a folder of frames, a .seq, or a Clip of the classifier's frames and size. Or the frames of a
            whole video as an array or tensor, uint8 or floats in [0, 1], of shape (T, H, W, 3), (3, T, H, W) or
            (T, 3, H, W): they are sampled and resized as a file's are.
        model: what `load_model` takes: a name, a folder, a file, FILE.py:NAME, an Explainer or a classifier. A
            classifier without words is explained by regions.
        why: the positive class A; by default the predicted one.
        why_not: the negative class B; by default the most probable other class.
        k: how many reasons at most.
        fills: what masked regions are filled with: "mean", "blur", "freeze", "zero", "noise".
        sampling: how frames are taken from a file, see `read_clip`.
        effort: how many tubes are tried: "quick", "normal", "thorough", or their number.
        area: largest volume of a tube, as a fraction of the clip's.
        salvage: use what decodes of a damaged file.
        max_pixels: refuse a video whose frames have more pixels, see `read_clip`.
        fps: rate of an array's frames; without it there are no times.
        size: (height, width) of the video that an array was made from, in whose pixels boxes are; by default its own.

    >>> explain("clip.mp4", why_not="waltz").sentence  # doctest: +SKIP
    'classified as twist, not waltz, because of "swaying"'
    """
    reading = _Reading(sampling, salvage, max_pixels, fps, size)
    how = Effort(tubes=find_effort(effort), area=area)
    return _explanations(video, model, why, [why_not], k=k, fills=fills, effort=how, reading=reading)[0]


def explain_all(
    video: Video,
    model: str | PathLike[str] | Model | VideoClassifier = "demo",
    *,
    why: str | None = None,
    k: int = 2,
    fills: Sequence[str] = ("mean", "blur", "freeze"),
    sampling: str = "uniform",
    effort: str | int = "quick",
    area: float = AREA,
    salvage: bool = False,
    max_pixels: int = MAX_PIXELS,
    fps: float | None = None,
    size: tuple[int, int] | None = None,
) -> tuple[Explanation, ...]:
    """Explain why a video was classified as A, not as each of the other classes, the most probable first.

    As `explain` does for one, with the same arguments; the video is read and classified once for all. Every question is
    searched for itself, hence with less effort by default.
    """
    reading = _Reading(sampling, salvage, max_pixels, fps, size)
    how = Effort(tubes=find_effort(effort), area=area)
    return _explanations(video, model, why, None, k=k, fills=fills, effort=how, reading=reading)


def classify(
    video: Video,
    model: str | PathLike[str] | Model | VideoClassifier = "demo",
    *,
    top: int | None = 5,
    sampling: str = "uniform",
    salvage: bool = False,
    max_pixels: int = MAX_PIXELS,
) -> dict[str, float]:
    """Say the `top` most probable classes of a video with their probabilities, the likeliest first; None: all.

    video, model, sampling, salvage, max_pixels: as in `explain`.

    >>> classify("clip.mp4", top=2)  # doctest: +SKIP
    {'quickstep': 0.994, 'charleston': 0.002}
    """
    classifier = load_model(model).classifier
    clip = _Reading(sampling, salvage, max_pixels).clip(video, classifier)
    question = ask(classifier, clip.frames[None].to(classifier.device))
    chances = question.features.logits[0].softmax(0)
    count = len(chances) if top is None else min(check_int(top, "top", 1), len(chances))
    best = chances.topk(count)
    return {classifier.classes[i]: p for i, p in zip(best.indices.tolist(), best.values.tolist(), strict=True)}


def contrastive_map(
    video: Video,
    model: str | PathLike[str] | Model | VideoClassifier = "demo",
    *,
    why: str | None = None,
    why_not: str | None = None,
    sampling: str = "uniform",
    salvage: bool = False,
    max_pixels: int = MAX_PIXELS,
) -> NDArray[np.float32]:
    """Where the network's features speak for A rather than B: Grad-CAM of logit A minus logit B, (T, H, W).

    T and (H, W) are the classifier's frames and size. Values are from 0 to 1, relative to the map's own largest: unlike
    `Explanation.heat`, a map is not checked by masking anything. The arguments are those of `explain`.
    """
    classifier = load_model(model).classifier
    clip = _Reading(sampling, salvage, max_pixels).clip(video, classifier)
    question = ask(classifier, clip.frames[None].to(classifier.device), negatives=len(classifier.classes) - 1)
    question = _named(question, classifier, why, [why_not])
    maps = contrastive_maps(classifier, question.clips, question.positive, question.negative)
    shape = (classifier.frames, *classifier.size)
    fine: NDArray[np.float32] = (
        interpolate(maps.float(), size=shape, mode="trilinear", align_corners=False)[0, 0].cpu().numpy()
    )
    return fine / max(float(fine.max()), 1e-12)


def model_hash(classifier: torch.nn.Module) -> str:
    """SHA-256 of the names and values of all tensors that a classifier runs with."""
    digest = hashlib.sha256()
    for name, tensor in classifier.state_dict().items():
        if isinstance(tensor, torch.Tensor):  # a layer's `get_extra_state` may give anything else
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


@dataclass(frozen=True)
class _Reading:
    """How a clip is made of what is given as a video."""

    sampling: str = "uniform"
    salvage: bool = False
    max_pixels: int = MAX_PIXELS
    fps: float | None = None
    size: tuple[int, int] | None = None

    def clip(self, video: Video, classifier: VideoClassifier) -> Clip:
        """Read, sample and resize."""
        frames, size = classifier.frames, classifier.size
        if not isinstance(video, (str, PathLike, Clip)):
            return clip_of_array(
                video, frames=frames, size=size, sampling=self.sampling, fps=self.fps, own_size=self.size
            )
        if self.fps is not None or self.size is not None:
            raise ArgumentError("`fps` and `size` are for arrays and tensors: a file or a Clip says its own")
        if isinstance(video, Clip):
            return video
        return read_clip(video, frames=frames, size=size, sampling=self.sampling, **self.kept)

    @property
    def kept(self) -> dict[str, Any]:
        """What an explanation tells of it, so that what draws on the file reads it in the same way."""
        told = {"salvage": True} if self.salvage else {}
        return told if self.max_pixels == MAX_PIXELS else {**told, "max_pixels": self.max_pixels}


def _explanations(
    video: Video,
    model: str | PathLike[str] | Model | VideoClassifier,
    why: str | None,
    why_not: list[str | None] | None,
    *,
    k: int,
    fills: Sequence[str],
    effort: Effort,
    reading: _Reading,
) -> tuple[Explanation, ...]:
    """Explain against the one class in `why_not` (None: the most probable), or against every other."""
    check_int(k, "k", 1)
    for fill in fills:
        check_choice(fill, "fills", FILLS)
    seconds: dict[str, float] = {}
    started = time.perf_counter()

    def done(stage: str) -> None:
        seconds[stage] = round(time.perf_counter() - started - sum(seconds.values()), 4)

    explainer = load_model(model).with_effort(effort)
    classifier = explainer.classifier
    done("load model")
    clip = reading.clip(video, classifier)
    timed = isinstance(video, (str, PathLike, Clip)) or clip.fps is not None
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
    source, content = _identity(video, clip)
    weights = model_hash(classifier)
    done("hash")
    return tuple(
        Explanation(
            source=source,
            size=clip.size,
            frames=tuple(int(i) for i in clip.indices),
            times=tuple(float(t) for t in clip.times) if timed else None,
            fps=clip.fps,
            duration=clip.duration,
            positive=classifier.classes[int(question.positive)],
            negative=classifier.classes[negative],
            probabilities=dict(zip(classifier.classes, chances, strict=True)),
            reasons=_reasons(explainer.attribute_names, clip, question, regions, after, n, timed=timed),
            settings={**explainer.settings, "k": k, "fills": list(fills), "sampling": reading.sampling, **reading.kept},
            versions=versions(),
            timings=seconds,
            video_hash=content,
            model=classifier.title,
            model_hash=weights,
        )
        for n, negative in enumerate(question.negative[0].tolist())
    )


def _identity(video: Video, clip: Clip) -> tuple[str, str]:
    """Where a clip comes from, and the SHA-256 of what was given: see `video_hash`, or of the pixels."""
    if isinstance(video, (str, PathLike)):
        path = Path(video).absolute()
        return str(path), video_hash(path)
    given = video.frames if isinstance(video, Clip) else video
    array = (
        given.detach().cpu().contiguous().numpy() if isinstance(given, torch.Tensor) else np.ascontiguousarray(given)
    )
    source = Path(clip.source)
    name = str(source.absolute()) if isinstance(video, Clip) and source.exists() else clip.source
    digest = hashlib.sha256(f"{array.dtype} {array.shape}".encode())
    digest.update(array.data)
    return name, digest.hexdigest()


def video_hash(path: Path) -> str:
    """SHA-256 of a file, or of the names and hashes of a folder's frames; "" where they cannot be read."""
    try:
        if not path.is_dir():
            if not path.is_file():  # a pipe or a device may never end
                return ""
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        digest = hashlib.sha256()
        for frame in sorted(p for p in path.iterdir() if p.suffix.lower() in FRAME_SUFFIXES):
            digest.update(f"{frame.name} {video_hash(frame)}\n".encode("utf-8", "surrogateescape"))
        return digest.hexdigest()
    except OSError:
        return ""


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
    *,
    timed: bool,
) -> tuple[Reason, ...]:
    """Write down the regions for negative n of a clip; after: fill -> probabilities (N, k, C) once each is masked."""
    pair = [int(question.positive), int(question.negative[0, n])]
    before = question.features.logits[0].softmax(0)[pair].tolist()
    told = {fill: chances[n][:, pair].tolist() for fill, chances in after.items()}
    ids, scores = regions.attribute_ids[0, n].tolist(), regions.scores[0, n].tolist()
    fits = [math.nan] * len(ids) if regions.fits is None else regions.fits[0, n].tolist()
    return tuple(
        Reason(
            attribute=attribute_names[ids[r]] if ids[r] >= 0 else "",
            score=scores[r],
            tube=_tube(regions.boxes[0, n, r], clip, timed=timed),
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
