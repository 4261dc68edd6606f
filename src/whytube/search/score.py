"""What a tube is ranked by: how much more the classifier thinks of B, and less of A, once the tube is masked.

    value = rise of the log-odds of B
            - OTHERS * how much more the probability of some third class rises than that of B
            - AHEAD * the same of log-probabilities, of which none counts as less than log RARE
            - FALL * how much the fall of p(A) misses ENOUGH

averaged over the selecting fills. The first term alone often takes tubes that raise a third class more than B. "B's
rise minus the largest other rise" alone takes tubes that leave A as it is. docs/method.md has how the weights were
chosen.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from whytube.search.verify import Question

OTHERS = 10.0
AHEAD = 1.0
RARE = 1e-4
FALL = 20.0
ENOUGH = 0.02


def log_odds(logits: torch.Tensor, negative: torch.Tensor) -> torch.Tensor:
    """Log-odds log p(B) / (1 - p(B)) from logits (..., C) of classes (..., N), which may broadcast: (..., N)."""
    log_p = logits.log_softmax(-1)
    wanted = negative.expand(*log_p.shape[:-1], negative.shape[-1])
    chosen = log_p.gather(-1, wanted)
    return chosen - torch.log1p(-chosen.exp().clamp_max(1 - 1e-6))


def value(question: Question, logits: torch.Tensor) -> torch.Tensor:
    """Value of tubes whose masking gives logits (B, N, M, C), for negatives (B, N): (B, N, M)."""
    a, b, before = _asked(question, logits)
    rise = log_odds(logits, b) - log_odds(before.expand_as(logits), b)
    change = logits.softmax(-1) - before.softmax(-1)
    behind = _behind(change, a, b)
    behind_in_logs = _behind(_log_p(logits) - _log_p(before), a, b)
    missed = (change.gather(-1, a) + ENOUGH).clamp_min(0)
    return (rise - OTHERS * behind - AHEAD * behind_in_logs - FALL * missed)[..., 0]


def margin_fall(question: Question, logits: torch.Tensor) -> torch.Tensor:
    """How far p(A) - p(B) falls where masking tubes gives logits (B, N, M, C), for negatives (B, N): (B, N, M)."""
    a, b, before = _asked(question, logits)
    change = before.softmax(-1) - logits.softmax(-1)
    return (change.gather(-1, a) - change.gather(-1, b))[..., 0]


def _asked(question: Question, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return A and B, (B, N, M, 1), and the logits of the unmasked clips, (B, 1, 1, C)."""
    a = question.positive[:, None, None, None].expand(*logits.shape[:-1], 1)
    b = question.negative[:, :, None, None].expand(*logits.shape[:-1], 1)
    return a, b, question.features.logits[:, None, None].to(logits.dtype)


def _log_p(logits: torch.Tensor) -> torch.Tensor:
    """Log-probabilities, at least log RARE: among hundreds of classes one that nobody thinks of always rises."""
    return logits.log_softmax(-1).clamp_min(math.log(RARE))


def _behind(change: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """How much more some third class rises than B, at least 0: changes (..., C), classes (..., 1) -> (..., 1)."""
    third = change.scatter(-1, a, -torch.inf).scatter(-1, b, -torch.inf).amax(-1, keepdim=True)
    return (third - change.gather(-1, b)).clamp_min(0)  # -inf where there are but two classes
