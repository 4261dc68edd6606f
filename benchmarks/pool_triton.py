"""Max pooling of (B, d, T, H, W) with channels last as one Triton kernel: each value is read from memory about once."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

CELLS, CHANNELS = 32, 64


@triton.jit
def _pool(x, out, cells, channels, frames, height, width, t_out, h_out, w_out,
          k_t: tl.constexpr, k_h: tl.constexpr, k_w: tl.constexpr,
          s_t: tl.constexpr, s_h: tl.constexpr, s_w: tl.constexpr,
          n_cells: tl.constexpr, n_channels: tl.constexpr):  # fmt: skip
    """One program: n_cells cells of the output, n_channels channels of each."""
    cell = tl.program_id(0).to(tl.int64) * n_cells + tl.arange(0, n_cells)
    channel = tl.program_id(1) * n_channels + tl.arange(0, n_channels)
    there = (cell < cells)[:, None] & (channel < channels)[None, :]
    w, rest = cell % w_out, cell // w_out
    h, rest = rest % h_out, rest // h_out
    t, batch = rest % t_out, rest // t_out
    corner = ((batch * frames + t * s_t) * height + h * s_h) * width + w * s_w
    best = tl.full((n_cells, n_channels), float("-inf"), tl.float32)
    for late in tl.static_range(k_t):
        for down in tl.static_range(k_h):
            for right in tl.static_range(k_w):
                place = (corner + (late * height + down) * width + right)[:, None] * channels + channel[None, :]
                best = tl.maximum(best, tl.load(x + place, mask=there, other=float("-inf")).to(tl.float32))
    tl.store(out + cell[:, None] * channels + channel[None, :], best.to(out.dtype.element_ty), mask=there)


def max_pool(x: torch.Tensor, kernel: tuple[int, int, int], stride: tuple[int, int, int]) -> torch.Tensor:
    """Max pooling of padded (B, d, T, H, W); the result has channels last."""
    x = x.contiguous(memory_format=torch.channels_last_3d)
    size = [(n - k) // s + 1 for n, k, s in zip(x.shape[2:], kernel, stride, strict=True)]
    out = x.new_empty((len(x), x.shape[1], *size)).contiguous(memory_format=torch.channels_last_3d)
    cells, channels = out.numel() // x.shape[1], x.shape[1]
    grid = (triton.cdiv(cells, CELLS), triton.cdiv(channels, CHANNELS))
    _pool[grid](x, out, cells, channels, *x.shape[2:], *size, *kernel, *stride, n_cells=CELLS, n_channels=CHANNELS)
    return out
