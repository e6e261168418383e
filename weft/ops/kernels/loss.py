"""Cross-entropy with the output projection, a chunk of rows at a time: logits are never whole.

Forward keeps each row's log sum_v exp(logit[v]); backward computes the logits again and turns them into
their own gradients in place. Seen by autograd, torch.compile and CUDA graphs as one operation a pass.

Annotations here are no strings: torch reads them when it makes the operations' signatures.
"""

import functools
import importlib.util
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

CHUNK_BYTES = {"cuda": 512 * 2**20, "cpu": 64 * 2**20}  # of logits at a time
TILE = 128  # rows: what a matrix product on a GPU takes at once
TRITON_DTYPES = (torch.bfloat16, torch.float16, torch.float32)


def chunked_losses(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    smoothing: float,
    dtype: torch.dtype,
) -> Tensor:
    """Return each row's loss; products are in `dtype`, sums in float32 (float64 stays)."""
    return _ChunkedLosses.apply(hidden, weight, bias, target.long().contiguous(), smoothing, dtype)


class _ChunkedLosses(torch.autograd.Function):
    """It can be differentiated once."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        target: Tensor,
        smoothing: float,
        dtype: torch.dtype,
    ) -> Tensor:
        losses, norms = _forward(hidden, weight, bias, target, smoothing, dtype)
        ctx.smoothing, ctx.dtype = smoothing, dtype
        ctx.save_for_backward(hidden, weight, bias, target, norms)
        return losses

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        needs = list(ctx.needs_input_grad[:3])
        made = _backward(slopes[0].contiguous(), *ctx.saved_tensors, ctx.smoothing, ctx.dtype, needs)
        return *(grad if need else None for grad, need in zip(made, needs, strict=True)), None, None, None


@torch.library.custom_op("weft::cross_entropy_forward", mutates_args=())
def _forward(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    smoothing: float,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    return run_forward(hidden, weight, bias, target, smoothing, dtype)


@_forward.register_fake
def _(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    smoothing: float,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    losses = hidden.new_empty(hidden.shape[0], dtype=_wide(dtype))
    return losses, torch.empty_like(losses)


@torch.library.custom_op("weft::cross_entropy_backward", mutates_args=())
def _backward(
    slopes: Tensor,
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    norms: Tensor,
    smoothing: float,
    dtype: torch.dtype,
    needs: list[bool],
) -> tuple[Tensor, Tensor, Tensor]:
    return run_backward(slopes, hidden, weight, bias, target, norms, smoothing, dtype, needs)


@_backward.register_fake
def _(
    slopes: Tensor,
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    norms: Tensor,
    smoothing: float,
    dtype: torch.dtype,
    needs: list[bool],
) -> tuple[Tensor, Tensor, Tensor]:
    d_hidden, d_weight, d_bias = (
        x.new_empty(x.shape) if x is not None and need else hidden.new_empty(0)
        for x, need in zip((hidden, weight, bias), needs, strict=True)
    )
    return d_hidden, d_weight, d_bias


def run_forward(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    smoothing: float,
    dtype: torch.dtype,
    rows: ModuleType | None = None,
) -> tuple[Tensor, Tensor]:
    """Return losses (M,) and log sum_v exp(logit[v]) (M,); `rows` works on the logits, chosen if None."""
    rows, words = rows or row_functions(hidden, dtype), weight.shape[0]
    losses = hidden.new_empty(hidden.shape[0], dtype=_wide(dtype))
    norms = torch.empty_like(losses)
    with _undisturbed(hidden):
        factors = _factors(weight, bias, dtype, rows.ALIGN)
        for part in chunks(hidden.shape[0], factors[0].shape[0], hidden.device, dtype):
            logits = torch.nn.functional.linear(hidden[part].to(dtype), *factors)
            rows.write_losses(logits, words, target[part], smoothing, losses[part], norms[part])
            del logits  # before the next are made
    return losses, norms


def run_backward(
    slopes: Tensor,
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    norms: Tensor,
    smoothing: float,
    dtype: torch.dtype,
    needs: list[bool],
    rows: ModuleType | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of hidden, weight and bias for slopes (M,) of the losses; empty if not needed.

    dlogits = slope (p - (1-e) onehot - e/V); dh = dlogits W; dW = dlogits^T h; db = its sum over rows.
    """
    rows, words = rows or row_functions(hidden, dtype), weight.shape[0]
    d_hidden = hidden.new_empty(hidden.shape if needs[0] else 0)
    with _undisturbed(hidden):
        w, b = _factors(weight, bias, dtype, rows.ALIGN)
        d_weight = w.new_zeros(w.shape, dtype=_wide(dtype)) if needs[1] else None
        d_bias = w.new_zeros(w.shape[0], dtype=_wide(dtype)) if needs[2] else None
        for part in chunks(hidden.shape[0], w.shape[0], hidden.device, dtype):
            h = hidden[part].to(dtype)
            logits = torch.nn.functional.linear(h, w, b)
            d = rows.take_gradients(logits, words, target[part], slopes[part], norms[part], smoothing, d_bias)
            if needs[0]:
                d_hidden[part] = d @ w
            if d_weight is not None:
                add_product(d_weight, d.mT, h)
            del logits, d  # before the next are made
        return d_hidden, _rounded(d_weight, weight, hidden), _rounded(d_bias, bias, hidden)


