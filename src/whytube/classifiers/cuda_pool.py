"""Max pooling of (B, d, T, H, W), channels last, as one Triton kernel: each value is read from memory about once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

if TYPE_CHECKING:
    from whytube.classifiers.inference import Triple

_CELLS, _CHANNELS = 32, 64


# Sizes are numbers like any other: without this every map would have a kernel of its own compiled.
@triton.jit(do_not_specialize=["cells", "t_out", "h_out", "w_out"])  # type: ignore[untyped-decorator]
def _pool(  # type: ignore[no-untyped-def]
    x, out, cells, channels, t_out, h_out, w_out, x_b, x_t, x_h, x_w,
    K_T: tl.constexpr, K_H: tl.constexpr, K_W: tl.constexpr,  # noqa: N803
    S_T: tl.constexpr, S_H: tl.constexpr, S_W: tl.constexpr,  # noqa: N803
    CELLS: tl.constexpr, CHANNELS: tl.constexpr, ACC: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """One program: CELLS cells of the output, CHANNELS channels of each. x_b to x_w are strides of x."""
    cell = tl.program_id(0).to(tl.int64) * CELLS + tl.arange(0, CELLS)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    there = (cell < cells)[:, None] & (channel < channels)[None, :]
    w, rest = cell % w_out, cell // w_out
    h, rest = rest % h_out, rest // h_out
    t, batch = rest % t_out, rest // t_out
    corner = batch * x_b + t * (S_T * x_t) + h * (S_H * x_h) + w * (S_W * x_w)
    best = tl.full((CELLS, CHANNELS), float("-inf"), ACC)
    for late in tl.static_range(K_T):
        for down in tl.static_range(K_H):
            for right in tl.static_range(K_W):
                place = (corner + late * x_t + down * x_h + right * x_w)[:, None] + channel[None, :]
                value = tl.load(x + place, mask=there, other=float("-inf")).to(ACC)
                best = tl.maximum(best, value, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out + cell[:, None] * channels + channel[None, :], best.to(out.dtype.element_ty), mask=there)


def max_pool(x: torch.Tensor, kernel: Triple, stride: Triple) -> torch.Tensor:
    """Pool x, whose channels lie side by side (stride 1); the result has channels last. Not differentiable."""
    batch, channels, *size = x.shape
    size = [(n - k) // s + 1 for n, k, s in zip(size, kernel, stride, strict=True)]
    out = torch.empty((batch, channels, *size), dtype=x.dtype, device=x.device, memory_format=torch.channels_last_3d)
    cells = out.numel() // channels
    if cells == 0:
        return out
    grid = (triton.cdiv(cells, _CELLS), triton.cdiv(channels, _CHANNELS))
    with torch.cuda.device_of(x):  # type: ignore[no-untyped-call]
        _pool[grid](
            x, out, cells, channels, *size, x.stride(0), *x.stride()[2:], *kernel, *stride,
            CELLS=_CELLS, CHANNELS=_CHANNELS, ACC=tl.float64 if x.dtype == torch.float64 else tl.float32,
        )  # fmt: skip
    return out
