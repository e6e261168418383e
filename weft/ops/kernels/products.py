"""What surrounds the recurrence: the products and sums over all steps at once, before and after it.

What passes through memory is time first, (T, B, ...), and each gate's units are padded to a multiple of 8.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch

from weft.core.shapes import Tensor
from weft.ops.kernels.plan import CELLS, padded

WAYS = {"forward": (False,), "backward": (True,), "both": (False, True)}  # which way each direction reads


class Size(NamedTuple):
    """The sizes of a layer."""

    batch: int
    steps: int
    inputs: int
    units: int
    directions: int
    gates: int

    @property
    def row(self) -> int:
        """Return the units of a row in memory."""
        return padded(self.units)


class Saved(NamedTuple):
    """What forward leaves: y (T, B, dirs * row), and for each direction (T, B, row) the rest."""

    y: Tensor
    gates: Tensor  # (T, B, dirs * G * row) after their nonlinearities
    cells: Tensor  # lstm: c in fp32
    extra: Tensor  # gru reset after: W_hn h + b_hn
    first: Tensor  # gru reset before: r * h


def layer_size(x: Tensor, weights: list[Tensor], cell: str, ways: str) -> Size:
    """Return the sizes of the layer that these weights make."""
    batch, steps, inputs = x.shape
    return Size(batch, steps, inputs, weights[1].shape[1], len(WAYS[ways]), CELLS[cell].gates)


def by_direction(weights: list[Tensor], size: Size) -> list[list[Tensor]]:
    each = len(weights) // size.directions
    return [weights[i : i + each] for i in range(0, len(weights), each)]


def _pad_gates(w: Tensor, size: Size) -> Tensor:
    """Return (G * U, ...) as (G * row, ...), zeros behind each gate's units."""
    if size.row == size.units:
        return w
    split = w.view(size.gates, size.units, -1)
    return torch.nn.functional.pad(split, (0, 0, 0, size.row - size.units)).view(-1, *w.shape[1:])


def _cut_gates(g: Tensor, size: Size) -> Tensor:
    """Return (G * row, ...) as (G * U, ...)."""
    if size.row == size.units:
        return g
    return g.view(size.gates, size.row, *g.shape[1:])[:, : size.units].reshape(-1, *g.shape[1:])


def pad_units(h: Tensor | None, size: Size) -> Tensor | None:
    """Return states (dirs, B, U) as (dirs, B, row)."""
    if h is None:
        return None
    return torch.nn.functional.pad(h, (0, size.row - size.units)).contiguous()


def rows_of_weights(w_hh: Tensor, size: Size) -> Tensor:
    """Return W_hh (G * U, U) with rows padded to 16 bytes, as forward reads it."""
    if size.row == size.units:
        return w_hh if w_hh.data_ptr() % 16 == 0 else w_hh.clone()
    return torch.nn.functional.pad(w_hh, (0, size.row - size.units))


def columns_of_weights(w_hh: Tensor, size: Size) -> Tensor:
    """Return W_hh transposed (U, G, row), as backward reads it."""
    turned = w_hh.reshape(size.gates, size.units, size.units).permute(2, 0, 1)
    return torch.nn.functional.pad(turned, (0, size.row - size.units)).contiguous()


@contextmanager
def tf32_products(dtype: torch.dtype) -> Iterator[None]:
    """Multiply fp32 as tf32, as cuDNN's recurrences do."""
    products = torch.backends.cuda.matmul
    before = products.fp32_precision  # `allow_tf32` refuses to be read where a program has set this
    products.fp32_precision = "tf32" if dtype == torch.float32 else before
    try:
        yield
    finally:
        products.fp32_precision = before


def _input_weights(weights: list[Tensor], size: Size) -> Tensor:
    """Return W_ih of all directions (dirs * G * row, D)."""
    parts = [_pad_gates(w[0], size) for w in by_direction(weights, size)]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def input_gates(x: Tensor, weights: list[Tensor], size: Size) -> Tensor:
    """Return W_ih x + b_ih of all steps as (T, B, dirs * G * row); beneath it may be batch first."""
    w_ih = _input_weights(weights, size)
    each = by_direction(weights, size)
    bias = None if len(each[0]) == 2 else torch.cat([_pad_gates(w[2], size) for w in each])
    if not _lies_time_first(x):
        return torch.nn.functional.linear(x, w_ih, bias).transpose(0, 1)
    timed = x.transpose(0, 1)
    return torch.nn.functional.linear(timed.flatten(0, 1), w_ih, bias).unflatten(0, timed.shape[:2])


