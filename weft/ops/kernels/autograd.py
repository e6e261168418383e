"""The fused recurrence as an operation of torch: seen by autograd, torch.compile and CUDA graphs.

Annotations here are no strings: torch reads them when it makes the operations' signatures.
"""

from typing import Any

import torch
from torch import Tensor

from weft.ops.kernels.products import WAYS, Saved, input_gates_like, layer_size
from weft.ops.kernels.recurrence import run_backward, run_forward

Forward = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def recurrence(
    x: Tensor,
    weights: list[Tensor],
    h0: Tensor | None,
    c0: Tensor | None,
    lengths: Tensor | None,
    cell: str,
    ways: str,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the outputs (B, T, dirs * U) and the final states (dirs, B, U); c is empty but for lstm."""
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, h0, c0, *weights)):
        y, hn, cn = _Recurrence.apply(x, h0, c0, lengths, cell, ways, *weights)
    else:
        y, *_, hn, cn = (_forward if _watched(x) else _forward_alone)(
            x, weights, h0, c0, lengths, cell, ways, False
        )
    return _visible(y, len(WAYS[ways]), weights[1].shape[1]), hn, cn


class _Recurrence(torch.autograd.Function):
    """A layer's forward and backward pass; it can be differentiated once."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        h0: Tensor | None,
        c0: Tensor | None,
        lengths: Tensor | None,
        cell: str,
        ways: str,
        *weights: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        forward = _forward if _watched(x) else _forward_alone
        y, gates, cells, extra, first, hn, cn = forward(x, [*weights], h0, c0, lengths, cell, ways, True)
        ctx.cell, ctx.ways = cell, ways
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, h0, c0, lengths, y, gates, cells, extra, first, *weights)
        return y, hn, cn

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        x, h0, c0, lengths, y, gates, cells, extra, first, *weights = ctx.saved_tensors
        need_x, saved = ctx.needs_input_grad[0], (y, gates, cells, extra, first)
        inputs = (x, weights, h0, c0, lengths)
        backward: Any = _backward if _watched(x) else _backward_alone
        dx, dh0, dc0, *dw = backward(*grads, *inputs, *saved, ctx.cell, ctx.ways, need_x)
        starts = (None if h0 is None else dh0, None if c0 is None else dc0)
        return dx if need_x else None, *starts, None, None, None, *dw


def _watched(x: Tensor) -> bool:
    """Tell whether a pass must be an operation of torch.

    torch.compile, a tensor that only stands for one, and a second differentiation must meet one; anyone else
    would lose more time to it on the host than a short layer takes on the GPU.
    """
    return torch.compiler.is_compiling() or torch.is_grad_enabled() or type(x) is not Tensor


def _visible(y: Tensor, directions: int, units: int) -> Tensor:
    """Return (T, B, dirs * row) as (B, T, dirs * U)."""
    if y.shape[2] != directions * units:
        y = y.unflatten(2, (directions, -1))[..., :units].flatten(2)
    return y.transpose(0, 1)


def _forward_alone(
    x: Tensor,
    weights: list[Tensor],
    h0: Tensor | None,
    c0: Tensor | None,
    lengths: Tensor | None,
    cell: str,
    ways: str,
    save: bool,
) -> Forward:
    saved, hn, cn = run_forward(x, weights, h0, c0, lengths, cell, ways, save)
    return saved.y, saved.gates, saved.cells, saved.extra, saved.first, hn, cn


_forward = torch.library.custom_op("weft::recurrence_forward", _forward_alone, mutates_args=())


@_forward.register_fake
def _(
    x: Tensor,
    weights: list[Tensor],
    h0: Tensor | None,
    c0: Tensor | None,
    lengths: Tensor | None,
    cell: str,
    ways: str,
    save: bool,
) -> Forward:
    size = layer_size(x, weights, cell, ways)
    shape, wide = (size.steps, size.batch, size.row), x.new_empty(0, dtype=torch.float32)
    cells = wide.new_empty(size.directions, *shape) if cell == "lstm" and save else wide
    extra = x.new_empty(size.directions, *shape) if cell == "gru_after" and save else x.new_empty(0)
    first = x.new_empty(size.directions, *shape) if cell == "gru_before" else x.new_empty(0)
    hn = x.new_empty(size.directions, size.batch, size.units)
    cn = torch.empty_like(hn) if cell == "lstm" else x.new_empty(0)
    y = x.new_empty(size.steps, size.batch, size.directions * size.row)
    return y, input_gates_like(x, size), cells, extra, first, hn, cn


def _backward_alone(
    dy: Tensor | None,
    dhn: Tensor | None,
    dcn: Tensor | None,
    x: Tensor,
    weights: list[Tensor],
    h0: Tensor | None,
    c0: Tensor | None,
    lengths: Tensor | None,
    y: Tensor,
    gates: Tensor,
    cells: Tensor,
    extra: Tensor,
    first: Tensor,
    cell: str,
    ways: str,
    need_x: bool,
) -> list[Tensor]:
    saved = Saved(y, gates, cells, extra, first)
    made = run_backward(dy, dhn, dcn, x, weights, h0, c0, lengths, saved, cell, ways, None, need_x)
    return [made.x, made.h0, made.c0, *made.weights]


_backward = torch.library.custom_op("weft::recurrence_backward", _backward_alone, mutates_args=())


@_backward.register_fake
def _(
    dy: Tensor | None,
    dhn: Tensor | None,
    dcn: Tensor | None,
    x: Tensor,
    weights: list[Tensor],
    h0: Tensor | None,
    c0: Tensor | None,
    lengths: Tensor | None,
    y: Tensor,
    gates: Tensor,
    cells: Tensor,
    extra: Tensor,
    first: Tensor,
    cell: str,
    ways: str,
    need_x: bool,
) -> list[Tensor]:
    states = [x.new_empty(0) if t is None else torch.empty_like(t) for t in (h0, c0)]
    d_input = x.new_empty(x.shape[1], x.shape[0], x.shape[2]).transpose(0, 1) if need_x else x.new_empty(0)
    return [d_input, *states, *(w.new_empty(w.shape) for w in weights)]
