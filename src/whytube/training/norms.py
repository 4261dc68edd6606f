"""Batch normalisation after a short training: its running statistics, estimated anew on training clips.

In training a norm uses the statistics of its batch; afterwards it uses running ones, which move by `momentum` a step.
After a few hundred steps of .01 those are still partly of the data that the network was pretrained on, while the
weights have moved. So they are measured again, with the final weights (Wu and Johnson, "Rethinking 'Batch' in
BatchNorm", 2021).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn.modules.batchnorm import _BatchNorm

if TYPE_CHECKING:
    from collections.abc import Iterable


def trained_norms(module: torch.nn.Module) -> list[_BatchNorm]:
    """Return the norms that use the statistics of their batch when the module is trained; those of frozen parts do not.

    The module is left in training mode.
    """
    module.train()
    norms = (part for part in module.modules() if isinstance(part, _BatchNorm))
    return [norm for norm in norms if norm.training and norm.running_mean is not None]


@torch.no_grad()
def settle_norms(module: torch.nn.Module, batches: Iterable[torch.Tensor]) -> None:
    """Set the running statistics of the trained norms to mean and variance over batches of clips, all of one size.

    Everything else runs as in evaluation: no dropout. What the statistics were before has no influence, so doing it
    again changes nothing. The module is left in evaluation mode.
    """
    norms = trained_norms(module)
    module.eval()
    if not norms:
        return
    found: list[list[torch.Tensor]] = [[] for _ in norms]
    kept = [(norm.momentum, norm.num_batches_tracked) for norm in norms]
    try:
        for norm in norms:
            norm.train()
            norm.momentum, norm.num_batches_tracked = 1.0, None  # a batch's own statistics, and nobody counts
        for clips in batches:
            module(clips)
            for norm, moments in zip(norms, found, strict=True):
                moments.append(torch.stack([norm.running_mean, norm.running_var]).float())  # type: ignore[list-item]
    finally:
        for norm, (momentum, tracked) in zip(norms, kept, strict=True):
            norm.momentum, norm.num_batches_tracked = momentum, tracked
        module.eval()
    for norm, moments in zip(norms, found, strict=True):
        means, variances = torch.stack(moments).unbind(1)
        norm.running_mean.copy_(means.mean(0))  # type: ignore[union-attr]
        # Of all cells: inside the batches, and of the batches around the common mean.
        norm.running_var.copy_(variances.mean(0) + means.var(0, correction=0))  # type: ignore[union-attr]
