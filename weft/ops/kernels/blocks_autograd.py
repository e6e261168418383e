"""The stack of residual blocks as an operation of torch: seen by autograd, torch.compile and CUDA graphs.

Annotations here are no strings: torch reads them when it makes the operations' signatures.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from weft.ops.blocks import state_rows
from weft.ops.kernels.blocks import Given, padded_width, run_backward, run_forward

Forward = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


def residual_stack(
    x: Tensor,
    past: Tensor | None,
    lengths: Tensor | None,
    seed: Tensor | None,
    dropout: float,
    weights: Sequence[tuple[Tensor, Tensor, Tensor]],
) -> tuple[Tensor, Tensor]:
    """Return the outputs (B, T, D) and the new past (B, S, D); `weights` holds v, g, bias of each."""
    flat = tuple(leaf for w in weights for leaf in w)
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, past, *flat)):
        return _Stack.apply(x, past, lengths, seed, dropout, *flat)
    y, state, *_ = _forward(x, *_stacked(flat), past, lengths, seed, dropout, False)
    return y, state


def _stacked(flat: tuple[Tensor, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """Return v (C D, D, K), g and bias of all convolutions, one launch each."""
    return torch.cat(flat[::3]), torch.cat(flat[1::3]), torch.cat(flat[2::3])


class _Stack(torch.autograd.Function):
    """All blocks' forward and backward pass; it can be differentiated once."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        past: Tensor | None,
        lengths: Tensor | None,
        seed: Tensor | None,
        dropout: float,
        *flat: Tensor,
    ) -> tuple[Tensor, Tensor]:
        stacked = _stacked(flat)
        y, state, *saved = _forward(x, *stacked, past, lengths, seed, dropout, True)
        ctx.scale, ctx.convolutions = (1.0 if seed is None else 1 / (1 - dropout)), len(flat) // 3
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, *stacked, past, lengths, y, *saved)
        return y, state

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        x, v, g, bias, past, lengths, y, *saved = ctx.saved_tensors
        dy = torch.zeros_like(y) if grads[0] is None else grads[0]
        need_past = past is not None and ctx.needs_input_grad[1]
        given = (x, v, g, bias, past, lengths, y, *saved, dy, grads[1])
        dx, d_past, *stacked = _backward(*given, ctx.scale, need_past)
        each = zip(*(t.chunk(ctx.convolutions) for t in stacked), strict=True)
        return dx, d_past if need_past else None, None, None, None, *(leaf for w in each for leaf in w)


@torch.library.custom_op("weft::residual_blocks_forward", mutates_args=())
def _forward(
    x: Tensor,
    v: Tensor,
    g: Tensor,
    bias: Tensor,
    past: Tensor | None,
    lengths: Tensor | None,
    seed: Tensor | None,
    dropout: float,
    save: bool,
) -> Forward:
    return run_forward(x, v, g, bias, past, lengths, seed, dropout, save)


@_forward.register_fake
def _(
    x: Tensor,
    v: Tensor,
    g: Tensor,
    bias: Tensor,
    past: Tensor | None,
    lengths: Tensor | None,
    seed: Tensor | None,
    dropout: float,
    save: bool,
) -> Forward:
    (batch, steps, width), taps = x.shape, v.shape[2]
    convolutions = v.shape[0] // width
    padded = padded_width(width)
    return (
        x.new_empty(x.shape),
        x.new_empty(batch, state_rows(convolutions, taps), width),
        x.new_empty(convolutions - 1, batch, steps, width),
        x.new_empty(convolutions // 2 if save else 0, batch, steps, width, dtype=torch.int8),
        x.new_empty(convolutions, taps, padded, padded),
    )


@torch.library.custom_op("weft::residual_blocks_backward", mutates_args=())
def _backward(
    x: Tensor,
    v: Tensor,
    g: Tensor,
    bias: Tensor,
    past: Tensor | None,
    lengths: Tensor | None,
    y: Tensor,
    between: Tensor,
    kept: Tensor,
    w: Tensor,
    dy: Tensor,
    d_state: Tensor | None,
    scale: float,
    need_past: bool,
) -> Forward:
    given = Given(x, v, g, bias, past, lengths, y, between, kept, w, dy, d_state, scale)
    return run_backward(given, need_past)


@_backward.register_fake
def _(
    x: Tensor,
    v: Tensor,
    g: Tensor,
    bias: Tensor,
    past: Tensor | None,
    lengths: Tensor | None,
    y: Tensor,
    between: Tensor,
    kept: Tensor,
    w: Tensor,
    dy: Tensor,
    d_state: Tensor | None,
    scale: float,
    need_past: bool,
) -> Forward:
    rows = state_rows(v.shape[0] // x.shape[2], v.shape[2])
    d_past = x.new_empty(x.shape[0], rows, x.shape[2]) if need_past else x.new_empty(0)
    return (
        x.new_empty(x.shape),
        d_past,
        v.new_empty(v.shape),
        g.new_empty(g.shape),
        bias.new_empty(bias.shape),
    )
