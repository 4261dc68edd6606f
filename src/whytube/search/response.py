"""Predict what masking a tube does, without masking it: the response of a network that can be run in two parts.

The features h of the whole clip at a stage of the network (`VideoClassifier.cuts`) are changed where the tube is,

    h' = relu(h * (1 - A m) + B m),

and the rest of the network runs on h'. m is how much of a cell the tube covers, seen through a few small filters, so
that cells beside the tube change, too. A and B have one number per channel and filter. They are trained on masked runs
(training/response.py). Untrained, A keeps what is not covered, and B puts the features of a black clip in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from whytube.classifiers.base import evaluating
from whytube.search.masked import fitting, search_copy, weights_of
from whytube.tubes import cell_coverage

if TYPE_CHECKING:
    from whytube.classifiers.base import VideoClassifier

FILTERS = 8
TAPS = (3, 5, 5)
"""Reach of the filters in steps, rows and columns."""
_CHUNK = {"cpu": 8, "cuda": 256}
"""Tubes predicted at a time."""
_SHARES: WeakKeyDictionary[VideoClassifier, dict[str, float]] = WeakKeyDictionary()
"""What `back_share` found."""
_UNTRAINED: WeakKeyDictionary[VideoClassifier, tuple[list[tuple[int, int]], Response | None]] = WeakKeyDictionary()
"""Untrained responses, with the state of the weights that they were made of."""


class Response(nn.Module):
    """How the features of `channels` channels after the stage `cut` change under a tube.

    cost: share of a run of the network that one prediction takes, in multiply-adds.
    """

    def __init__(self, cut: str, channels: int, cost: float) -> None:
        super().__init__()
        self.cut, self.channels, self.cost = cut, channels, cost
        self.filters = nn.Conv3d(1, FILTERS, TAPS, padding=(TAPS[0] // 2, TAPS[1] // 2, TAPS[2] // 2), bias=False)
        self.keep = nn.Parameter(torch.zeros(channels, FILTERS))
        self.put = nn.Parameter(torch.zeros(channels, FILTERS))
        with torch.no_grad():
            generator = torch.Generator().manual_seed(0)
            self.filters.weight.normal_(0, 0.05, generator=generator)
            self.filters.weight[0] = 0
            self.filters.weight[0, 0, TAPS[0] // 2, TAPS[1] // 2, TAPS[2] // 2] = 1  # the coverage itself
            self.keep[:, 0] = 1

    def forward(self, h: torch.Tensor, covered: torch.Tensor) -> torch.Tensor:
        """Features (M, d, t, h, w) of whole clips and coverage (M, t, h, w) -> features once masked."""
        seen = self.filters(covered[:, None].to(h.dtype))  # (M, FILTERS, t, h, w)
        lost = torch.einsum("df,mfthw->mdthw", self.keep, seen)
        return functional.relu(h * (1 - lost) + torch.einsum("df,mfthw->mdthw", self.put, seen))


def build_response(classifier: VideoClassifier) -> Response | None:
    """Build an untrained response of a network; None for one that cannot be run in parts."""
    cut = classifier.response_cut
    if cut is None:
        return None
    black = torch.zeros(1, 3, classifier.frames, *classifier.size, device=classifier.device)
    with torch.no_grad(), evaluating(classifier):
        h = classifier.front(black, cut)
        response = Response(cut, h.shape[1], back_share(classifier, cut))
        response.put[:, 0] = h.mean((0, 2, 3, 4)).cpu()
    return response.to(classifier.device)


def untrained_response(classifier: VideoClassifier) -> Response | None:
    """Return the untrained response of a network, built once for its weights."""
    weights, known = weights_of(classifier), _UNTRAINED.get(classifier)
    if known is None or known[0] != weights:
        known = _UNTRAINED[classifier] = (weights, build_response(classifier))
    return known[1]


class Predictor:
    """Predicts logits of masked clips, in the precision of a search; what the clips need is computed once.

    clips: (B, 3, T, H, W).
    """

    def __init__(self, classifier: VideoClassifier, response: Response, clips: torch.Tensor) -> None:
        self.network, self.response = search_copy(classifier), response.to(clips.device)
        self.frame = (clips.shape[-2], clips.shape[-1])
        with torch.no_grad(), evaluating(self.network):
            parts = torch.split(clips, _CHUNK["cpu" if clips.device.type == "cpu" else "cuda"] // 8)
            self.h = torch.cat([self.network.front(fitting(part, self.network), response.cut) for part in parts])

    @torch.no_grad()
    def __call__(self, boxes: torch.Tensor) -> torch.Tensor:
        """Logits once boxes (B, M, T, 4) are masked: (B, M, C). A tube that comes several times is predicted once."""
        chunk = _CHUNK["cpu" if boxes.device.type == "cpu" else "cuda"]
        clip = torch.arange(len(boxes), device=boxes.device).repeat_interleave(boxes.shape[1])
        rows = torch.cat([clip[:, None].to(boxes.dtype), boxes.flatten(0, 1).flatten(1)], 1)
        different, place = torch.unique(rows, dim=0, return_inverse=True)
        owner, tubes = different[:, 0].long(), different[:, 1:].reshape(-1, *boxes.shape[-2:])
        found = []
        with evaluating(self.network):
            for whose, some in zip(*(torch.split(part, chunk) for part in (owner, tubes)), strict=True):
                h = self.h[whose]
                covered = cell_coverage(some, (h.shape[2], h.shape[3], h.shape[4]), self.frame)
                changed = self.response(h.float(), covered).to(h.dtype)
                found.append(self.network.back(changed, self.response.cut).float())
        return torch.cat(found)[place].view(*boxes.shape[:2], -1)


def back_share(classifier: VideoClassifier, cut: str) -> float:
    """Share of a network's multiply-adds that come after a stage; measured by a run on a black clip."""
    known = _SHARES.get(classifier, {})
    if cut in known:
        return known[cut]
    clip = torch.zeros(1, 3, classifier.frames, *classifier.size, device=classifier.device)
    # With gradients every layer runs as it is; without them some are replaced by faster ones that are not counted.
    with torch.enable_grad(), evaluating(classifier):
        with FlopCounterMode(display=False) as early:
            h = classifier.front(clip, cut)
        with FlopCounterMode(display=False) as late:
            classifier.back(h, cut)
    share: float = late.get_total_flops() / max(1, early.get_total_flops() + late.get_total_flops())
    _SHARES[classifier] = known | {cut: share}
    return share