def _lies_time_first(x: Tensor) -> bool:
    """Tell whether x's rows follow one another time first: the outputs of a layer beneath, maybe padded."""
    timed = x.transpose(0, 1)
    return timed.is_contiguous() or timed.stride(0) == timed.shape[1] * timed.stride(1)


def input_gates_like(x: Tensor, size: Size) -> Tensor:
    """Return memory as `_input_gates` lays it out."""
    width = size.directions * size.gates * size.row
    if _lies_time_first(x):
        return x.new_empty(size.steps, size.batch, width)
    return x.new_empty(size.batch, size.steps, width).transpose(0, 1)


def input_gradient(dx: Tensor, weights: list[Tensor], size: Size, needed: bool) -> Tensor:
    """Return the gradient of x (B, T, D), empty if nobody asks."""
    if not needed:
        return dx.new_empty(0)
    return (dx.flatten(0, 1) @ _input_weights(weights, size)).unflatten(0, dx.shape[:2]).transpose(0, 1)


def weight_gradients(
    x: Tensor,
    weights: list[Tensor],
    h0: Tensor | None,
    lengths: Tensor | None,
    saved: Saved,
    told: Tensor,
    dx: Tensor,
    size: Size,
    cell: str,
    ways: str,
) -> list[Tensor]:
    """Return the gradients of all weights: products and sums over all steps."""
    rows, inputs = dx.flatten(0, 1), _timed_inputs(x, lengths).flatten(0, 1)
    grads: list[Tensor] = []
    for d, reverse in enumerate(WAYS[ways]):
        mine = rows[:, d * size.gates * size.row : (d + 1) * size.gates * size.row]
        start = None if h0 is None else h0[d]
        dw_hh, db_hn = _recurrent_weight(start, lengths, saved, told, dx, size, cell, d, reverse)
        dw_ih = _cut_gates(mine.mT @ inputs, size)
        grads += [dw_ih, _cut_gates(dw_hh[:, : size.units], size).contiguous()]
        if len(weights) > 2 * size.directions:
            db = _cut_gates(_column_sums(mine), size)
            grads += [
                db,
                db.clone() if db_hn is None else torch.cat([db[: 2 * size.units], db_hn[: size.units]]),
            ]
    return grads


def _timed_inputs(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Return x time first, zeros in the padding: a gradient of zero there does not undo a NaN."""
    timed = x.transpose(0, 1)
    if lengths is None:
        return timed
    padding = torch.arange(timed.shape[0], device=x.device).unsqueeze(1) >= lengths
    return timed.masked_fill(padding.unsqueeze(2), 0)


def _column_sums(rows: Tensor) -> Tensor:
    """Return the sum over all rows, by a product with ones: one pass at the speed of memory."""
    return rows.new_ones(1, rows.shape[0]).mm(rows)[0]


def _recurrent_weight(
    start: Tensor | None,
    lengths: Tensor | None,
    saved: Saved,
    told: Tensor,
    dx: Tensor,
    size: Size,
    cell: str,
    d: int,
    reverse: bool,
) -> tuple[Tensor, Tensor | None]:
    """Return dW_hh (G * row, row), and the gradient of b_hn where it is not that of b_in."""
    row = size.row
    y = saved.y[..., d * row : (d + 1) * row]
    if cell == "gru_before":
        gates = dx[..., d * 3 * row : (d + 1) * 3 * row]
        dw_rz = _sum_over_steps(gates[..., : 2 * row], y, start, lengths, reverse)
        dw_n = gates[..., 2 * row :].reshape(-1, row).mT @ saved.first[d].view(-1, row)
        return torch.cat([dw_rz, dw_n]), None
    width = size.gates * row
    gates = told[..., d * width : (d + 1) * width]
    db_hn = _column_sums(gates[..., 2 * row :].flatten(0, 1)) if cell == "gru_after" else None
    return _sum_over_steps(gates, y, start, lengths, reverse), db_hn


def _sum_over_steps(
    gates: Tensor, y: Tensor, h0: Tensor | None, lengths: Tensor | None, reverse: bool
) -> Tensor:
    """Return sum_t dgates_t h_before^T: h_before is y a step earlier, at a row's first step h0."""
    now, before = (gates[:-1], y[1:]) if reverse else (gates[1:], y[:-1])
    total = now.flatten(0, 1).mT @ before.flatten(0, 1)
    if h0 is None:
        return total
    if not reverse:
        begin = gates[0]
    elif lengths is None:
        begin = gates[-1]
    else:
        begin = gates[(lengths - 1).clamp(min=0), torch.arange(gates.shape[1], device=gates.device)]
    return torch.addmm(total, begin.mT, h0)
