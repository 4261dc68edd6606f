"""What I3D does between its convolutions, as Triton kernels: pooling, bias with relu, cells as channels.

Maps are (B, d, T, H, W) with channels last. Each kernel reads a value from memory about once and writes what comes out
where it is wanted, so that nothing is padded, added or concatenated in passes of its own. Not differentiable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

if TYPE_CHECKING:
    from whytube.classifiers.inference import Pads, Triple

_CELLS, _CHANNELS = 32, 64


# Sizes are numbers like any other: without this every map would have a kernel of its own compiled.
@triton.jit(  # type: ignore[untyped-decorator]
    do_not_specialize=["cells", "t_out", "h_out", "w_out", "t_in", "h_in", "w_in", "t_pad", "h_pad", "w_pad"]
)
def _pool(  # type: ignore[no-untyped-def]
    x, out, cells, channels, t_out, h_out, w_out, t_in, h_in, w_in, t_pad, h_pad, w_pad, x_b, x_t, x_h, x_w,
    K_T: tl.constexpr, K_H: tl.constexpr, K_W: tl.constexpr,  # noqa: N803
    S_T: tl.constexpr, S_H: tl.constexpr, S_W: tl.constexpr,  # noqa: N803
    CELLS: tl.constexpr, CHANNELS: tl.constexpr, ACC: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """One program: CELLS cells of the output, CHANNELS channels of each. x_b to x_w are strides of x."""
    cell = tl.program_id(0).to(tl.int64) * CELLS + tl.arange(0, CELLS)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    there = (cell < cells)[:, None] & (channel < channels)[None, :]
    w, rest = cell % w_out * S_W - w_pad, cell // w_out
    h, rest = rest % h_out * S_H - h_pad, rest // h_out
    t, batch = rest % t_out * S_T - t_pad, rest // t_out
    corner = batch * x_b + t * x_t + h * x_h + w * x_w
    best = tl.full((CELLS, CHANNELS), float("-inf"), ACC)
    for late in tl.static_range(K_T):
        for down in tl.static_range(K_H):
            for right in tl.static_range(K_W):
                inside = (t >= -late) & (t < t_in - late) & (h >= -down) & (h < h_in - down)
                inside = inside & (w >= -right) & (w < w_in - right)
                place = (corner + late * x_t + down * x_h + right * x_w)[:, None] + channel[None, :]
                value = tl.load(x + place, mask=there & inside[:, None], other=0.0).to(ACC)  # a pad is a zero
                best = tl.maximum(best, value, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out + cell[:, None] * channels + channel[None, :], best.to(out.dtype.element_ty), mask=there)


def max_pool(x: torch.Tensor, kernel: Triple, stride: Triple, pads: Pads) -> torch.Tensor:
    """Pool x, whose channels lie side by side (stride 1), with zeros around it; the result has channels last."""
    batch, channels, *own = x.shape
    size = [
        (n + before + after - k) // s + 1 for n, k, s, (before, after) in zip(own, kernel, stride, pads, strict=True)
    ]
    out = torch.empty((batch, channels, *size), dtype=x.dtype, device=x.device, memory_format=torch.channels_last_3d)
    cells = out.numel() // channels
    if cells == 0:
        return out
    grid = (triton.cdiv(cells, _CELLS), triton.cdiv(channels, _CHANNELS))
    with torch.cuda.device_of(x):  # type: ignore[no-untyped-call]
        _pool[grid](
            x, out, cells, channels, *size, *own, *(before for before, _ in pads), x.stride(0), *x.stride()[2:],
            *kernel, *stride, CELLS=_CELLS, CHANNELS=_CHANNELS, ACC=_precision(x),
        )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["cells"])  # type: ignore[untyped-decorator]
def _bias_relu(x, bias, out, cells, channels, row, CELLS: tl.constexpr, CHANNELS: tl.constexpr, ACC: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    cell = tl.program_id(0).to(tl.int64) * CELLS + tl.arange(0, CELLS)
    channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    there = (cell < cells)[:, None] & (channel < channels)[None, :]
    added = tl.load(bias + channel, mask=channel < channels, other=0.0).to(ACC)
    value = tl.load(x + cell[:, None] * channels + channel[None, :], mask=there, other=0.0).to(ACC) + added[None, :]
    value = tl.maximum(value, tl.zeros_like(value), propagate_nan=tl.PropagateNan.ALL)
    tl.store(out + cell[:, None] * row + channel[None, :], value.to(out.dtype.element_ty), mask=there)


def bias_relu(x: torch.Tensor, bias: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """Write relu(x + bias) into `out`, a map of its own or some channels of a wider one; returns it.

    x: (B, d, T, H, W), channels last without gaps. out: the same shape, its cells in a row at equal distances.
    """
    channels = x.shape[1]
    # The distance of two cells; of a side of one cell the stride may be anything.
    row = next((out.stride(dim) for dim in (4, 3, 2, 0) if out.shape[dim] > 1), channels)
    cells = x.numel() // channels
    if cells == 0:
        return out
    tile = min(_CHANNELS, triton.next_power_of_2(channels))
    rows = 4096 // tile
    grid = (triton.cdiv(cells, rows), triton.cdiv(channels, tile))
    with torch.cuda.device_of(x):  # type: ignore[no-untyped-call]
        _bias_relu[grid](x, bias, out, cells, channels, row, CELLS=rows, CHANNELS=tile, ACC=_precision(x))
    return out


@triton.jit(  # type: ignore[untyped-decorator]
    do_not_specialize=["cells", "t_out", "h_out", "w_out", "t_in", "h_in", "w_in", "t_pad", "h_pad", "w_pad"]
)
def _to_cells(  # type: ignore[no-untyped-def]
    x, out, cells, channels, t_out, h_out, w_out, t_in, h_in, w_in, t_pad, h_pad, w_pad, x_b, x_c, x_t, x_h, x_w,
    C_T: tl.constexpr, C_H: tl.constexpr, C_W: tl.constexpr,  # noqa: N803
    S_T: tl.constexpr, S_H: tl.constexpr, S_W: tl.constexpr, CELLS: tl.constexpr, CHANNELS: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """One program: CELLS cells of the output with all their channels, of which CHANNELS is no less."""
    cell = tl.program_id(0).to(tl.int64) * CELLS + tl.arange(0, CELLS)
    channel = tl.arange(0, CHANNELS)
    w, rest = cell % w_out, cell // w_out
    h, rest = rest % h_out, rest // h_out
    t, batch = rest % t_out, rest // t_out
    own, inner = channel // (C_T * C_H * C_W), channel % (C_T * C_H * C_W)
    t = (t * S_T - t_pad)[:, None] + (inner // (C_H * C_W))[None, :]
    h = (h * S_H - h_pad)[:, None] + (inner // C_W % C_H)[None, :]
    w = (w * S_W - w_pad)[:, None] + (inner % C_W)[None, :]
    there = (cell < cells)[:, None] & (channel < channels)[None, :]
    inside = there & (t >= 0) & (t < t_in) & (h >= 0) & (h < h_in) & (w >= 0) & (w < w_in)
    place = (batch * x_b)[:, None] + (own * x_c)[None, :] + t * x_t + h * x_h + w * x_w
    value = tl.load(x + place, mask=inside, other=0.0)
    tl.store(out + cell[:, None] * channels + channel[None, :], value, mask=there)


def to_cells(x: torch.Tensor, cell: Triple, step: Triple, size: Triple, pads: Pads) -> torch.Tensor:
    """Turn cells of pixels into channels, zeros around x (B, d, T, H, W): (B, d * t * h * w, *size), channels last.

    cell: its (t, h, w). step: how far apart cells begin. size: how many in each direction; may leave pixels out.
    """
    batch, colours, *own = x.shape
    channels = colours * cell[0] * cell[1] * cell[2]
    out = torch.empty((batch, channels, *size), dtype=x.dtype, device=x.device, memory_format=torch.channels_last_3d)
    cells = out.numel() // channels
    if cells == 0:
        return out
    tile = triton.next_power_of_2(channels)
    rows = max(1, 2048 // tile)
    with torch.cuda.device_of(x):  # type: ignore[no-untyped-call]
        _to_cells[(triton.cdiv(cells, rows),)](
            x, out, cells, channels, *size, *own, *(before for before, _ in pads), *x.stride(), *cell, *step,
            CELLS=rows, CHANNELS=tile,
        )  # fmt: skip
    return out


def _precision(x: torch.Tensor) -> tl.dtype:
    """Type that values are compared and added in."""
    return tl.float64 if x.dtype == torch.float64 else tl.float32
