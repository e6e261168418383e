"""The kernels of additive attention: score_ij = sum_h w_h tanh(q_ih + k_jh), softmax, and the gradients.

Nothing of queries x keys x width is ever in memory: a tanh lives in a register, and backward makes it anew.
One approximate tanh is one instruction of the special-function unit, 16 a clock and multiprocessor; that
unit is the limit, so everything beside it must stay below 8 instructions a tanh.
"""

from typing import no_type_check  # Triton reads a function's own source: nothing may be wrapped around it

import triton
import triton.language as tl


@triton.jit
@no_type_check
def _tanh(x, EXACT: tl.constexpr):
    if EXACT:
        y = 1.0 - 2.0 / (1.0 + tl.exp(2.0 * x))  # two operations of the special unit; right at infinity
    else:
        y = tl.inline_asm_elementwise(
            "tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )
    return y


@triton.jit
@no_type_check
def turn(x, y, count, width, padded, BLOCK_N: tl.constexpr, BLOCK_H: tl.constexpr):
    """Write rows (B, count, width) as columns (B, width, padded) in fp32, zeros behind `count`."""
    tiles = tl.cdiv(padded, BLOCK_N)
    batch = (tl.program_id(0) // tiles).to(tl.int64)
    n = tl.program_id(0) % tiles * BLOCK_N + tl.arange(0, BLOCK_N)
    h = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    there = (n < count)[:, None] & (h < width)[None, :]
    rows = tl.load(x + batch * count * width + n[:, None] * width + h[None, :], mask=there, other=0.0)
    room = (h < width)[:, None] & (n < padded)[None, :]
    to = y + batch * width * padded + h[:, None] * padded + n[None, :]
    tl.store(to, tl.trans(rows.to(tl.float32)), mask=room)  # (BLOCK_H, BLOCK_N)


@triton.jit
@no_type_check
def scores(
    q, k, w, mask, out,
    queries, keys, width, q_padded, k_padded, mask_b, mask_t, mask_s,
    MASKED: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, UNROLL: tl.constexpr,
    EXACT: tl.constexpr,
):  # fmt: skip
    """Write a tile of scores; q and k are columns as `turn` leaves them. Masked pairs get minus infinity."""
    q_tiles, k_tiles = q_padded // BLOCK_Q, k_padded // BLOCK_K
    batch = (tl.program_id(0) // (q_tiles * k_tiles)).to(tl.int64)
    tile = tl.program_id(0) % (q_tiles * k_tiles)
    i = tile // k_tiles * BLOCK_Q + tl.arange(0, BLOCK_Q)
    j = tile % k_tiles * BLOCK_K + tl.arange(0, BLOCK_K)
    there = (i < queries)[:, None] & (j < keys)[None, :]
    steps = width
    if MASKED:
        kept = tl.load(mask + batch * mask_b + i[:, None] * mask_t + j[None, :] * mask_s, mask=there, other=0)
        steps = width * tl.max(tl.max((kept != 0).to(tl.int32), axis=1), axis=0)  # no work where none is kept
    q += batch * width * q_padded + i
    k += batch * width * k_padded + j
    total = tl.zeros((BLOCK_Q, BLOCK_K), dtype=tl.float32)
    for first in range(0, steps, UNROLL):
        for more in tl.static_range(UNROLL):
            h = first + more
            weight = tl.load(w + h, mask=h < width, other=0.0).to(tl.float32)
            h = tl.minimum(h, width - 1)
            pair = tl.load(q + h * q_padded)[:, None] + tl.load(k + h * k_padded)[None, :]
            total += weight * _tanh(pair, EXACT)
    if MASKED:
        total = tl.where(kept != 0, total, float("-inf"))
    tl.store(out + batch * queries * keys + i[:, None] * keys + j[None, :], total, mask=there)


@triton.jit
@no_type_check
def few_scores(
    q, k, w, mask, out,
    queries, keys, width, mask_b, mask_t, mask_s,
    MASKED: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_H: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """Write one query's scores of a tile of keys, reading the keys as they lie: for a step of a decoder."""
    k_tiles = tl.cdiv(keys, BLOCK_K)
    row = (tl.program_id(0) // k_tiles).to(tl.int64)  # of all queries of the batch
    batch, i = row // queries, row % queries
    j = tl.program_id(0) % k_tiles * BLOCK_K + tl.arange(0, BLOCK_K)
    there = j < keys
    k += (batch * keys + j)[:, None] * width
    total = tl.zeros((BLOCK_K, BLOCK_H), dtype=tl.float32)
    for first in range(0, width, BLOCK_H):
        h = first + tl.arange(0, BLOCK_H)
        inside = h < width
        query = tl.load(q + row * width + h, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(w + h, mask=inside, other=0.0).to(tl.float32)
        key = tl.load(k + h[None, :], mask=there[:, None] & inside[None, :], other=0.0).to(tl.float32)
        total += weight[None, :] * _tanh(query[None, :] + key, EXACT)
    score = tl.sum(total, axis=1)
    if MASKED:
        kept = tl.load(mask + batch * mask_b + i * mask_t + j * mask_s, mask=there, other=0)
        score = tl.where(kept != 0, score, float("-inf"))
    tl.store(out + row * keys + j, score, mask=there)


@triton.jit
@no_type_check
def softmax(x, y, keys, BLOCK: tl.constexpr):
    """Write the softmax of a row; a row of minus infinities gives zeros."""
    row = tl.program_id(0).to(tl.int64) * keys
    top = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    for first in range(0, keys, BLOCK):
        j = first + tl.arange(0, BLOCK)
        top = tl.maximum(top, tl.load(x + row + j, mask=j < keys, other=float("-inf")))
    most = tl.max(top, axis=0)
    most = tl.where(most == float("-inf"), 0.0, most)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in range(0, keys, BLOCK):
        j = first + tl.arange(0, BLOCK)
        total += tl.exp(tl.load(x + row + j, mask=j < keys, other=float("-inf")) - most)
    whole = tl.sum(total, axis=0)
    scale = 1.0 / tl.where(whole == 0.0, 1.0, whole)
    for first in range(0, keys, BLOCK):
        j = first + tl.arange(0, BLOCK)
        weight = tl.exp(tl.load(x + row + j, mask=j < keys, other=float("-inf")) - most) * scale
        tl.store(y + row + j, weight, mask=j < keys)


@triton.jit
@no_type_check
def score_slopes(p, dp, ds, ends, queries, keys, q_padded, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr):
    """Write ds = p (dp - sum_j p_j dp_j) in fp32, turned to (B, keys, q_padded), zeros behind the queries.

    The mean is divided by sum_j p_j, which rounding to half precision has moved a little from one.
    `ends` gets, for each tile of queries, the key behind the last that has any weight.
    """
    tiles = tl.cdiv(q_padded, BLOCK_Q)
    batch = (tl.program_id(0) // tiles).to(tl.int64)
    i = tl.program_id(0) % tiles * BLOCK_Q + tl.arange(0, BLOCK_Q)
    at = (batch * queries + i)[:, None] * keys
    both = tl.zeros((BLOCK_Q, BLOCK_K), dtype=tl.float32)
    whole = tl.zeros((BLOCK_Q, BLOCK_K), dtype=tl.float32)
    end = tl.zeros((BLOCK_Q, BLOCK_K), dtype=tl.int32)
    for first in range(0, keys, BLOCK_K):
        j = first + tl.arange(0, BLOCK_K)
        there = (i < queries)[:, None] & (j < keys)[None, :]
        weight = tl.load(p + at + j[None, :], mask=there, other=0.0).to(tl.float32)
        both += weight * tl.load(dp + at + j[None, :], mask=there, other=0.0).to(tl.float32)
        whole += weight
        end = tl.maximum(end, tl.where(weight != 0.0, j[None, :] + 1, 0))
    tl.store(ends + tl.program_id(0), tl.max(tl.max(end, axis=1), axis=0))
    sums = tl.sum(whole, axis=1)
    mean = (tl.sum(both, axis=1) / tl.where(sums == 0.0, 1.0, sums))[:, None]
    for first in range(0, keys, BLOCK_K):
        j = first + tl.arange(0, BLOCK_K)
        there = (i < queries)[:, None] & (j < keys)[None, :]
        weight = tl.load(p + at + j[None, :], mask=there, other=0.0).to(tl.float32)
        slope = tl.load(dp + at + j[None, :], mask=there, other=0.0).to(tl.float32)
        room = (i < q_padded)[:, None] & (j < keys)[None, :]
        to = ds + (batch * keys + j)[None, :] * q_padded + i[:, None]
        tl.store(to, weight * (slope - mean), mask=room)


@triton.jit(do_not_specialize=["width"])  # unaligned rows keep one column a lane: no exchange in the loop
@no_type_check
def gradients(
    q, k, ds, ends, dq, dk, dw,
    batches, queries, keys, width, q_padded, q_parts, k_parts, chunks, tiles_each, keys_each,
    BLOCK_Q: tl.constexpr, BLOCK_H: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """Write partial sums of the gradients, without the factor w: one warp owns a chunk of the width.

    Lanes lie along the width, so the sums over queries and over keys stay inside a thread.
    dq (k_parts, B, T, H), dk (q_parts, B, S, H), dw (q_parts, k_parts, B, H); all fp32.
    """
    chunk = tl.program_id(0) % chunks
    part = tl.program_id(0) // chunks
    k_part = part % k_parts
    q_part = part // k_parts % q_parts
    batch = (part // k_parts // q_parts).to(tl.int64)
    h = chunk * BLOCK_H + tl.arange(0, BLOCK_H)
    inside = h < width
    first_tile = q_part * tiles_each
    last_tile = tl.minimum(first_tile + tiles_each, q_padded // BLOCK_Q)
    first_key = k_part * keys_each
    last_key = tl.minimum(first_key + keys_each, keys)
    k += batch * keys * width + h
    ds += batch * keys * q_padded
    dk += (q_part * batches + batch) * keys * width + h
    d_weight = tl.zeros((BLOCK_H,), dtype=tl.float32)
    for tile in range(first_tile, last_tile):
        i = tile * BLOCK_Q + tl.arange(0, BLOCK_Q)
        there = (i < queries)[:, None] & inside[None, :]
        at = i[:, None] * width + h[None, :]
        query = tl.load(q + batch * queries * width + at, mask=there, other=0.0).to(tl.float32)
        d_query = tl.zeros((BLOCK_Q, BLOCK_H), dtype=tl.float32)
        again = inside & (tile > first_tile)  # the first tile finds nothing yet
        end = tl.load(ends + batch * (q_padded // BLOCK_Q) + tile)  # behind it all slopes are zero
        end = tl.maximum(tl.minimum(end, last_key), first_key)
        for j in range(first_key, end):
            slope = tl.load(ds + j * q_padded + i)[:, None]  # the same for every lane
            key = tl.load(k + j * width, mask=inside, other=0.0).to(tl.float32)
            before = tl.load(dk + j * width, mask=again, other=0.0)
            y = _tanh(query + key[None, :], EXACT)
            bend = slope * (1.0 - y * y)
            d_query += bend
            d_weight += tl.sum(slope * y, axis=0)
            tl.store(dk + j * width, before + tl.sum(bend, axis=0), mask=inside)
        for j in range(end, tl.where(tile == first_tile, last_key, end)):
            tl.store(dk + j * width, tl.zeros((BLOCK_H,), dtype=tl.float32), mask=inside)
        tl.store(dq + (k_part * batches + batch) * queries * width + at, d_query, mask=there)
    to = (q_part * k_parts + k_part) * batches + batch
    tl.store(dw + to * width + h, d_weight, mask=inside)


@triton.jit
@no_type_check
def finish(parts, w, out, count, size, rows, width, BLOCK_N: tl.constexpr, BLOCK_H: tl.constexpr):
    """Write w times the sum of `count` partial sums of (rows, width), `size` elements each."""
    n = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    h = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    there = (n < rows)[:, None] & (h < width)[None, :]
    at = n[:, None] * width + h[None, :]
    total = tl.zeros((BLOCK_N, BLOCK_H), dtype=tl.float32)
    for _ in range(count):
        total += tl.load(parts + at, mask=there, other=0.0)
        at += size
    weight = tl.load(w + h, mask=h < width, other=0.0).to(tl.float32)
    to = out + n[:, None] * width + h[None, :]
    tl.store(to, weight[None, :] * total, mask=there)
