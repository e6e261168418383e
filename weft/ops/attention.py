"""Attention pooling: sum_i alpha(q, k_i) v_i with alpha the softmax of a score over the valid keys."""

from __future__ import annotations

from importlib.util import find_spec

import torch

from weft.core.errors import ConfigError, InputError
from weft.core.sequences import length_mask
from weft.core.shapes import Float, Int, Tensor
from weft.ops import trust
from weft.ops.masks import combine, position_mask
from weft.ops.scores import (
    SCORES,
    ScoreParams,
    check_params,
    check_score,
    pair_score,
    project_key,
    project_query,
)
from weft.ops.weights import check_lengths, choose_backend

_CHUNK = 2**24  # elements of queries x keys x width that the additive score holds at a time, without kernels


def _has_triton() -> bool:
    try:
        return find_spec("triton") is not None
    except ModuleNotFoundError:  # a finder may refuse by raising
        return False


_TRITON = _has_triton()  # asked once, here: torch.compile cannot follow the search for a module
_KERNEL_DTYPES = (torch.bfloat16, torch.float16, torch.float32)


def masked_softmax(scores: Float[Tensor, "*B T S"], mask: Tensor | None = None) -> Float[Tensor, "*B T S"]:
    """Return the softmax over the kept keys; a query that may see none gets zeros, never NaN."""
    if mask is None:
        return torch.softmax(scores, dim=-1)
    lowest = torch.finfo(scores.dtype).min
    weights = torch.softmax(scores.masked_fill(~mask, lowest), dim=-1)
    return weights.masked_fill(~mask, 0)


def attention_weights(
    q: Float[Tensor, "*B T Dq"],
    k: Float[Tensor, "*B S Dk"],
    score: str = "scaled_dot",
    params: ScoreParams | None = None,
    mask: Tensor | None = None,
) -> Float[Tensor, "*B T S"]:
    """Return alpha: the masked softmax of the scores of every pair."""
    check_score(score)
    return masked_softmax(SCORES[score](q, k, params or ScoreParams()), mask)


def attend_reference(
    q: Float[Tensor, "*B T Dq"],
    k: Float[Tensor, "*B S Dk"],
    v: Float[Tensor, "*B S Dv"],
    score: str = "scaled_dot",
    params: ScoreParams | None = None,
    mask: Tensor | None = None,
) -> Float[Tensor, "*B T Dv"]:
    """Pool the values by the weights, everything written out."""
    return attention_weights(q, k, score, params, mask) @ v


def attend(
    q: Float[Tensor, "*B T Dq"],
    k: Float[Tensor, "*B S Dk"],
    v: Float[Tensor, "*B S Dv"],
    score: str = "scaled_dot",
    params: ScoreParams | None = None,
    lengths: Int[Tensor, "B"] | None = None,
    causal: bool = False,
    neighbourhood: int | None = None,
    mask: Tensor | None = None,
    backend: str = "auto",
) -> Float[Tensor, "*B T Dv"]:
    """Attend from every query to the valid keys.

    lengths        valid keys of each row; a row without any gives zeros
    causal         query t sees keys up to t
    neighbourhood  query t sees keys within r of t
    mask           anything else, broadcast to (..., T, S), True keeps
    backend        "torch" is dots by torch's own attention; "fused" the kernels of the additive scores
    """
    check_score(score)
    params = params or ScoreParams()
    check_params(score, params)
    _check_pairs(k, v, mask)
    check_lengths(lengths, k.shape[0], k.shape[-2])
    backend = choose_backend(backend, ("reference", "torch", "fused"), "auto")
    reason = _refusal(score, q, k, params.w) if backend == "fused" else None
    if reason is not None:
        raise ConfigError(f'backend="fused" cannot attend here: {reason}. Try backend="auto".')
    if lengths is not None:
        k, v = _blank(k, lengths), _blank(v, lengths)
    mask = combine(mask, _key_mask(q, k, lengths))
    if backend == "reference":
        mask = combine(mask, _order_mask(q, k, causal, neighbourhood))
        return attend_reference(q, k, v, score, params, mask)
    plain = causal and mask is None and neighbourhood is None and score not in ("additive", "concat")
    if not plain:  # torch's dots know the causal mask and need no matrix for it
        mask = combine(mask, _order_mask(q, k, causal, neighbourhood))
    q, k = project_query(q, score, params), project_key(k, score, params)
    return pool(q, k, v, score, params.w, mask, causal=plain, backend=backend)


def pool(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    score: str,
    w: Tensor | None,
    mask: Tensor | None,
    dropout: float = 0.0,
    causal: bool = False,
    backend: str = "auto",
) -> Tensor:
    """Attend with projected queries and keys, without a matrix queries x keys where torch has a way.

    `causal` stands for the causal mask and needs mask=None. Dropout acts on the weights of dots.
    """
    if score in ("additive", "concat"):
        trusted = "additive" in trust.TRUSTED and _refusal(score, q, k, w) is None
        fused = backend == "fused" or (backend == "auto" and trusted)
        return (_pool_by_kernels if fused else _pool_additive)(q, k, v, w, mask)
    if score == "gaussian":
        q, k = _gaussian_as_dot(q, k)
    scale = q.shape[-1] ** -0.5 if score == "scaled_dot" else 1.0
    mask = None if mask is None else torch.atleast_2d(mask)
    one_head = q.dim() == k.dim() == v.dim() == 3  # torch's kernels without a matrix want (B, N, T, E)
    heads = [x.unsqueeze(1) for x in (q, k, v)] if one_head else [q, k, v]
    kept = mask.unsqueeze(1) if one_head and mask is not None and mask.dim() == 3 else mask
    out = torch.nn.functional.scaled_dot_product_attention(
        *heads, attn_mask=kept, dropout_p=dropout, is_causal=causal, scale=scale
    )
    out = out.squeeze(1) if one_head else out
    return out if mask is None else out.masked_fill(~mask.any(-1, keepdim=True), 0)


