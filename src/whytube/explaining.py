"""explain(): a video and a model in, an Explanation out; what_if(), classify() and contrastive_map() ask for less."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.nn.functional import interpolate

from whytube.asking import Asked, named
from whytube.checks import check_int
from whytube.given import Reading
from whytube.models import load_model
from whytube.search.anytime import AREA, Effort, find_effort
from whytube.search.grad_cam import contrastive_maps
from whytube.search.verify import ask
from whytube.video import MAX_PIXELS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike

    import numpy as np
    from numpy.typing import NDArray

    from whytube.classifiers.base import VideoClassifier
    from whytube.explanation import Explanation
    from whytube.given import Video
    from whytube.models.find import Model
    from whytube.tubes import Tube


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
        fills: what masked regions are filled with: "mean", "blur", "freeze", "zero", "still", "shift", "noise".
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
    reading = Reading(sampling, salvage, max_pixels, fps, size)
    how = Effort(tubes=find_effort(effort), area=area)
    asked = Asked([video], model, why, [why_not], k=k, fills=fills, effort=how, reading=reading)
    return asked.told(asked.answer())[0][0]


def explain_rounds(
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
) -> Iterator[Explanation]:
    """Yield an explanation after every round of the search, for those who watch; the last one is that of `explain`.

    As `explain` does, with the same arguments. Each is checked with `fills`; a tube that stays is checked once.
    """
    how = Effort(tubes=find_effort(effort), area=area)
    asked = Asked(
        [video], model, why, [why_not], k=k, fills=fills, effort=how, reading=Reading(sampling, salvage, max_pixels)
    )
    for regions in asked.rounds():
        yield asked.told(regions)[0][0]


def what_if(
    video: Video,
    model: str | PathLike[str] | Model | VideoClassifier,
    tube: Tube,
    *,
    why: str | None = None,
    why_not: str | None = None,
    fills: Sequence[str] = ("mean", "blur", "freeze"),
    sampling: str = "uniform",
    salvage: bool = False,
    max_pixels: int = MAX_PIXELS,
) -> Explanation:
    """Say what hiding a tube of your own does to the decision: an Explanation with this tube as its one reason.

    tube: boxes in pixels of the video's own frames. Between its frames boxes are interpolated; before the first and
    after the last one nothing is hidden. The other arguments are those of `explain`. Nothing is searched; the reason
    has no word, and its score is how far p(A) - p(B) falls.
    """
    reading = Reading(sampling, salvage, max_pixels)
    asked = Asked([video], model, why, [why_not], k=1, fills=fills, effort=Effort(), reading=reading)
    return asked.told(asked.given(tube), {"objective": "what if", "score": "fall of p(A) - p(B)"})[0][0]


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
    reading = Reading(sampling, salvage, max_pixels, fps, size)
    how = Effort(tubes=find_effort(effort), area=area)
    asked = Asked([video], model, why, None, k=k, fills=fills, effort=how, reading=reading)
    return asked.told(asked.answer())[0]


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
    clip = Reading(sampling, salvage, max_pixels).clip(video, classifier)
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
    clip = Reading(sampling, salvage, max_pixels).clip(video, classifier)
    question = ask(classifier, clip.frames[None].to(classifier.device), negatives=len(classifier.classes) - 1)
    question = named(question, classifier, why, [why_not])
    maps = contrastive_maps(classifier, question.clips, question.positive, question.negative)
    shape = (classifier.frames, *classifier.size)
    fine: NDArray[np.float32] = (
        interpolate(maps.float(), size=shape, mode="trilinear", align_corners=False)[0, 0].cpu().numpy()
    )
    return fine / max(float(fine.max()), 1e-12)
