"""Weights of additive attention as an operation of torch: seen by autograd, torch.compile and CUDA graphs.

Annotations here are no strings: torch reads them when it makes the operations' signatures.
"""

import functools
from typing import Any, NamedTuple

import torch
from torch import Tensor

FEW = 4  # queries up to here are scored one by one against the keys as they lie
SCORE_TILE = (32, 128)  # queries x keys of a block, a warp for 32 keys
UNROLL = 4  # columns of the width that a turn of the loop over it takes
GRADIENT_TILE = (16, 32)  # queries x columns of the width, held by one warp
GRADIENT_WARPS = 12  # that a multiprocessor should have at least
ROW = 1024  # most keys of a softmax at a time


class Parts(NamedTuple):
    """How the queries and the keys of a row are split over warps in backward."""

    block_q: int
    q_parts: int
    k_parts: int
    tiles_each: int  # tiles of queries of a part
    keys_each: int


def additive_weights(q: Tensor, k: Tensor, w: Tensor, mask: Tensor | None) -> Tensor:
    """Return the masked softmax of w . tanh(q_i + k_j), (..., T, S), of projected queries and keys."""
    masked = None if mask is None else torch.atleast_2d(mask)
    leading = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], () if masked is None else masked.shape[:-2])
    weights = _weights(_flat(q, leading), _flat(k, leading), w, _flat_mask(masked, leading))
    return weights.view(*leading, *weights.shape[1:])


def _flat(x: Tensor, leading: torch.Size) -> Tensor:
    """Return (..., N, H) as (B, N, H) with all leading axes."""
    return x.expand(*leading, *x.shape[-2:]).reshape(-1, *x.shape[-2:])


def _flat_mask(mask: Tensor | None, leading: torch.Size) -> Tensor | None:
    """Return a mask as (B or 1, T or 1, S or 1)."""
    if mask is None or mask.shape[:-2].numel() == 1:
        return mask if mask is None else mask.reshape(1, *mask.shape[-2:])
    return _flat(mask, leading)


@torch.library.custom_op("weft::additive_weights", mutates_args=())
def _weights(q: Tensor, k: Tensor, w: Tensor, mask: Tensor | None) -> Tensor:
    with torch.cuda.device_of(q):
        return run_weights(q.contiguous(), k.contiguous(), w.contiguous(), mask)


@_weights.register_fake
def _(q: Tensor, k: Tensor, w: Tensor, mask: Tensor | None) -> Tensor:
    return q.new_empty(q.shape[0], q.shape[1], k.shape[1], dtype=torch.promote_types(q.dtype, k.dtype))