def pool_weights(q: Tensor, k: Tensor, score: str, w: Tensor | None, mask: Tensor | None) -> Tensor:
    """Return the weights that `pool` uses."""
    return masked_softmax(pair_score(q, k, score, w), mask)


def _gaussian_as_dot(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Return q', k' with q' . k' = q . k - ||k||^2 / 2; the term in ||q||^2 leaves the softmax as it is.

    The squared norm is carried in two columns, high and low part, so half precision loses nothing; zeros
    behind them make the width a multiple of 8, which torch's kernels without a matrix want.
    """
    wide = torch.float64 if k.dtype == torch.float64 else torch.float32
    norm = -0.5 * k.to(wide).square().sum(-1, keepdim=True)
    high = norm.to(k.dtype)
    low = (norm - high.to(wide)).to(k.dtype)
    ones = torch.ones_like(q[..., :1])
    fill = (0, -(q.shape[-1] + 2) % 8)
    q, k = torch.cat([q, ones, ones], dim=-1), torch.cat([k, high, low], dim=-1)
    return torch.nn.functional.pad(q, fill), torch.nn.functional.pad(k, fill)


def _pool_additive(q: Tensor, k: Tensor, v: Tensor, w: Tensor | None, mask: Tensor | None) -> Tensor:
    """Attend query chunk by query chunk, so that T x S x H is never whole when it would be large."""
    per_query = max(1, k.numel())
    chunk = max(1, _CHUNK // per_query)
    if q.shape[-2] <= chunk:
        return masked_softmax(pair_score(q, k, "additive", w), mask) @ v
    parts = []
    for start in range(0, q.shape[-2], chunk):
        part_mask = mask if mask is None or mask.shape[-2] == 1 else mask[..., start : start + chunk, :]
        scores = pair_score(q[..., start : start + chunk, :], k, "additive", w)
        parts.append(masked_softmax(scores, part_mask) @ v)
    return torch.cat(parts, dim=-2)


def _pool_by_kernels(q: Tensor, k: Tensor, v: Tensor, w: Tensor | None, mask: Tensor | None) -> Tensor:
    """Attend by Triton: nothing of T x S x H is ever in memory."""
    from weft.ops.kernels.additive_weights import additive_weights

    assert w is not None, "the additive score needs its vector w"
    return additive_weights(q, k, w, mask) @ v


def _refusal(score: str, *tensors: Tensor | None) -> str | None:
    """Return why the kernels of the additive scores cannot run here, or None if they can."""
    given = [x for x in tensors if x is not None]
    if score not in ("additive", "concat"):
        return f"the score `{score}` goes through torch's own attention"
    if not all(x.is_cuda for x in given):
        return "its input is not on a CUDA device"
    if not all(x.dtype in _KERNEL_DTYPES for x in given):
        return "it works in bf16, fp16 and fp32"
    if not all(x.numel() for x in given):
        return "its input is empty"
    return None if _TRITON else "Triton is not installed"


def _check_pairs(k: Tensor, v: Tensor, mask: Tensor | None) -> None:
    """Refuse values that do not belong to the keys, and a mask to be added: torch would take both."""
    if k.shape[-2] != v.shape[-2]:
        raise InputError(f"`v` must have a value for each of the {k.shape[-2]} keys, but has {v.shape[-2]}.")
    if mask is not None and mask.dtype != torch.bool:
        raise InputError(f"`mask` must be of bool, True keeps, but is of {mask.dtype}. Try mask == 0.")


def _blank(x: Tensor, lengths: Tensor) -> Tensor:
    """Set padded keys or values to zero: a weight of zero does not undo a NaN."""
    padded = ~length_mask(lengths, x.shape[-2])  # (B, S)
    return x.masked_fill(padded.view(padded.shape[0], *[1] * (x.dim() - 3), padded.shape[1], 1), 0)


def _key_mask(q: Tensor, k: Tensor, lengths: Tensor | None) -> Tensor | None:
    if lengths is None:
        return None
    mask = length_mask(lengths, k.shape[-2])  # (B, S)
    return mask.view(mask.shape[0], *[1] * (k.dim() - 2), mask.shape[1])


def _order_mask(q: Tensor, k: Tensor, causal: bool, neighbourhood: int | None) -> Tensor | None:
    if not causal and neighbourhood is None:
        return None
    queries = torch.arange(q.shape[-2], device=q.device)
    keys = torch.arange(k.shape[-2], device=q.device)
    return position_mask(queries, keys, causal, neighbourhood)
