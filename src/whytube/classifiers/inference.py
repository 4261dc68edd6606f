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


def convolve(x: Tensor, conv: nn.Conv3d, pads: Pads) -> Tensor:
    """Pad and convolve, with the filters and the stride of `conv` but not its padding."""
    stride: Triple = conv.stride  # type: ignore[assignment]
    if not torch.is_grad_enabled() and x.device.type == "cuda" and x.shape[1] < 8 and max(stride) > 1:
        return convolve_cells(pad(x, pads), conv.weight, conv.bias, stride)
    padding = [before for before, _ in pads]
    if any(before != after for before, after in pads):
        x, padding = pad(x, pads), [0, 0, 0]
    if not torch.is_grad_enabled() and x.dtype == torch.float32 and _has_onednn(x.device.type):
        # For small maps of a single clip torch takes another, slower one.
        return torch.mkldnn_convolution(x, conv.weight, conv.bias, padding, stride, conv.dilation, conv.groups)
    return functional.conv3d(x, conv.weight, conv.bias, stride, padding, conv.dilation, conv.groups)


def _has_onednn(device: str) -> bool:
    return device == "cpu" and bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]


def convolve_cells(x: Tensor, weight: Tensor, bias: Tensor | None, stride: Triple) -> Tensor:
    """Convolve padded (B, d, T, H, W) with a stride, written without one.

    Cells of stride[0] x stride[1] x stride[2] pixels become channels, of pixels and filters alike. A GPU's tensor cores
    are idle with 3 channels; with 24 they are not.
    """
    reach = weight.shape[2:]
    out = [(n - k) // s + 1 for n, k, s in zip(x.shape[2:], reach, stride, strict=True)]
    steps = [-(-k // s) for k, s in zip(reach, stride, strict=True)]
    ends = [(o + n - 1) * s for o, n, s in zip(out, steps, stride, strict=True)]
    weight = pad(weight, [(0, n * s - k) for n, s, k in zip(steps, stride, reach, strict=True)])
    x = pad(x, [(0, end - n) for end, n in zip(ends, x.shape[2:], strict=True)])  # may cut what no filter reaches
    filters = _cells(weight, stride).contiguous(memory_format=torch.channels_last_3d)
    return functional.conv3d(_cells(x, stride).contiguous(memory_format=torch.channels_last_3d), filters, bias)


def _cells(x: Tensor, stride: Triple) -> Tensor:
    """Turn cells into channels: (B, d, T, H, W) -> (B, d * t * h * w, T / t, H / h, W / w)."""
    t, h, w = stride
    batch, channels, *size = x.shape
    parts = x.reshape(batch, channels, size[0] // t, t, size[1] // h, h, size[2] // w, w)
    return parts.permute(0, 1, 3, 5, 7, 2, 4, 6).reshape(
        batch, channels * t * h * w, size[0] // t, size[1] // h, size[2] // w
    )


def max_pool(x: Tensor, kernel: Triple, stride: Triple) -> Tensor:
    """Max pooling of padded (B, d, T, H, W).

    Without gradients on a GPU it is a kernel of ours where channels are last, else frames first, then time.
    """
    if torch.is_grad_enabled():
        return functional.max_pool3d(x, kernel, stride)
    if x.is_cuda and x.stride(1) == 1 and _has_triton():
        from whytube.classifiers import cuda_pool  # brings a compiler along

        return cuda_pool.max_pool(x, kernel, stride)
    if x.is_cuda:
        return pool_along(pool_frames(x, kernel[1:], stride[1:]), kernel[:1], stride[:1])
    return pool_along(x, kernel, stride)


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
