"""What a classifier says once tubes are masked: the unit of cost of every search, made cheap.

Three things save time. A tube that comes several times is masked once. A search may run in half precision
(`exact=False`) where the processor has it. And on a CPU a convolutional network is run only on the block that a tube
reaches (classifiers/blocks.py), which changes nothing.
"""

from __future__ import annotations

import math
from copy import deepcopy
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from whytube.classifiers.base import evaluating
from whytube.classifiers.blocks import run_again, run_all
from whytube.tubes import Eraser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whytube.classifiers.base import VideoClassifier
    from whytube.classifiers.blocks import Block
    from whytube.search.verify import Question

_CLIPS = 64
_PIXELS = {"cpu": 2**22, "cuda": 2**26}
"""At most so many clips, and pixels of them, are masked and classified at a time; a CPU's caches hold few."""
_FULL = 4
"""A network that runs in full precision on a GPU has so many times fewer."""
_COPIES: WeakKeyDictionary[VideoClassifier, tuple[list[tuple[int, int]], VideoClassifier]] = WeakKeyDictionary()
"""Networks in half precision, with the state of the weights that they were made of."""
_KEPT = WeakTensorKeyDictionary()
"""By the clips of a question: the weights that last ran on blocks of one, which one, and its unmasked maps."""


class Tubes(NamedTuple):
    """Different tubes: whose clip each is of, owner (n,), ascending, and its boxes (n, T, 4)."""

    owner: torch.Tensor
    boxes: torch.Tensor


@torch.no_grad()
def masked_logits(
    classifier: VideoClassifier,
    question: Question,
    boxes: torch.Tensor,
    tried: torch.Tensor,
    *,
    fill: str,
    exact: bool = True,
) -> torch.Tensor:
    """Logits once each of boxes (B, ..., T, 4) that is `tried` (B, ...) is masked, else as they are: (B, ..., C).

    A tube that comes several times for a clip is masked once. Where masking changes no pixel (a frozen single frame),
    nothing changes, to the last bit.

    exact: in the classifier's own precision. A search that only compares tubes may do without: see `search_precision`.
    """
    rows = torch.cat([tried.nonzero()[:, :1], boxes[tried].flatten(1)], dim=1)  # whose clip, then its boxes
    different, place = torch.unique(rows, dim=0, return_inverse=True)
    tubes = Tubes(different[:, 0].long(), different[:, 1:].unflatten(1, boxes.shape[-2:]))
    network = classifier if exact else search_copy(classifier)
    run = _in_blocks if network.block_cut and boxes.device.type == "cpu" else _whole
    chunk = _at_once(network, question)
    own = question.features.logits
    logits = own.view(len(own), *[1] * (tried.ndim - 1), -1).repeat(1, *tried.shape[1:], 1)
    if len(tubes.owner):
        eraser = Eraser(question.clips, fill)
        with evaluating(network):
            found = run(network, eraser, own[tubes.owner], tubes, chunk)
        wrong = ~found.isfinite().all(1)
        if not exact and wrong.any():  # more than half precision can hold
            again = Tubes(tubes.owner[wrong], tubes.boxes[wrong])
            with evaluating(classifier):
                found[wrong] = _whole(classifier, eraser, own[again.owner], again, _at_once(classifier, question))
        logits[tried] = found[place]
    return logits


