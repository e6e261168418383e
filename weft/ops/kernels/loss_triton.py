"""Rows of logits by Triton: their losses in one reading, their gradients in their place.

Logits are (rows, row), contiguous, a row a multiple of `ALIGN` words long; behind `words` it holds anything.
"""

from __future__ import annotations

from typing import Any, no_type_check

import triton
import triton.language as tl

from weft.core.shapes import Tensor
from weft.ops.loss import IGNORE

IGNORED = tl.constexpr(IGNORE)
ALIGN = 8  # words: 16 bytes in half precision, what a thread reads at once
LOG2E = tl.constexpr(1.4426950408889634)  # exp(x) = exp2(x log2 e): the hardware has exp2

BLOCK, WARPS = 4096, 8  # losses: words of a row a program reads at once
COLUMNS, AT_ONCE, ROWS, GRADIENT_WARPS = 1024, 2, 32, 4  # gradients: ROWS x COLUMNS a program, AT_ONCE rows


def write_losses(
    logits: Tensor, words: int, target: Tensor, smoothing: float, losses: Tensor, norms: Tensor
) -> None:
    """Write each row's loss and log sum_v exp(logit[v]); both 0 where the target is ignored."""
    count, row = logits.shape
    launch: Any = _losses[(count,)]
    if count:
        shape = (words, row, smoothing > 0, BLOCK // ALIGN, ALIGN)
        launch(logits, target, losses, norms, smoothing, *shape, num_warps=WARPS)


def take_gradients(
    logits: Tensor,
    words: int,
    target: Tensor,
    slopes: Tensor,
    norms: Tensor,
    smoothing: float,
    column_sums: Tensor | None,
) -> Tensor:
    """Overwrite logits with slope (p[v] - (1-e)[v = target] - e/V), and add their sums over rows in fp32."""
    count, row = logits.shape
    groups, summed = -(-count // ROWS), column_sums is not None
    sums = norms.new_empty((groups, row) if summed else (1,))
    launch: Any = _gradients[(-(-row // COLUMNS) * groups,)]
    if count:
        shape = (words, row, summed, ROWS, AT_ONCE, COLUMNS)
        arguments = (logits, target, slopes, norms, sums, count, smoothing, *shape)
        launch(*arguments, num_warps=GRADIENT_WARPS)
    if column_sums is not None:
        column_sums += sums.sum(0)
    return logits


@triton.jit
@no_type_check  # Triton reads a function's own source: nothing may be wrapped around it
def _losses(
    logits,
    target,
    losses,
    norms,
    smoothing,
    words: tl.constexpr,
    row_size: tl.constexpr,
    smoothed: tl.constexpr,
    threads: tl.constexpr,
    each: tl.constexpr,
):
    """One program a row. Each of `threads` keeps its own largest logit m and sum of exp(logit - m)."""
    row = tl.program_id(0).to(tl.int64)
    at_row = logits + row * row_size
    wanted = tl.load(target + row)
    counts = wanted != IGNORED
    within = tl.arange(0, threads)[:, None] * each + tl.arange(0, each)[None, :]
    largest = tl.full((threads,), -1.0e38, tl.float32)  # finite: a logit of -inf less it is no NaN
    total = tl.zeros((threads,), tl.float32)
    plain = tl.zeros((threads,), tl.float32)
    for start in range(0, row_size, threads * each):
        columns = start + within
        # masked at multiples of `each`, so that a thread still reads 16 bytes at once
        x = tl.load(at_row + columns, mask=(columns < row_size) & counts, other=float("-inf")).to(tl.float32)
        x = tl.where(columns < words, x, float("-inf"))
        new = tl.maximum(largest, tl.max(x, axis=1))
        total = total * tl.exp2((largest - new) * LOG2E) + tl.sum(tl.exp2((x - new[:, None]) * LOG2E), axis=1)
        largest = new
        if smoothed:
            plain += tl.sum(tl.where(columns < words, x, 0.0), axis=1)
    top = tl.max(largest, axis=0)
    sum_exp = tl.sum(total * tl.exp(largest - top), axis=0)
    log_sum = tl.log(tl.where(counts, sum_exp, 1.0))
    exists = (wanted >= 0) & (wanted < words)
    picked = tl.load(at_row + wanted, mask=exists, other=float("nan")).to(tl.float32)
    loss = log_sum + (1.0 - smoothing) * (top - picked)
    if smoothed:
        loss += smoothing * (top - tl.sum(plain, axis=0) / words)
    tl.store(losses + row, tl.where(counts, loss, 0.0))
    tl.store(norms + row, tl.where(counts, top + log_sum, 0.0))


@triton.jit
@no_type_check
def _gradients(
    logits,
    target,
    slopes,
    norms,
    sums,
    count,
    smoothing,
    words: tl.constexpr,
    row_size: tl.constexpr,
    summed: tl.constexpr,
    rows: tl.constexpr,
    at_once: tl.constexpr,
    width: tl.constexpr,
):
    """A program takes `width` columns of `rows` rows, so that it can sum over them without atomics."""
    blocks: tl.constexpr = (row_size + width - 1) // width
    group = tl.program_id(0) // blocks
    columns = tl.program_id(0) % blocks * width + tl.arange(0, width)
    inside, is_word = columns < row_size, columns < words
    total = tl.zeros((width,), tl.float32)
    for start in range(0, rows, at_once):
        row = group * rows + start + tl.arange(0, at_once)
        exists = row < count
        wanted = tl.load(target + row, mask=exists, other=IGNORED).to(tl.int32)
        counts = wanted != IGNORED
        slope = tl.load(slopes + row, mask=counts, other=0.0)
        norm = tl.load(norms + row, mask=counts, other=0.0)
        at = logits + row.to(tl.int64)[:, None] * row_size + columns[None, :]
        # of ignored rows too: so it need not wait for their targets
        x = tl.load(at, mask=exists[:, None] & inside[None, :], other=0.0).to(tl.float32)
        hit = tl.where(columns[None, :] == wanted[:, None], 1.0 - smoothing, 0.0)
        d = slope[:, None] * (tl.exp2((x - norm[:, None]) * LOG2E) - smoothing / words - hit)
        d = tl.where(counts[:, None] & is_word[None, :], d, 0.0)
        tl.store(at, d.to(logits.dtype.element_ty), mask=exists[:, None] & inside[None, :])
        total += tl.sum(d, axis=0)
    if summed:
        tl.store(sums + group * row_size + columns, total, mask=inside)
