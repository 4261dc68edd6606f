"""First drafts for a person to correct: the tube that the model itself takes for each word. Runs in a worker only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from whytube.errors import ArgumentError
from whytube.explainer.explainer import Explainer
from whytube.search.verify import ask
from whytube.subpath import max_subpath
from whytube.web.decoding import load_clip
from whytube.web.work import Outcome
from whytube.web.worker import describe

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from whytube.search.verify import Question
    from whytube.video import Clip
    from whytube.web.work import Context

MOST_KEYS = 6
"""Key frames of a draft: few enough to look at each."""


def draft(inputs: dict[str, Any], context: Context) -> Outcome:
    """Propose a tube for every word in one video, or in several.

    inputs: videos, a list of {"id", "clip", "frames"}. The document, for `keep_draft` of annotate_jobs.py: per video
    what `propose` says, and the hash of the model.
    """
    explainer = context.model
    if not isinstance(explainer, Explainer):
        raise ArgumentError("this model has no words, so it has no drafts: draw boxes and teach it some")
    videos, found = inputs["videos"], {}
    for done, video in enumerate(videos):
        context.progress(done, len(videos), f"looking at video {done + 1} of {len(videos)}")
        predicted, drafts = propose(explainer, load_clip(video["clip"]), frames=video["frames"])
        found[video["id"]] = {"predicted": predicted, "drafts": drafts}
    document = {"videos": found, "model": describe(explainer)["hash"]}
    return Outcome(value={"videos": len(found)}, document=document)


@torch.no_grad()
def propose(explainer: Explainer, clip: Clip, *, frames: int) -> tuple[str, list[dict[str, Any]]]:
    """Return the predicted class, and for every attribute a draft {"attribute", "fit", "likely", "keys"}.

    likely: whether the class has the attribute. fit: told for those, where it is known. frames: of the video.
    """
    question = ask(explainer.classifier, clip.frames[None].to(explainer.device))
    count = len(explainer.attribute_names)
    every = torch.arange(count, device=explainer.device)[None]
    path = max_subpath(explainer.word_volumes(question, every).unsqueeze(3))  # a form at a time, so that sizes stay
    cells, best = path.cells.clone(), path.value.argmax(2)  # (1, S, K, t, 3), (1, S)
    form = torch.arange(cells.shape[2], device=cells.device).view(-1, 1)
    cells[..., 0] = torch.where(cells[..., 0] >= 0, form, -1)
    chosen = cells.gather(2, best[:, :, None, None, None].expand(-1, -1, 1, *cells.shape[3:]))[:, :, 0]
    boxes = explainer.scores.forms.boxes(chosen)  # (1, S, T, 4)
    fits, row = _fits(explainer, question, boxes), explainer.table[int(question.positive)].tolist()
    drafts = []
    for place, attribute in enumerate(explainer.attribute_names):
        keys = key_frames(boxes[0, place].cpu().double().numpy(), clip, frames=frames)
        if keys:
            drafts.append({"attribute": attribute, "fit": fits[place], "likely": row[place], "keys": keys})
    return explainer.classes[int(question.positive)], drafts


def _fits(explainer: Explainer, question: Question, boxes: torch.Tensor) -> list[float | None]:
    """Fits of the tubes of all attributes, boxes (1, S, T, 4); None where the class lacks one, or none is known."""
    places = explainer.places(question)
    fits: list[float | None] = [None] * boxes.shape[1]
    ids = places.attribute_ids[0]
    own = ids[ids >= 0]
    told = places.fit_of(boxes[:, own][:, None], own[None, None])[0, 0].tolist()
    for place, fit in zip(own.tolist(), told, strict=True):
        fits[place] = None if math.isnan(fit) else round(min(max(fit, 0.0), 1.0), 4)
    return fits


def key_frames(boxes: NDArray[np.float64], clip: Clip, *, frames: int) -> list[dict[str, Any]]:
    """Turn boxes (T, 4) in pixels of the clip into a few keys in pixels and frames of the video; [] for no box.

    Where the tube ends before the video, a key says that it is outside from there on.
    """
    height, width = clip.size
    scale = np.array([width, height, width, height]) / np.array([*clip.frames.shape[:-3:-1]] * 2)
    there = boxes[:, 2] > boxes[:, 0]
    indices, first = np.unique(clip.indices[there], return_index=True)
    inside = indices < frames
    indices, own = indices[inside], (boxes * scale)[there][first][inside]
    if not len(indices):
        return []
    slack, kept = 0.02 * max(width, height), np.arange(len(indices))
    while len(kept) > MOST_KEYS:
        kept = thinned(indices, own, slack)
        slack *= 1.5
    keys = [
        {"frame": int(indices[i]), "box": own[i].round(2).tolist(), "outside": False, "occluded": False} for i in kept
    ]
    end = _end(int(indices[-1]), clip.indices, frames)
    if end < frames:
        keys += [{**keys[-1], "frame": end, "outside": True}]
    return keys


def _end(last: int, sampled: NDArray[np.int64], frames: int) -> int:
    """Return the first frame past a tube whose last sampled frame is `last`: half way to the next sampled one."""
    later = sampled[sampled > last]
    return frames if not len(later) else last + max(1, round((int(later[0]) - last) / 2))


def thinned(frames: NDArray[np.int64], boxes: NDArray[np.float64], slack: float) -> NDArray[np.int64]:
    """Return places (k,) of boxes (L, 4) at frames (L,) that are enough: lines between are off by at most `slack`."""
    keep, spans = {0, len(frames) - 1}, [(0, len(frames) - 1)]
    while spans:
        low, high = spans.pop()
        if high - low < 2:
            continue
        share = ((frames[low:high] - frames[low]) / (frames[high] - frames[low]))[:, None]
        off = np.abs(boxes[low:high] - boxes[low] - share * (boxes[high] - boxes[low])).max(1)
        worst = int(off.argmax())
        if off[worst] > slack:
            keep.add(low + worst)
            spans += [(low, low + worst), (low + worst, high)]
    return np.array(sorted(keep))
