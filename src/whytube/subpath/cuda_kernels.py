"""What runs on the GPU, in Triton: `search_kernel` finds the paths.

One program searches one item at a time and reads its scores once. Free forms collapse on the way: only the maximum
over forms of a step enters the recurrence, so a program keeps one plane of states. The neighbourhood maximum needs the
states of other threads; they pass through two planes of scratch with a border of -inf, small enough for the cache. One
byte per cell remembers the step back. The form of a path's cells is looked up again at the end, for the T cells of the
path only.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def _score(plus, minus, cell, mask, DIFFERENCE: tl.constexpr, NEGATE: tl.constexpr, ACC: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    """Scores of `cell`, counted from where `plus` and `minus` point."""
    x = tl.load(plus + cell, mask=mask, other=0.0).to(ACC)
    if DIFFERENCE:
        x = x - tl.load(minus + cell, mask=mask, other=0.0).to(ACC)
    if NEGATE:
        x = -x
    return x


@triton.jit  # type: ignore[untyped-decorator]
def _collapse(  # type: ignore[no-untyped-def]
    plus, minus, stride_form, cell, mask,
    FORMS: tl.constexpr, DIFFERENCE: tl.constexpr, NEGATE: tl.constexpr, ACC: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Maximum over the forms; NaN if any is."""
    x = _score(plus, minus, cell, mask, DIFFERENCE, NEGATE, ACC)
    for _ in tl.static_range(1, FORMS):
        plus += stride_form
        minus += stride_form
        y = _score(plus, minus, cell, mask, DIFFERENCE, NEGATE, ACC)
        x = tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)
    return x


