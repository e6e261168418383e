"""Triton kernels of residual blocks of dilated convolutions, channels last: (B, T, D).

A program owns a tile of rows m = b * T + t and a tile of channels; a convolution is a product summed over
taps and chunks of channels, whose left tile comes from rows `shift` steps away.
"""

from typing import no_type_check  # Triton reads a function's own source: nothing may be wrapped around it

import triton
import triton.language as tl

_PHILOX_ROUNDS = tl.constexpr(7)


@triton.jit
@no_type_check
def _correlate(
    x,
    past,
    w,
    b,
    t,
    real,
    n,
    steps,
    dilation,
    past_batch,
    D: tl.constexpr,
    DP: tl.constexpr,
    TAPS: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Return sum_j x[b, t + (TAPS-1-j) * dilation] W_j^T: a dilation below zero looks back.

    Steps before the first come from `past`, where there is one; all others outside are zero.
    w  (TAPS, DP, DP): what is summed over stands last; zeros behind D
    """
    CHUNKS: tl.constexpr = (D + BK - 1) // BK
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(0, TAPS * CHUNKS):
        tap = step // CHUNKS
        k = (step % CHUNKS) * BK + tl.arange(0, BK)
        at = t + (TAPS - 1 - tap) * dilation
        inside = real & (at >= 0) & (at < steps)
        mine = inside[:, None] & (k < D)[None, :]
        left = tl.load(x + (b * steps + at)[:, None] * D + k[None, :], mask=mine, other=0.0)
        if past is not None:
            before = (real & (at < 0))[:, None] & (k < D)[None, :]
            # the first row of `past` is reach = -(TAPS - 1) * dilation steps before the first of x
            row = b.to(tl.int64) * past_batch + (at - (TAPS - 1) * dilation) * D
            left += tl.load(past + row[:, None] + k[None, :], mask=before, other=0.0)
        right = tl.load(w + tap * DP * DP + n[None, :] * DP + k[:, None])
        total = tl.dot(left, right, total, input_precision=PRECISION)
    return total


_COUNTS = ["rows", "steps", "dilation", "index", "past_batch"]


@triton.jit(do_not_specialize=_COUNTS)
@no_type_check
def convolve(
    x,
    w,
    bias,
    past,
    lengths,
    seed,
    residual,
    out,
    kept,
    rows,
    steps,
    dilation,
    index,
    past_batch,
    dropout,
    scale,
    D: tl.constexpr,
    DP: tl.constexpr,
    TAPS: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Write dropout(relu(b + conv(x))), or relu(residual + that); zeros behind a row's end.

    kept   with a residual and for backward: where the part beside the residual is above zero
    index  which convolution this is: of the stacked biases, and of the stream of chance
    """
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    b, t = m // steps, m % steps
    real = m < rows
    y = _correlate(
        x, past, w, b, t, real, n, steps, -dilation, past_batch, D, DP, TAPS, BM, BN, BK, PRECISION
    )
    y += tl.load(bias + index * D + n, mask=n < D, other=0.0).to(tl.float32)[None, :]
    y = tl.where(y < 0, 0.0, y)  # a NaN stays one
    here = m[:, None] * D + n[None, :]
    mask = real[:, None] & (n < D)[None, :]
    if seed is not None:
        chance = tl.rand(tl.load(seed) + index, here, _PHILOX_ROUNDS)
        y = tl.where(chance < dropout, 0.0, y * scale)
    if residual is not None:
        if kept is not None:
            tl.store(kept + here, (y > 0).to(tl.int8), mask=mask)
        y += tl.load(residual + here, mask=mask, other=0.0).to(tl.float32)
        y = tl.where(y < 0, 0.0, y)
    if lengths is not None:
        ends = tl.load(lengths + b, mask=real, other=0)
        y = tl.where((t < ends)[:, None], y, 0.0)
    tl.store(out + here, y.to(out.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["size"])
@no_type_check
def begin_backward(dy, y, kept, carried, told, size, scale, BLOCK: tl.constexpr):
    """Take the gradient of the last block's output through its relu, and on through the dropout before.

    carried = dy where y > 0;  told = carried * scale where kept
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < size
    slope = tl.load(y + at, mask=mask, other=0.0) > 0
    gradient = tl.where(slope, tl.load(dy + at, mask=mask, other=0.0).to(tl.float32), 0.0)
    tl.store(carried + at, gradient.to(carried.dtype.element_ty), mask=mask)
    gradient = tl.where(tl.load(kept + at, mask=mask, other=0) != 0, gradient * scale, 0.0)
    tl.store(told + at, gradient.to(told.dtype.element_ty), mask=mask)


_SPANS = ["rows", "steps", "span", "first", "dilation", "state_batch", "told_batch"]


@triton.jit(do_not_specialize=_SPANS)
@no_type_check
def pull_back(
    dz,
    w,
    d_state,
    lengths,
    carried,
    through,
    kept,
    told,
    rows,
    steps,
    span,
    first,
    dilation,
    state_batch,
    told_batch,
    scale,
    D: tl.constexpr,
    DP: tl.constexpr,
    TAPS: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Take the gradient of a convolution's sums to its inputs at the steps first .. first + span - 1.

    d_state  the gradient of the inputs that the new state kept
    carried  the residual's gradient: added, and replaced by the sum where `through` is above zero
    through  what a relu gave here (a block's output, or its middle): the slope is 0 where it is 0
    told     receives the gradient of the sums before, * scale, where `kept` (everywhere without it)
    """
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    b, t = m // span, m % span + first
    real = m < rows
    dx = _correlate(dz, None, w, b, t, real, n, steps, dilation, 0, D, DP, TAPS, BM, BN, BK, PRECISION)
    here = m[:, None] * D + n[None, :]
    mask = real[:, None] & (n < D)[None, :]
    if d_state is not None:
        ends = steps
        if lengths is not None:
            ends = tl.load(lengths + b, mask=real, other=0).to(tl.int32)
        row = t - ends + (TAPS - 1) * dilation
        seen = real & (row >= 0) & (t < ends)
        address = b.to(tl.int64) * state_batch + row * D
        dx += tl.load(
            d_state + address[:, None] + n[None, :], mask=seen[:, None] & (n < D)[None, :], other=0.0
        ).to(tl.float32)
    if carried is not None:
        dx += tl.load(carried + here, mask=mask, other=0.0).to(tl.float32)
    if through is not None:
        dx = tl.where(tl.load(through + here, mask=mask, other=0.0) > 0, dx, 0.0)
    if carried is not None:
        tl.store(carried + here, dx.to(carried.dtype.element_ty), mask=mask)
    if told is not None:
        if kept is not None:
            dx = tl.where(tl.load(kept + here, mask=mask, other=0) != 0, dx, 0.0)
        row = b.to(tl.int64) * told_batch + (t - first) * D
        tl.store(told + row[:, None] + n[None, :], (dx * scale).to(told.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["rows", "steps", "past_batch"])
@no_type_check
def sum_weights(
    x,
    between,
    dz,
    past,
    lengths,
    partial,
    partial_bias,
    rows,
    steps,
    past_batch,
    D: tl.constexpr,
    TAPS: tl.constexpr,
    CHUNKS: tl.constexpr,
    BR: tl.constexpr,
    BO: tl.constexpr,
    BI: tl.constexpr,
    SIDE: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Write sum_m dz[m, o] input[m - shift_j, i] of some rows m for every convolution, and sum_m dz[m, o].

    between       (C-1, B, T, D): the inputs of the second and later convolutions
    partial       (splits, C, D, TAPS, D)
    partial_bias  (splits, C, D)
    A tile holds SIDE taps of BI input channels each beside one another; a program sums CHUNKS times BR rows.
    """
    BN: tl.constexpr = SIDE * BI
    TILES: tl.constexpr = (D + BI - 1) // BI
    GROUPS: tl.constexpr = (TAPS + SIDE - 1) // SIDE
    tile, split, c = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    o = (tile // (TILES * GROUPS)) * BO + tl.arange(0, BO)
    column = tl.arange(0, BN)
    i = (tile % TILES) * BI + column % BI
    tap = ((tile // TILES) % GROUPS) * SIDE + column // BI
    dilation = 1 << (c // 2)
    shift = (TAPS - 1 - tap) * dilation
    wanted = (i < D) & (tap < TAPS)
    soonest = tl.where(wanted, shift, steps)  # the first step at which a column's input is one of x
    size = rows.to(tl.int64) * D
    if c == 0:
        source = x
    else:
        source = between + (c - 1) * size
    dz += c * size
    if past is not None:  # before this one's part are those of the blocks below, and of its own first
        past += ((TAPS - 1) * D * (2 * (dilation - 1) + (c % 2) * dilation)).to(tl.int64)
    total = tl.zeros((BO, BN), tl.float32)
    total_bias = tl.zeros((BO,), tl.float32)
    for chunk in range(0, CHUNKS):
        m = (split * CHUNKS + chunk) * BR + tl.arange(0, BR)
        b, t = m // steps, m % steps
        real = m < rows
        if lengths is not None:
            real = real & (t < tl.load(lengths + b, mask=real, other=0))
        slope = tl.load(dz + m[:, None] * D + o[None, :], mask=real[:, None] & (o < D)[None, :], other=0.0)
        t = tl.where(real, t, -1)
        address = (m * D)[:, None] + (i - shift * D)[None, :]
        inputs = tl.load(source + address, mask=t[:, None] >= soonest[None, :], other=0.0)
        if past is not None:
            before = (real[:, None] & wanted[None, :]) & (t[:, None] < shift[None, :])
            row = b.to(tl.int64) * past_batch + (t + (TAPS - 1) * dilation) * D
            inputs += tl.load(past + row[:, None] + (i - shift * D)[None, :], mask=before, other=0.0)
        total = tl.dot(tl.trans(slope), inputs, total, input_precision=PRECISION)
        total_bias += tl.sum(slope.to(tl.float32), axis=0)
    unit = (split * tl.num_programs(2) + c).to(tl.int64) * D
    row = unit * (TAPS * D) + o[:, None] * (TAPS * D) + (tap * D + i)[None, :]
    tl.store(partial + row, total, mask=(o < D)[:, None] & wanted[None, :])
    if tile % (TILES * GROUPS) == 0:
        tl.store(partial_bias + unit + o, total_bias, mask=o < D)


@triton.jit
@no_type_check
def normalise(
    v,
    g,
    w,
    D: tl.constexpr,
    DP: tl.constexpr,
    TAPS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write g v / ||v|| as (C, TAPS, DP, DP): tap, output, input; zeros behind D. v is (C * D, D, TAPS)."""
    o, c = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.program_id(1)
    at = tl.arange(0, BLOCK)
    tap, i = at // DP, at % DP
    row = c * D + o
    mask = (o < D)[:, None] & ((i < D) & (tap < TAPS))[None, :]
    place = row.to(tl.int64)[:, None] * (D * TAPS) + (i * TAPS + tap)[None, :]
    values = tl.load(v + place, mask=mask, other=0.0).to(tl.float32)
    gain = tl.load(g + row, mask=o < D, other=0.0).to(tl.float32)
    norm = tl.where(o < D, tl.sqrt(tl.sum(values * values, axis=1)), 1.0)
    values *= (gain / norm)[:, None]
    place = ((c.to(tl.int64) * TAPS + tap) * (DP * DP) + i)[None, :] + (o * DP)[:, None]
    tl.store(w + place, values.to(w.dtype.element_ty), mask=(o < DP)[:, None] & (tap < TAPS)[None, :])


@triton.jit(do_not_specialize=["splits"])
@no_type_check
def finish_weights(
    partial,
    partial_bias,
    v,
    g,
    dv,
    dg,
    d_bias,
    splits,
    D: tl.constexpr,
    TAPS: tl.constexpr,
    MOST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Sum the parts, MOST or fewer, into d = dL/dw, and take it through w = g v / ||v||.

    dg = <d, v> / ||v||;  dv = g / ||v|| (d - v <d, v> / ||v||^2)
    """
    o, c = tl.program_id(0), tl.program_id(1)
    convolutions = tl.num_programs(1)
    at = tl.arange(0, BLOCK)
    mask = at < TAPS * D
    row = (c * D + o).to(tl.int64)
    slope = tl.zeros((BLOCK,), tl.float32)
    slope_bias = tl.zeros((1,), tl.float32)
    unit = row
    for split in range(0, MOST):
        there = split < splits
        slope += tl.load(partial + unit * (TAPS * D) + at, mask=mask & there, other=0.0)
        slope_bias += tl.load(partial_bias + unit, mask=there, other=0.0)
        unit += convolutions * D
    place = row * (D * TAPS) + (at % D) * TAPS + at // D
    values = tl.load(v + place, mask=mask, other=0.0).to(tl.float32)
    square = tl.sum(values * values, axis=0)
    norm = tl.sqrt(square)
    along = tl.sum(slope * values, axis=0)
    gain = tl.load(g + row).to(tl.float32)
    slope = (gain / norm) * (slope - values * (along / square))
    tl.store(dv + place, slope.to(dv.dtype.element_ty), mask=mask)
    tl.store(dg + row, (along / norm).to(dg.dtype.element_ty))
    tl.store(d_bias + row + tl.arange(0, 1), slope_bias.to(d_bias.dtype.element_ty))


@triton.jit(do_not_specialize=["batch", "steps", "past_batch", "state_batch"])
@no_type_check
def keep_inputs(
    x,
    between,
    past,
    lengths,
    state,
    batch,
    steps,
    past_batch,
    state_batch,
    D: tl.constexpr,
    TAPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write the last R inputs of every convolution before each row's end, across the seam with `past`."""
    c = tl.program_id(1)
    dilation = 1 << (c // 2)
    reach = (TAPS - 1) * dilation
    offset = (TAPS - 1) * D * (2 * (dilation - 1) + (c % 2) * dilation)
    if c == 0:
        source = x
    else:
        source = between + (c - 1) * (batch.to(tl.int64) * steps * D)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < batch * reach * D
    d, row = at % D, at // D
    b, r = row // reach, row % reach
    if lengths is not None:
        ends = tl.load(lengths + b, mask=mask, other=0).to(tl.int32)
    else:
        ends = tl.zeros((BLOCK,), tl.int32) + steps
    t = ends - reach + r
    values = tl.load(source + (b * steps + t) * D + d, mask=mask & (t >= 0), other=0.0)
    if past is not None:
        old = b.to(tl.int64) * past_batch + offset + (ends + r) * D + d
        values += tl.load(past + old, mask=mask & (t < 0), other=0.0)
    tl.store(state + b.to(tl.int64) * state_batch + offset + r * D + d, values, mask=mask)
