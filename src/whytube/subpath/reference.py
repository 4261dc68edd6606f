"""The paper's layer as a chain of standard operations: what every kernel must agree with.

`compose` is section 3.5 of the paper to the letter (elementwise sum, relu, 2-d max pooling, global max) except that the
path is never empty; autograd differentiates it. `search` runs the same chain without a tape and then walks back along
the path; it serves every device that has no kernel of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it

if TYPE_CHECKING:
    from whytube.subpath.operator import Job

Found = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
"""value (N,), start (N,), stop (N,), cells (N, T, 3)."""


def compose(scores: torch.Tensor, *, radius: int = 1, fixed: bool = False) -> torch.Tensor:
    """Return the largest subpath sum (N,) of `scores` (N, K, T, H, W), differentiable through the chain.

    Time is split with `unbind`, whose backward is one stack; indexing `scores[:, :, t]` would write a full-size
    gradient per step.
    """
    window = 2 * radius + 1
    states = []
    state = None
    for step in scores.unbind(2):  # (N, K, H, W)
        if state is None:
            state = step
        else:
            past = state if fixed else state.amax(1, keepdim=True)
            state = step + F.max_pool2d(F.relu(past), window, stride=1, padding=radius)
        states.append(state.flatten(1).amax(1))
    return torch.stack(states, 1).amax(1)


def search(job: Job, plus: torch.Tensor | None, minus: torch.Tensor | None, lengths: torch.Tensor | None) -> Found:
    """Find the best path of every item; plus, minus, lengths: as `Job.rows` gives them."""
    volumes, radius = job.volumes, job.radius
    scores = volumes if plus is None else volumes[plus]
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    if minus is not None:
        scores = scores - volumes[minus]
    if not job.maximum:
        scores = -scores
    n, k, t, h, w = scores.shape
    if lengths is not None:
        padding = torch.arange(t, device=scores.device) >= lengths[:, None]  # (N, T)
        scores = scores.masked_fill(padding[:, None, :, None, None], -torch.inf)
    if job.fixed:
        value, end, path = _best_path(scores.reshape(n * k, t, h, w), radius)
        # Among equal values the lowest (time, row, column, form) wins.
        value, end, path = value.view(n, k), end.view(n, k), path.view(n, k, t)
        best = value.amax(1)
        order = torch.where(value == best[:, None], end * k + torch.arange(k, device=end.device), t * h * w * k)
        form = order.argmin(1)
        value, path = best, path[torch.arange(n, device=form.device), form]
        forms = form[:, None].expand(n, t)
    else:
        planes, chosen = scores.max(1)  # the first index of the maximum: the lowest form
        value, end, path = _best_path(planes, radius)
        forms = chosen.flatten(2).gather(2, path.clamp_min(0)[:, :, None])[:, :, 0]
    inside = path >= 0
    cells = torch.stack([forms, path // w, path % w], -1).where(inside[:, :, None], -1)
    length = inside.sum(1)
    start = torch.where(length > 0, inside.int().argmax(1), 0)
    return (value if job.maximum else -value), start, start + length, cells


def _best_path(planes: torch.Tensor, radius: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Search `planes` (N, T, H, W): value (N,), end (N,) as t * H * W + cell, the cell at every step (N, T) or -1."""
    n, t, h, w = planes.shape
    window = 2 * radius + 1
    state = planes[:, 0]
    states = [state]
    for step in range(1, t):
        past = F.max_pool2d(state, window, stride=1, padding=radius)
        state = planes[:, step] + past.clamp_min(0)
        states.append(state)
    history = torch.stack(states, 1).flatten(2)  # (N, T, H * W)
    value, end = history.flatten(1).max(1)
    found = value > -torch.inf  # False for NaN, too
    path = torch.full((n, t), -1, dtype=torch.long, device=planes.device)
    shift = torch.arange(-radius, radius + 1, device=planes.device)
    cell, last, alive = end % (h * w), end // (h * w), torch.zeros_like(found)
    for step in range(t - 1, -1, -1):
        alive = alive | (found & (last == step))
        path[:, step] = torch.where(alive, cell, -1)
        if step == 0:
            break
        rows = (cell // w)[:, None, None] + shift[:, None]  # (N, window, 1)
        cols = (cell % w)[:, None, None] + shift  # (N, 1, window)
        legal = (rows >= 0) & (rows < h) & (cols >= 0) & (cols < w)
        near = (rows.clamp(0, h - 1) * w + cols.clamp(0, w - 1)).flatten(1)  # (N, window * window)
        past, first = history[:, step - 1].gather(1, near).masked_fill(~legal.flatten(1), -torch.inf).max(1)
        cell = torch.where(alive & (past > 0), near.gather(1, first[:, None])[:, 0], cell)
        alive = alive & (past > 0)
    return value, end, path
