"""What methods share: random attributes, chance that depends on the clip alone, answers laid out as Regions."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np
import torch

from whytube.search.anytime import clip_keys
from whytube.search.verify import Regions, separating_attributes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whytube.search.verify import Question


def clip_chances(clips: torch.Tensor, name: str, seed: int) -> list[np.random.Generator]:
    """One generator per clip (B, 3, T, H, W), the same for the same clip in any batch, method name and seed."""
    own = zlib.crc32(name.encode())
    return [np.random.default_rng([seed, own, key]) for key in clip_keys(clips)]


def random_attributes(chances: Sequence[np.random.Generator], suited: torch.Tensor, k: int) -> torch.Tensor:
    """Draw k different attributes per clip and negative: suited (B, N, S) -> ids (B, N, k), -1 past the last one.

    suited: bool, or integers: attributes with a larger one come first, those with 0 never.
    """
    _, negatives, count = suited.shape
    noise = torch.from_numpy(np.stack([rng.random((negatives, count)) for rng in chances])).to(suited.device)
    ranked = (suited + noise).masked_fill(suited <= 0, -torch.inf)
    value, place = ranked.topk(min(k, count), dim=-1)
    drawn = torch.where(value > -torch.inf, place, -1)
    return torch.nn.functional.pad(drawn, (0, k - drawn.shape[-1]), value=-1)


def random_words(table: torch.Tensor | None, question: Question, k: int, *, name: str, seed: int) -> torch.Tensor:
    """Draw attributes for a method without words: first those that A has and B lacks, then others of A; (B, N, k).

    table: (C, S) bool; without one there are none, all are -1.
    """
    if table is None:
        return torch.full((*question.negative.shape, k), -1, device=question.clips.device)
    table = table.to(question.clips.device)
    apart = separating_attributes(table, question.positive, question.negative)
    suited = table[question.positive][:, None].long() + apart.long()
    return random_attributes(clip_chances(question.clips, name, seed), suited, k)


def as_regions(
    boxes: torch.Tensor, attribute_ids: torch.Tensor, exists: torch.Tensor, scores: torch.Tensor | None = None
) -> Regions:
    """Lay out answers best first: boxes (B, N, k, T, 4), attribute_ids (B, N, k), exists (B, N, k) bool.

    Where one does not exist it is padding; without scores an answer's is minus its rank.
    """
    if scores is None:
        scores = -torch.arange(boxes.shape[2], device=boxes.device, dtype=torch.float32).expand(exists.shape)
    return Regions(
        boxes=torch.where(exists[..., None, None], boxes, 0).float(),
        attribute_ids=torch.where(exists, attribute_ids, -1),
        scores=torch.where(exists, scores, -torch.inf),
    )
