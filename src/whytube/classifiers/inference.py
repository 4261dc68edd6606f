"""Convolution and max pooling of (B, d, T, H, W), padded as told, as fast as a device can without gradients.

Each has torch's own function where gradients are wanted, and gives the same values, to rounding, where they are not.
"""

from __future__ import annotations

import functools
import importlib.util
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor, nn

Triple = tuple[int, int, int]
Pads = list[tuple[int, int]]
"""How many cells of zeros to add before and after each of T, H, W."""


def pad(x: Tensor, pads: Pads) -> Tensor:
    """Add zeros around (B, d, T, H, W)."""
    return functional.pad(x, [side for pair in reversed(pads) for side in pair]) if any(map(any, pads)) else x


def convolve(x: Tensor, conv: nn.Conv3d, pads: Pads, *, bias: bool = True) -> Tensor:
    """Pad and convolve, with the filters, the bias (unless False) and the stride of `conv` but not its padding."""
    stride: Triple = conv.stride  # type: ignore[assignment]
    added = conv.bias if bias else None
    if not torch.is_grad_enabled() and x.device.type == "cuda" and x.shape[1] < 8 and max(stride) > 1:
        return convolve_cells(x, conv.weight, added, stride, pads)
    padding = [before for before, _ in pads]
    if any(before != after for before, after in pads):
        x, padding = pad(x, pads), [0, 0, 0]
    if not torch.is_grad_enabled() and x.dtype == torch.float32 and _has_onednn(x.device.type):
        # For small maps of a single clip torch takes another, slower one.
        return torch.mkldnn_convolution(x, conv.weight, added, padding, stride, conv.dilation, conv.groups)
    return functional.conv3d(x, conv.weight, added, stride, padding, conv.dilation, conv.groups)


def _has_onednn(device: str) -> bool:
    return device == "cpu" and bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]


def convolve_relu(x: Tensor, conv: nn.Conv3d, pads: Pads, out: Tensor | None = None) -> Tensor:
    """Pad, convolve and cut off below zero; without gradients.

    out: where the result is wanted, some channels of a wider map; by default in a map of its own.
    """
    if conv.bias is not None and _has_kernels(x):
        sums = convolve(x, conv, pads, bias=False)
        if sums.is_contiguous(memory_format=torch.channels_last_3d):
            from whytube.classifiers import cuda_layers  # brings a compiler along

            return cuda_layers.bias_relu(sums, conv.bias, sums if out is None else out)
        sums += conv.bias[:, None, None, None]
    else:
        sums = convolve(x, conv, pads)
    return sums.relu_() if out is None else out.copy_(sums.relu_())


def space(x: Tensor, widths: Sequence[int]) -> tuple[Tensor | None, Sequence[Tensor | None]]:
    """Make a map as large as x (B, d, T, H, W) for results that are wanted side by side, and each one's channels of it.

    None where nothing is saved by writing results there: then they are to be concatenated.
    """
    if not _has_kernels(x):
        return None, [None] * len(widths)
    shape = (len(x), sum(widths), *x.shape[2:])
    whole = torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=torch.channels_last_3d)
    return whole, torch.split(whole, list(widths), 1)


def convolve_cells(x: Tensor, weight: Tensor, bias: Tensor | None, stride: Triple, pads: Pads) -> Tensor:
    """Pad (B, d, T, H, W) and convolve with a stride, written without one.

    Cells of stride[1] x stride[2] pixels, as many frames as the filters reach, become channels, of pixels and filters
    alike. A GPU's tensor cores are idle with 3 channels; with I3D's 96 they are not.
    """
    reach = weight.shape[2:]
    padded = [n + before + after for n, (before, after) in zip(x.shape[2:], pads, strict=True)]
    out = [(n - k) // s + 1 for n, k, s in zip(padded, reach, stride, strict=True)]
    steps = [-(-k // s) for k, s in zip(reach, stride, strict=True)]
    weight = pad(weight, [(0, n * s - k) for n, s, k in zip(steps, stride, reach, strict=True)])
    cell: Triple = (weight.shape[2], stride[1], stride[2])
    filters = _cells(weight, cell, cell).contiguous(memory_format=torch.channels_last_3d)
    size: Triple = (out[0], out[1] + steps[1] - 1, out[2] + steps[2] - 1)
    if _has_kernels(x):
        from whytube.classifiers import cuda_layers

        return functional.conv3d(cuda_layers.to_cells(x, cell, stride, size, pads), filters, bias)
    # May cut at the end what no filter reaches.
    ends = [
        (n - 1) * s + c - before - m
        for n, s, c, (before, _), m in zip(size, stride, cell, pads, x.shape[2:], strict=True)
    ]
    x = pad(x, [(before, end) for (before, _), end in zip(pads, ends, strict=True)])
    return functional.conv3d(_cells(x, cell, stride).contiguous(memory_format=torch.channels_last_3d), filters, bias)


def _cells(x: Tensor, cell: Triple, step: Triple) -> Tensor:
    """Turn cells, a step apart, into channels: (B, d, T, H, W) -> (B, d * t * h * w, T', H', W')."""
    for dim, (side, by) in enumerate(zip(cell, step, strict=True), start=2):
        x = x.unfold(dim, side, by)
    return x.permute(0, 1, 5, 6, 7, 2, 3, 4).flatten(1, 4)


def max_pool(x: Tensor, kernel: Triple, stride: Triple, pads: Pads) -> Tensor:
    """Max pooling of (B, d, T, H, W) with zeros around it.

    Without gradients on a GPU it is a kernel of ours where channels are last, else frames first, then time.
    """
    if x.stride(1) == 1 and _has_kernels(x):
        from whytube.classifiers import cuda_layers

        return cuda_layers.max_pool(x, kernel, stride, pads)
    x = pad(x, pads)
    if torch.is_grad_enabled():
        return functional.max_pool3d(x, kernel, stride)
    if x.is_cuda:
        return pool_along(pool_frames(x, kernel[1:], stride[1:]), kernel[:1], stride[:1])
    return pool_along(x, kernel, stride)


def _has_kernels(x: Tensor) -> bool:
    """Whether kernels of ours run on x: on a GPU with Triton, without gradients."""
    return x.is_cuda and not torch.is_grad_enabled() and _has_triton()


@functools.cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


def pool_frames(x: Tensor, kernel: tuple[int, int], stride: tuple[int, int]) -> Tensor:
    """Max pooling of each frame alone; without a copy where channels are last."""
    if max(kernel) == max(stride) == 1:
        return x
    pooled = functional.max_pool2d(x.transpose(1, 2).flatten(0, 1), kernel, stride)
    return pooled.view(len(x), x.shape[2], *pooled.shape[1:]).transpose(1, 2)


def pool_along(x: Tensor, kernel: Sequence[int], stride: Sequence[int]) -> Tensor:
    """Max pooling one dimension after the other, T first: as many as there are strides."""
    for dim, (reach, step) in enumerate(zip(kernel, stride, strict=True), start=2):
        last = (x.shape[dim] - reach) // step * step + 1
        shifted = [
            x.narrow(dim, late, last)[(slice(None),) * dim + (slice(None, None, step),)] for late in range(reach)
        ]
        x = functools.reduce(torch.maximum, shifted)
    return x
