"""Layers that look beyond a clip, run on the clips of all processes: batch normalisation and dropout.

A process sees its share of a batch alone. With `whole_batch` batch normalisation takes mean and variance of the whole
batch, and dropout draws for the whole batch and keeps what is drawn for the share: the network is trained as in one
process. It works alike on CPU (gloo) and GPU (NCCL); torch's SyncBatchNorm exists on GPUs alone.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.overrides import TorchFunctionMode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from whytube.training.devices import Ranks, Share


def whole_batch(ranks: Ranks, share: Share) -> AbstractContextManager[object]:
    """Run layers on the batches of all processes for the length of a block; nothing to do in one process."""
    return contextlib.nullcontext() if not ranks.talks else _WholeBatch(ranks, share)


class _WholeBatch(TorchFunctionMode):
    def __init__(self, ranks: Ranks, share: Share) -> None:
        super().__init__()
        self.ranks, self.share = ranks, share

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = dict(kwargs or {})
        if func is functional.batch_norm:
            return self._normalised(func, *args, **given)
        if func is functional.dropout:
            return self._dropped(func, *args, **given)
        return func(*args, **given)

    def _normalised(
        self,
        func: Callable[..., torch.Tensor],
        x: torch.Tensor,
        running_mean: torch.Tensor | None,
        running_var: torch.Tensor | None,
        weight: torch.Tensor | None = None,
        bias: torch.Tensor | None = None,
        training: bool = False,
        momentum: float = 0.1,
        eps: float = 1e-5,
    ) -> torch.Tensor:
        """Batch normalisation; running statistics are moved as one process would."""
        if not training:
            return func(x, running_mean, running_var, weight, bias, training, momentum, eps)
        gain = torch.ones(x.shape[1], device=x.device) if weight is None else weight
        added = torch.zeros_like(gain) if bias is None else bias
        with torch.no_grad():
            count, mean, var = _moments(x, self.ranks)
            if running_mean is not None and running_var is not None:
                running_mean.lerp_(mean.to(running_mean), momentum)
                running_var.lerp_((var * (count / (count - 1).clamp_min(1))).to(running_var), momentum)
        found: torch.Tensor = _Normalise.apply(x, gain, added, count, mean, var, eps, self.ranks)  # type: ignore[no-untyped-call]
        return found

    def _dropped(
        self,
        func: Callable[..., torch.Tensor],
        x: torch.Tensor,
        p: float = 0.5,
        training: bool = True,
        inplace: bool = False,
    ) -> torch.Tensor:
        """Dropout of the rows that belong to the share: its clips may be several rows each, one after the other."""
        each, rest = divmod(len(x), self.share.count)
        if not training or rest:
            return func(x, p, training, inplace)
        everything = x.detach().new_ones(()).expand(self.share.total * each, *x.shape[1:])
        rows = self.share.rows
        kept = func(_laid_out_as(x, everything), p, True)[rows.start * each : rows.stop * each]
        return x * kept


def _laid_out_as(x: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Copy values of another length into the memory layout of x, in which random numbers are drawn."""
    order = sorted(range(x.ndim), key=x.stride, reverse=True)
    return values.permute(order).contiguous().permute([order.index(d) for d in range(x.ndim)])


def _moments(x: torch.Tensor, ranks: Ranks) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the number of cells, and mean and variance (C,) over the cells of all processes; x (B, C, ...)."""
    var, mean = torch.var_mean(x.to(_precise(x)), _but_channels(x), correction=0)
    own = torch.full_like(mean[:1], x.numel() / x.shape[1])
    sums = ranks.sum(torch.cat([own, own * mean]))
    count, centre = sums[:1], sums[1:] / sums[:1]
    spread = ranks.sum(own * (var + (mean - centre).square()))  # around the common mean, as squares alone lose digits
    return count, centre, spread / count


def _precise(x: torch.Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


def _but_channels(x: torch.Tensor) -> list[int]:
    return [d for d in range(x.ndim) if d != 1]


class _Normalise(torch.autograd.Function):
    """(x - mean) / sqrt(var + eps) * weight + bias, where mean and variance depend on x of all processes."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        count: torch.Tensor,
        mean: torch.Tensor,
        var: torch.Tensor,
        eps: float,
        ranks: Ranks,
    ) -> torch.Tensor:
        ctx.save_for_backward(x, weight, count, mean, var)
        ctx.eps, ctx.ranks = eps, ranks
        return functional.batch_norm(x, mean, var, weight, bias, False, 0.0, eps)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, weight, count, mean, var = ctx.saved_tensors
        scale = (var + ctx.eps).rsqrt()
        # Without training: the gradients of weight and bias, which are the sums that x needs of all processes.
        _, for_weight, for_bias = torch.ops.aten.native_batch_norm_backward(
            grad, x, weight, mean, var, mean, scale, False, ctx.eps, [False, True, True]
        )
        sums = ctx.ranks.sum(torch.stack([for_bias, for_weight]).to(mean)) / count
        shape = [1, -1] + [1] * (x.ndim - 2)
        slope, shift = (scale * sums[1]).view(shape), (sums[0] - mean * scale * sums[1]).view(shape)
        for_x = (grad - slope * x - shift) * (scale * weight).view(shape)
        return for_x.to(x.dtype), for_weight, for_bias, None, None, None, None, None