@triton.jit  # type: ignore[untyped-decorator]
def _locate(  # type: ignore[no-untyped-def]
    item, positive, negative, rows, classes, inner, negatives,
    DIFFERENCE: tl.constexpr, LISTED: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Batch index of an item, the rows of its positive and negative volume, and whether these exist; int64."""
    if DIFFERENCE:
        b = item // (inner * negatives)
        within = item // negatives % inner
        n = item % negatives
        c = tl.load(positive + b)
        d = tl.load(negative + b * negatives + n) if LISTED else tl.where(n >= c, n + 1, n)
        legal = (c >= 0) & (c < classes) & (d >= 0) & (d < classes)
        plus = (b * classes + c) * inner + within
        minus = (b * classes + d) * inner + within
    else:
        b = item
        plus = item
        minus = item
        legal = item < rows
    return b, plus, minus, legal


@triton.jit  # type: ignore[untyped-decorator]
def search_kernel(  # type: ignore[no-untyped-def]
    volumes, positive, negative, lengths,  # (R, K, T, H, W), (B,), (B, negatives), (B,)
    value, start, stop, cells,  # (items,), (items,), (items,), (items, T, 3)
    index, weight,  # (1 or 2, items, T): where in the volumes a path adds and subtracts; 1 and -1, off the path 0
    scratch,  # bytes: two planes of states (H + 2r, W + 2r) for each program, then (T, H * W) moves for each
    items, rows, classes, inner, negatives, steps, stride_row, stride_form, stride_step,
    K: tl.constexpr, H: tl.constexpr, W: tl.constexpr, RADIUS: tl.constexpr,  # noqa: N803
    BLOCK: tl.constexpr, STEPS: tl.constexpr,  # noqa: N803 - powers of two, at least H * W and T
    FIXED: tl.constexpr, DIFFERENCE: tl.constexpr, LISTED: tl.constexpr, NEGATE: tl.constexpr,  # noqa: N803
    PADDED: tl.constexpr, TAPED: tl.constexpr, ACC: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Find the best path of every item that falls to this program, and, for the gradient, where its cells lie."""
    SIZE: tl.constexpr = H * W  # noqa: N806
    WINDOW: tl.constexpr = 2 * RADIUS + 1  # noqa: N806
    PITCH: tl.constexpr = W + 2 * RADIUS  # noqa: N806
    PLANE: tl.constexpr = (H + 2 * RADIUS) * PITCH  # noqa: N806
    FORMS: tl.constexpr = 1 if FIXED else K  # noqa: N806
    program = tl.program_id(0)
    wide = program.to(tl.int64)
    WIDTH: tl.constexpr = ACC.primitive_bitwidth // 8  # noqa: N806
    planes = scratch.to(tl.pointer_type(ACC)) + wide * 2 * PLANE
    moves = scratch + tl.num_programs(0) * (2 * PLANE * WIDTH) + wide * steps * SIZE
    wide *= 0  # loop variables are 32 bits wide; offsets into the volumes need more
    cell = tl.arange(0, BLOCK)
    inside = cell < SIZE
    place = (cell // W + RADIUS) * PITCH + cell % W + RADIUS
    time = tl.arange(0, STEPS)
    for begin in range(0, 2 * PLANE, BLOCK):
        tl.store(planes + begin + cell, float("-inf"), mask=begin + cell < 2 * PLANE)
    tl.debug_barrier()

    for item in range(program, items, tl.num_programs(0)):
        form = item % K if FIXED else 0
        number = wide + (item // K if FIXED else item)
        b, plus, minus, legal = _locate(number, positive, negative, rows, classes, inner, negatives, DIFFERENCE, LISTED)
        length = tl.load(lengths + b).to(tl.int32) if PADDED else steps
        legal = legal & (length >= 0) & (length <= steps)
        length = tl.where(legal, length, 0)
        first = volumes + plus * stride_row + (wide + form) * stride_form
        second = volumes + minus * stride_row + (wide + form) * stride_form

        past = tl.zeros([BLOCK], ACC)
        best = tl.full([BLOCK], float("-inf"), ACC)
        peak = tl.full([BLOCK], float("-inf"), ACC)
        when = tl.zeros([BLOCK], tl.int32)
        for t in range(length):
            step = (wide + t) * stride_step
            x = _collapse(first + step, second + step, stride_form, cell, inside, FORMS, DIFFERENCE, NEGATE, ACC)
            peak = tl.maximum(peak, x, propagate_nan=tl.PropagateNan.ALL)
            state = x + past
            better = inside & (state > best)
            best = tl.where(better, state, best)
            when = tl.where(better, t, when)
            # The two planes alternate, so that one barrier per step is enough.
            plane = planes + (t % 2) * PLANE + place
            tl.store(plane, state, mask=inside)
            tl.debug_barrier()
            past = tl.zeros([BLOCK], ACC)
            move = tl.zeros([BLOCK], tl.int32)
            for d in tl.static_range(WINDOW * WINDOW):
                near = tl.load(plane + ((d // WINDOW - RADIUS) * PITCH + d % WINDOW - RADIUS), mask=inside, other=0.0)
                take = near > past
                past = tl.where(take, near, past)
                move = tl.where(take, d + 1, move)
            tl.store(moves + t * SIZE + cell, move.to(tl.int8), mask=inside)

        top = tl.max(best, 0)
        end = tl.min(tl.where(best == top, when * SIZE + cell, STEPS * SIZE), 0)
        bad = (tl.max((peak != peak).to(tl.int32), 0) > 0) | (legal == 0)
        found = (top > float("-inf")) & (bad == 0)
        tl.debug_barrier()

        t = tl.where(found, end // SIZE, -1)
        last = t
        here = end % SIZE
        path = tl.full([STEPS], -1, tl.int32)
        while t >= 0:
            path = tl.where(time == t, here, path)
            back = tl.load(moves + (t - 1) * SIZE + here, mask=t > 0, other=0).to(tl.int32) - 1
            here += (back // WINDOW - RADIUS) * W + back % WINDOW - RADIUS
            t = tl.where(back >= 0, t - 1, -1)

        along = path >= 0
        chosen = tl.full([STEPS], 0, tl.int32) + form
        if not FIXED:
            reach = tl.full([STEPS], float("-inf"), ACC)
            offset = (wide + time) * stride_step + path
            for k in tl.static_range(FORMS):
                y = _score(first, second, offset, along, DIFFERENCE, NEGATE, ACC)
                offset += stride_form
                take = y > reach
                reach = tl.where(take, y, reach)
                chosen = tl.where(take, k, chosen)
        out = cells + ((wide + item) * steps + time) * 3
        exists = time < steps
        tl.store(out, tl.where(along, chosen, -1).to(tl.int64), mask=exists)
        tl.store(out + 1, tl.where(along, path // W, -1).to(tl.int64), mask=exists)
        tl.store(out + 2, tl.where(along, path % W, -1).to(tl.int64), mask=exists)
        if TAPED:
            size = (wide + steps) * (K * SIZE)
            flat = ((wide + chosen) * steps + time) * SIZE + tl.where(along, path, 0)
            place = (wide + item) * steps + time
            tl.store(index + place, plus * size + flat, mask=exists)
            tl.store(weight + place, along.to(ACC), mask=exists)
            if DIFFERENCE:
                place += (wide + items) * steps
                tl.store(index + place, minus * size + flat, mask=exists)
                tl.store(weight + place, -along.to(ACC), mask=exists)
        top = tl.where(bad, float("nan"), top)
        tl.store(value + item, -top if NEGATE else top)
        tl.store(start + item, tl.where(found, tl.min(tl.where(along, time, STEPS), 0), 0).to(tl.int64))
        tl.store(stop + item, tl.where(found, last + 1, 0).to(tl.int64))
        tl.debug_barrier()  # the next item's moves must not overtake this one's walk back