def _at_once(network: VideoClassifier, question: Question) -> int:
    """How many of a question's clips a network is run on at a time."""
    pixels = _PIXELS["cpu"]
    if question.clips.device.type != "cpu":
        half = network.halvable and next(network.parameters()).dtype != torch.float32
        pixels = _PIXELS["cuda"] // (1 if half else _FULL)
    return max(1, min(_CLIPS, pixels // math.prod(question.clips.shape[2:])))


def _whole(network: VideoClassifier, eraser: Eraser, own: torch.Tensor, tubes: Tubes, chunk: int) -> torch.Tensor:
    """Logits (n, C) of the network on masked clips, `chunk` whole ones at a time; own (n, C) where nothing changed."""
    results = []
    for whose, boxes, before in zip(*(torch.split(part, chunk) for part in (*tubes, own)), strict=True):
        erased, changed = eraser.whole(whose, boxes)
        results.append(torch.where(changed, _run_whole(network, erased).to(own.dtype), before))
    return torch.cat(results)


def _in_blocks(network: VideoClassifier, eraser: Eraser, own: torch.Tensor, tubes: Tubes, chunk: int) -> torch.Tensor:
    """Logits (n, C) as `_whole` finds them, from the blocks of the clips that the tubes reach."""
    results = own.clone()
    waiting: list[tuple[int, torch.Tensor]] = []
    for place, (whose, boxes) in enumerate(zip(tubes.owner.tolist(), tubes.boxes, strict=True)):
        found = eraser.block(whose, boxes)
        if found is not None:
            waiting.append((place, _run_block(network, eraser.clips, whose, *found)))
        if waiting and (len(waiting) == chunk or place == len(own) - 1):
            places, maps = zip(*waiting, strict=True)
            results[list(places)] = _run_rest(network, maps).to(own.dtype)
            waiting = []
    return results


def _run_whole(network: VideoClassifier, clips: torch.Tensor) -> torch.Tensor:
    return network(fitting(clips, network))  # type: ignore[no-any-return]


def _run_block(
    network: VideoClassifier, clips: torch.Tensor, whose: int, erased: torch.Tensor, where: Block
) -> torch.Tensor:
    """Output of the network's block cut for one clip, of which a block (1, 3, t, h, w) was erased."""
    return run_again(network.steps(), _kept_maps(network, clips, whose), fitting(erased, network), where)


def _run_rest(network: VideoClassifier, maps: Sequence[torch.Tensor]) -> torch.Tensor:
    return network.finish(torch.cat(list(maps)))


def _kept_maps(network: VideoClassifier, clips: torch.Tensor, whose: int) -> list[torch.Tensor]:
    """Return an unmasked clip's maps up to the network's block cut, those of the last clip as kept beside the clips."""
    key = (id(network), weights_of(network), whose)
    found = _KEPT.get(clips)  # type: ignore[no-untyped-call]
    if found is None or found[0] != key:
        found = _KEPT[clips] = (key, run_all(network.steps(), fitting(clips[whose : whose + 1].clone(), network)))
    maps: list[torch.Tensor] = found[1]
    return maps


def search_precision(classifier: VideoClassifier) -> torch.dtype | None:
    """Precision of a search: half where classifier and device have it, None for the classifier's own.

    On a GPU that is float16; on a CPU bfloat16, if it has instructions for it (AVX512-BF16 or AMX).
    """
    if not classifier.halvable or any(weights.dtype != torch.float32 for weights in classifier.parameters()):
        return None
    device = next(classifier.parameters()).device.type
    if device == "cuda":
        return torch.float16
    quick = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return torch.bfloat16 if quick and device == "cpu" else None


def search_copy(classifier: VideoClassifier) -> VideoClassifier:
    """Classifier in the precision of a search, made once; its class layers stay as they are."""
    precision = search_precision(classifier)
    if precision is None:
        return classifier
    weights, known = weights_of(classifier), _COPIES.get(classifier)
    if known is None or known[0] != weights:
        copy = classifier.for_inference()
        if copy is classifier:
            copy = deepcopy(classifier)
        for name, child in copy.named_children():
            if name != "head":
                child.to(precision)
        known = _COPIES[classifier] = (weights, copy)
    return known[1]


def weights_of(network: VideoClassifier) -> list[tuple[int, int]]:
    """Which tensors a network has, and how often each was changed: differs once it is trained or moved."""
    tensors = (*network.parameters(), *network.buffers())
    return [(tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version) for tensor in tensors]


def fitting(clips: torch.Tensor, network: VideoClassifier) -> torch.Tensor:
    """Clips in the precision of the network's first layer, on a CPU channels last; for wrapped networks as they are."""
    if not network.halvable:
        return clips
    # On a GPU the first layer lays three channels out as it likes, at no further cost.
    layout = torch.preserve_format if clips.is_cuda else torch.channels_last_3d
    return clips.to(next(network.parameters()).dtype, memory_format=layout)