def _rounded(total: Tensor | None, like: Tensor | None, hidden: Tensor) -> Tensor:
    """Return a sum over all chunks in its parameter's type, without padding; empty if nobody asked."""
    if total is None or like is None:
        return hidden.new_empty(0)
    return total[: like.shape[0]].to(like.dtype)


def chunks(rows: int, words: int, device: torch.device, dtype: torch.dtype) -> Iterator[slice]:
    """Yield slices of the rows, as even as can be, whose logits keep to CHUNK_BYTES."""
    size = words * (dtype if device.type == "cuda" else _wide(dtype)).itemsize
    most = max(1, CHUNK_BYTES.get(device.type, CHUNK_BYTES["cpu"]) // size)
    unit = TILE if most >= TILE else 1
    count = -(-rows // (most - most % unit))
    each = -(-rows // max(1, count))
    each += -each % unit
    return (slice(i * each, min(rows, (i + 1) * each)) for i in range(-(-rows // max(1, each))))


def row_functions(hidden: Tensor, dtype: torch.dtype) -> ModuleType:
    """Return what works on rows of logits here: the module in Triton, or the one in torch."""
    if hidden.is_cuda and dtype in TRITON_DTYPES and importlib.util.find_spec("triton") is not None:
        from weft.ops.kernels import loss_triton

        return loss_triton
    from weft.ops.kernels import loss_torch

    return loss_torch


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)


def _factors(
    weight: Tensor, bias: Tensor | None, dtype: torch.dtype, align: int
) -> tuple[Tensor, Tensor | None]:
    """Return weight and bias in `dtype`, words of zeros behind them up to a multiple of `align`.

    An odd vocabulary would cost the products their fast kernels, and row functions their wide reads.
    """
    missing = -weight.shape[0] % align
    weight, bias = weight.to(dtype), None if bias is None else bias.to(dtype)
    if missing:
        weight = torch.nn.functional.pad(weight, (0, 0, 0, missing))
        bias = None if bias is None else torch.nn.functional.pad(bias, (0, missing))
    return weight, bias


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add left right to a total, the product of half-precision factors unrounded."""
    if left.dtype == total.dtype:
        total.addmm_(left, right)
    elif left.is_cuda and _adds_wide():
        torch.addmm(total, left, right, out_dtype=total.dtype, out=total)
    elif left.is_cuda:
        total += torch.mm(left, right, out_dtype=total.dtype)
    else:
        total.addmm_(left.to(total.dtype), right.to(total.dtype))


@functools.cache
def _adds_wide() -> bool:
    """Tell whether torch on this GPU adds a half-precision product to a float32 total in one call."""
    total, factor = torch.zeros(16, 16, device="cuda"), torch.zeros(16, 16, device="cuda").bfloat16()
    try:
        torch.addmm(total, factor, factor, out_dtype=torch.float32, out=total)
    except (RuntimeError, TypeError):
        return False
    return True


@contextmanager
def _undisturbed(x: Tensor) -> Iterator[None]:
    """Launch on x's device, and let autocast change no type."""
    with ExitStack() as stack:
        stack.enter_context(torch.autocast(x.device.type, enabled=False))
        if x.is_cuda:
            stack.enter_context(torch.cuda.device(x.device))
        yield