@torch.library.custom_op("weft::additive_weights_backward", mutates_args=())
def _backward(dp: Tensor, p: Tensor, q: Tensor, k: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    with torch.cuda.device_of(q):
        return run_backward(dp.contiguous(), p.contiguous(), q.contiguous(), k.contiguous(), w.contiguous())


@_backward.register_fake
def _(dp: Tensor, p: Tensor, q: Tensor, k: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return q.new_empty(q.shape), k.new_empty(k.shape), w.new_empty(w.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(output, *inputs[:3])


def _differentiate(ctx: Any, dp: Tensor) -> tuple[Tensor | None, ...]:
    return (*_backward(dp, *ctx.saved_tensors), None)


_weights.register_autograd(_differentiate, setup_context=_keep)


def run_weights(q: Tensor, k: Tensor, w: Tensor, mask: Tensor | None) -> Tensor:
    """Return the weights (B, T, S): scores in fp32, then their softmax."""
    (batch, queries, _), keys = q.shape, k.shape[1]
    out = q.new_empty(batch, queries, keys, dtype=torch.promote_types(q.dtype, k.dtype))
    exact = _exact(out)
    scores = (few_scores if queries <= FEW else all_scores)(q, k, w, mask, exact)
    block = min(power_above(keys), ROW)
    warps = 1 if block <= 256 else 4
    launch("softmax", (batch * queries,), scores, out, keys, BLOCK=block, num_warps=warps)
    return out


def launch(kernel: str, blocks: tuple[int, ...], *arguments: Any, **constants: Any) -> None:
    """Launch a kernel of `additive` on so many blocks; Triton is needed from here on."""
    from weft.ops.kernels import additive

    getattr(additive, kernel)[blocks](*arguments, **constants)


def over(total: int, each: int) -> int:
    """Return how many of a size cover a total."""
    return -(-total // each)


def power_above(n: int) -> int:
    """Return the smallest power of two that is not below n."""
    return 1 << (n - 1).bit_length()


def _exact(x: Tensor) -> bool:
    """Tell whether tanh is made of exponentials: for fp32, and where there is no GPU (interpreted)."""
    return x.dtype == torch.float32 or not x.is_cuda


def _mask_arguments(mask: Tensor | None, q: Tensor) -> tuple[Tensor, int, int, int]:
    """Return a mask's bytes and strides, zero along axes it does not have; something to point at for None."""
    if mask is None:
        return q, 0, 0, 0
    b, t, s = (0 if size == 1 else step for size, step in zip(mask.shape, mask.stride(), strict=True))
    return mask.view(torch.uint8), b, t, s


def few_scores(q: Tensor, k: Tensor, w: Tensor, mask: Tensor | None, exact: bool) -> Tensor:
    """Return the scores of few queries (B, T, S) in one launch."""
    (batch, queries, width), keys = q.shape, k.shape[1]
    out = q.new_empty(batch, queries, keys, dtype=torch.float32)
    byte_mask, *steps = _mask_arguments(mask, q)
    block_k, block_h = 16, min(128, power_above(width))
    launch(
        "few_scores", (batch * queries * over(keys, block_k),),
        q, k, w, byte_mask, out, queries, keys, width, *steps,
        MASKED=mask is not None, BLOCK_K=block_k, BLOCK_H=block_h, EXACT=exact, num_warps=4,
    )  # fmt: skip
    return out


def all_scores(q: Tensor, k: Tensor, w: Tensor, mask: Tensor | None, exact: bool) -> Tensor:
    """Return the scores (B, T, S) tile by tile."""
    (batch, queries, width), keys = q.shape, k.shape[1]
    block_q, block_k = score_tile(batch, queries, keys, _multiprocessors(q))
    out = q.new_empty(batch, queries, keys, dtype=torch.float32)
    q_columns, k_columns = turned(q, block_q), turned(k, block_k)
    q_padded, k_padded = q_columns.shape[2], k_columns.shape[2]
    byte_mask, *steps = _mask_arguments(mask, q)
    launch(
        "scores", (batch * (q_padded // block_q) * (k_padded // block_k),),
        q_columns, k_columns, w, byte_mask, out, queries, keys, width, q_padded, k_padded, *steps,
        MASKED=mask is not None, BLOCK_Q=block_q, BLOCK_K=block_k, UNROLL=UNROLL, EXACT=exact,
        num_warps=block_k // 32,
    )  # fmt: skip
    return out


def score_tile(batch: int, queries: int, keys: int, multiprocessors: int) -> tuple[int, int]:
    """Choose a block's tile: as large as leaves two blocks for each multiprocessor."""
    block_q = min(SCORE_TILE[0], max(8, power_above(queries)))
    block_k = min(SCORE_TILE[1], max(32, power_above(keys)))
    columns = batch * over(keys, block_k)
    while block_q > 8 and columns * over(queries, block_q) < 2 * multiprocessors:
        block_q //= 2
    return block_q, block_k


def turned(x: Tensor, multiple: int) -> Tensor:
    """Return rows (B, N, H) as columns (B, H, N up to a multiple) in fp32, zeros behind."""
    batch, count, width = x.shape
    padded = over(count, multiple) * multiple
    out = x.new_empty(batch, width, padded, dtype=torch.float32)
    grid = (batch * over(padded, 64), over(width, 64))
    launch("turn", grid, x, out, count, width, padded, BLOCK_N=64, BLOCK_H=64, num_warps=4)
    return out


def run_backward(dp: Tensor, p: Tensor, q: Tensor, k: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of q, k and w."""
    (batch, queries, width), keys = q.shape, k.shape[1]
    chunks = over(width, GRADIENT_TILE[1])
    parts = split(batch * chunks, queries, keys, _multiprocessors(q))
    slopes, ends = score_slopes(p, dp, parts.block_q)
    dq = q.new_empty(parts.k_parts, batch, queries, width, dtype=torch.float32)
    dk = k.new_empty(parts.q_parts, batch, keys, width, dtype=torch.float32)
    dw = w.new_empty(parts.q_parts * parts.k_parts * batch, width, dtype=torch.float32)
    launch(
        "gradients", (batch * parts.q_parts * parts.k_parts * chunks,),
        q, k, slopes, ends, dq, dk, dw, batch, queries, keys, width, slopes.shape[2],
        parts.q_parts, parts.k_parts, chunks, parts.tiles_each, parts.keys_each,
        BLOCK_Q=parts.block_q, BLOCK_H=GRADIENT_TILE[1], EXACT=_exact(p), num_warps=1,
    )  # fmt: skip
    del slopes  # each buffer goes before the next result comes
    d_query = summed(dq, w, q)
    del dq
    return d_query, summed(dk, w, k), dw.sum(0).to(w.dtype)


def split(programs: int, queries: int, keys: int, multiprocessors: int) -> Parts:
    """Split the queries and the keys until there are enough warps, at the least memory for partial sums."""
    block_q = min(GRADIENT_TILE[0], power_above(queries))
    tiles, q_parts, k_parts = over(queries, block_q), 1, 1
    while programs * q_parts * k_parts < GRADIENT_WARPS * multiprocessors:
        more = [(keys * q_parts, True)] * (2 * q_parts <= tiles)
        more += [(queries * k_parts, False)] * (2 * k_parts <= keys)
        if not more:
            break
        q_parts, k_parts = (2 * q_parts, k_parts) if min(more)[1] else (q_parts, 2 * k_parts)
    tiles_each, keys_each = over(tiles, q_parts), over(keys, k_parts)
    return Parts(block_q, over(tiles, tiles_each), over(keys, keys_each), tiles_each, keys_each)


def score_slopes(p: Tensor, dp: Tensor, block_q: int) -> tuple[Tensor, Tensor]:
    """Return the gradient of the scores (B, S, T up to whole tiles), and where each tile's keys end."""
    batch, queries, keys = p.shape
    tiles = over(queries, block_q)
    out = p.new_empty(batch, keys, tiles * block_q, dtype=torch.float32)
    ends = p.new_empty(batch, tiles, dtype=torch.int32)
    sizes = {"BLOCK_Q": block_q, "BLOCK_K": min(128, power_above(keys))}
    launch(
        "score_slopes", (batch * tiles,), p, dp, out, ends, queries, keys, out.shape[2], **sizes, num_warps=4
    )
    return out, ends


def summed(parts: Tensor, w: Tensor, like: Tensor) -> Tensor:
    """Return w times the sum of the partial sums, in the type of `like`."""
    out = torch.empty_like(like)
    width, rows = like.shape[2], like.shape[0] * like.shape[1]
    launch(
        "finish",
        (over(rows, 8), over(width, 128)),
        parts,
        w,
        out,
        parts.shape[0],
        rows * width,
        rows,
        width,
        BLOCK_N=8,
        BLOCK_H=128,
        num_warps=4,
    )
    return out


def _multiprocessors(x: Tensor) -> int:
    """Return how many multiprocessors x's GPU has; interpreted, 1."""
    return _count(x.get_device()) if x.is_cuda else 1


@functools.cache
def _count(device: int) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count
