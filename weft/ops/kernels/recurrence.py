"""The recurrence of all time steps of a layer in one launch: `recurrence.cu`, its buffers and its products.

The input's share of the gates is one product over all steps before the launch; the gradients of weights
and biases are one product or sum each after it. What passes through memory is time first, (T, B, ...), and
each gate's units are padded to a multiple of 8.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from weft.core.shapes import Tensor
from weft.ops.kernels import cuda, plan
from weft.ops.kernels.plan import CELLS, Problem, Tiles
from weft.ops.kernels.products import (
    WAYS,
    Saved,
    Size,
    by_direction,
    columns_of_weights,
    input_gates,
    input_gradient,
    layer_size,
    pad_units,
    rows_of_weights,
    tf32_products,
    weight_gradients,
)

SOURCE = Path(__file__).with_name("recurrence.cu")
DTYPES = {torch.bfloat16: 0, torch.float16: 1, torch.float32: 2}
UNSAID = -1  # every bit set: nothing was written here yet


def why_not(x: Tensor, dtype: torch.dtype, units: int, directions: int, cell: str) -> str | None:
    """Return why this kernel cannot run a layer on x in a type, or None if it can."""
    if not x.is_cuda:
        return "its input is not on a CUDA device"
    if dtype not in DTYPES:
        return f"it works in bf16, fp16 and fp32, not in {str(dtype).removeprefix('torch.')}"
    layers: Any = torch.backends.cudnn.rnn
    if dtype == torch.float32 and layers.fp32_precision != "tf32":
        return "fp32 is multiplied as tf32, which torch.backends.cudnn.rnn.fp32_precision forbids"
    device = _index(x)
    return device_reason(device) or size_reason(cell, dtype, units, directions, device)


def _index(x: Tensor) -> int:
    """Return the number of x's GPU."""
    return x.device.index or 0


def _constant(f: Callable[..., Any]) -> Callable[..., Any]:
    """Let torch.compile call f instead of tracing it, as torch.compiler.assume_constant_result does.

    That one loads all of torch.compile, which takes seconds and is in few programs' way.
    """
    f._dynamo_marked_constant = True  # type: ignore[attr-defined]  # torch looks for it by this name
    return f


@functools.cache
@_constant
def size_reason(cell: str, dtype: torch.dtype, units: int, directions: int, device: int) -> str | None:
    """Return why a layer of this size does not fit; where one row of tiles does, any batch does."""
    for backward in (False, True):
        if plan.choose(_problem(cell, backward, dtype, units, 1, directions, device)) is None:
            return f"{units} units do not fit on this GPU"
    return None


@functools.cache
@_constant
def device_reason(device: int) -> str | None:
    """Return why nothing runs on this device."""
    if torch.cuda.get_device_capability(device)[0] < 8:
        return "the GPU is older than compute capability 8.0"
    return cuda.why_not()


def _problem(
    cell: str, backward: bool, dtype: torch.dtype, units: int, batch: int, directions: int, device: int
) -> Problem:
    about = torch.cuda.get_device_properties(device)
    room = about.shared_memory_per_block_optin
    rows = plan.rounded(batch)
    return Problem(cell, backward, DTYPES[dtype], units, rows, directions, about.multi_processor_count, room)


def _unsaid(like: Tensor, *shape: int, wait: bool) -> Tensor:
    """Return new memory; where blocks wait for it to be written, every bit is set."""
    made = like.new_empty(shape)
    if wait and made.numel():
        made.view(torch.int32 if made.dtype == torch.float32 else torch.int16).fill_(UNSAID)
    return made


def _pointer(t: Tensor | None, offset: int = 0) -> int:
    return 0 if t is None or t.numel() == 0 else t.data_ptr() + offset * t.element_size()


class Side(NamedTuple):
    """One direction, as the source's structure of this name: addresses, and whether it reads backwards."""

    w: int
    b: int
    gates: int
    extra: int
    cells: int
    y: int
    told: int
    told_first: int
    h0: int
    c0: int
    hn: int
    cn: int
    dy: int
    dx: int
    dh0: int
    dc0: int
    reverse: int


class Rest(NamedTuple):
    """What both directions share: the rest of the source's `Arguments`; strides in elements."""

    lengths: int
    batch: int
    steps: int
    groups: int
    passes: int
    save: int
    gates_t: int
    gates_b: int
    y_row: int
    dy_t: int = 0
    dy_b: int = 0
    told_row: int = 0
    dx_row: int = 0


class Cut(NamedTuple):
    """One pass of a layer, and how it is cut into blocks."""

    problem: Problem
    tiles: Tiles
    groups: int
    passes: int

    @property
    def waits(self) -> bool:
        """Tell whether blocks wait for what others say."""
        return self.tiles.blocks > 1


def _cut(x: Tensor, size: Size, cell: str, backward: bool, tiles: Tiles | None) -> Cut:
    problem = _problem(cell, backward, x.dtype, size.units, size.batch, size.directions, _index(x))
    tiles = tiles or plan.choose(problem)
    assert tiles is not None, "why_not was not asked"
    return Cut(problem, tiles, *plan.groups_and_passes(problem, tiles))


def _launch(cut: Cut, sides: list[Side], rest: Rest, device: int) -> None:
    """Launch one pass over all steps."""
    tiles = cut.tiles
    kernel = cuda.load(SOURCE, "recurrence", plan.constants(cut.problem, tiles), tiles.threads, device)
    words = (*sides[0], *sides[-1], *rest)
    kernel.launch(tiles.blocks * cut.groups * len(sides), words, together=cut.waits)


def run_forward(
    x: Tensor,
    weights: list[Tensor],
    h0: Tensor | None,
    c0: Tensor | None,
    lengths: Tensor | None,
    cell: str,
    ways: str,
    save: bool,
    tiles: Tiles | None = None,
) -> tuple[Saved, Tensor, Tensor]:
    """Run a layer; return what it leaves, and the final states (dirs, B, U)."""
    size = layer_size(x, weights, cell, ways)
    cut = _cut(x, size, cell, False, tiles)
    with tf32_products(x.dtype), torch.cuda.device(x.device):
        saved = _room(x, input_gates(x, weights, size), size, cell, save, cut.waits)
        hn = x.new_empty(size.directions, size.batch, size.units)
        cn = torch.empty_like(hn) if cell == "lstm" else x.new_empty(0)
        h0, c0 = pad_units(h0, size), pad_units(c0, size)
        each = by_direction([w.contiguous() for w in weights], size)
        w_hh = [rows_of_weights(w[1], size) for w in each]
        told = _told(x, saved, cut, h0 is not None and lengths is not None, ways)
        sides = [
            _forward_side(d, reverse, w_hh[d], each[d][3:], saved, told[d], (h0, c0, hn, cn), size)
            for d, reverse in enumerate(WAYS[ways])
        ]
        strides = (saved.gates.stride(0), saved.gates.stride(1), size.directions * size.row)
        rest = Rest(_pointer(lengths), size.batch, size.steps, cut.groups, cut.passes, int(save), *strides)
        _launch(cut, sides, rest, _index(x))
    return saved, hn, cn


def _room(x: Tensor, gates: Tensor, size: Size, cell: str, save: bool, waits: bool) -> Saved:
    """Return memory for what forward leaves; what is not needed is empty, each a tensor of its own."""
    shape, dirs = (size.steps, size.batch), size.directions
    y = _unsaid(x, *shape, dirs * size.row, wait=waits)
    whole = (dirs, *shape, size.row)
    cells = x.new_empty(whole if cell == "lstm" and save else (0,), dtype=torch.float32)
    extra = x.new_empty(whole if cell == "gru_after" and save else (0,))
    first = _unsaid(x, *whole, wait=waits) if cell == "gru_before" else x.new_empty(0)
    return Saved(y, gates, cells, extra, first)


def _told(x: Tensor, saved: Saved, cut: Cut, starts_late: bool, ways: str) -> list[Tensor]:
    """Return where each direction tells h: in y, but elsewhere if rows that wait for their end tell h0."""
    return [
        _unsaid(x, *saved.y.shape, wait=True) if cut.waits and reverse and starts_late else saved.y
        for reverse in WAYS[ways]
    ]


def _forward_side(
    d: int,
    reverse: bool,
    w_hh: Tensor,
    b_hh: list[Tensor],
    saved: Saved,
    told: Tensor,
    states: tuple[Tensor | None, ...],
    size: Size,
) -> Side:
    whole = d * size.steps * size.batch * size.row
    return Side(
        w=_pointer(w_hh),
        b=_pointer(b_hh[0]) if b_hh else 0,
        gates=_pointer(saved.gates, d * size.gates * size.row),
        extra=_pointer(saved.extra, whole),
        cells=_pointer(saved.cells, whole),
        y=_pointer(saved.y, d * size.row),
        told=_pointer(told, d * size.row),
        told_first=_pointer(saved.first, whole),
        **_state_pointers(states, d, size),
        dy=0,
        dx=0,
        dh0=0,
        dc0=0,
        reverse=int(reverse),
    )


def _state_pointers(states: tuple[Tensor | None, ...], d: int, size: Size) -> dict[str, int]:
    """Return where direction d has its initial h and c, padded, and its final ones."""
    whole, final = d * size.batch * size.row, d * size.batch * size.units
    names = ("h0", "c0", "hn", "cn")
    return dict(zip(names, map(_pointer, states, (whole, whole, final, final)), strict=True))


class Gradients(NamedTuple):
    """What backward makes; a weight's gradient has its shape."""

    x: Tensor
    weights: list[Tensor]
    h0: Tensor  # (dirs, B, U), or empty
    c0: Tensor


def run_backward(
    dy: Tensor | None,
    dhn: Tensor | None,
    dcn: Tensor | None,
    x: Tensor,
    weights: list[Tensor],
    h0: Tensor | None,
    c0: Tensor | None,
    lengths: Tensor | None,
    saved: Saved,
    cell: str,
    ways: str,
    tiles: Tiles | None = None,
    need_x: bool = True,
) -> Gradients:
    """Return the gradients of a layer's inputs, weights and initial states.

    dy is (T, B, dirs * row) by strides; what stands behind each direction's units is not read.
    """
    size = layer_size(x, weights, cell, ways)
    cut, dirs = _cut(x, size, cell, True, tiles), size.directions
    with tf32_products(x.dtype), torch.cuda.device(x.device):
        made = _backward_room(x, h0, c0, size, cell, cut.waits)
        dy = dy if dy is None or dy.stride(2) == 1 else dy.contiguous()
        dhn, dcn = (None if leaf is None else leaf.contiguous() for leaf in (dhn, dcn))
        h0, c0 = pad_units(h0, size), pad_units(c0, size)
        w_hh = [columns_of_weights(w[1], size) for w in by_direction(weights, size)]
        sides = [
            _backward_side(d, reverse, w_hh[d], saved, made, dy, (h0, c0, dhn, dcn), size)
            for d, reverse in enumerate(WAYS[ways])
        ]
        strides = (saved.gates.stride(0), saved.gates.stride(1), dirs * size.row)
        dy_strides = (0, 0) if dy is None else (dy.stride(0), dy.stride(1))
        counts = (size.batch, size.steps, cut.groups, cut.passes, 1)
        rows = (made.told.shape[2], made.dx.shape[2])
        _launch(cut, sides, Rest(_pointer(lengths), *counts, *strides, *dy_strides, *rows), _index(x))
        dx = input_gradient(made.dx, weights, size, need_x)
        dw = weight_gradients(x, weights, h0, lengths, saved, made.told, made.dx, size, cell, ways)
    return Gradients(dx, dw, made.dh0, made.dc0)


class Made(NamedTuple):
    """What the backward pass writes."""

    told: Tensor  # (T, B, dirs * told gates * row): gradients that meet W_hh
    first: Tensor  # gru reset before: gradients of the candidate, as they are told
    dx: Tensor  # (T, B, dirs * G * row): gradients of the input's share; `told` where that is the same
    dh0: Tensor  # (dirs, B, U), or empty
    dc0: Tensor


def _backward_room(
    x: Tensor, h0: Tensor | None, c0: Tensor | None, size: Size, cell: str, waits: bool
) -> Made:
    shape, dirs = (size.steps, size.batch), size.directions
    told = _unsaid(x, *shape, dirs * CELLS[cell].told * size.row, wait=waits)
    first = (
        _unsaid(x, dirs, *shape, size.row, wait=True) if cell == "gru_before" and waits else x.new_empty(0)
    )
    dx = x.new_empty(*shape, dirs * 3 * size.row) if cell.startswith("gru") else told
    states = (x.new_empty(0 if t is None else (dirs, size.batch, size.units)) for t in (h0, c0))
    return Made(told, first, dx, *states)


def _backward_side(
    d: int,
    reverse: bool,
    w_hh: Tensor,
    saved: Saved,
    made: Made,
    dy: Tensor | None,
    states: tuple[Tensor | None, ...],
    size: Size,
) -> Side:
    whole, final = d * size.steps * size.batch * size.row, d * size.batch * size.units
    told, dx = (t.shape[2] // size.directions for t in (made.told, made.dx))
    return Side(
        w=_pointer(w_hh),
        b=0,
        gates=_pointer(saved.gates, d * size.gates * size.row),
        extra=_pointer(saved.extra, whole),
        cells=_pointer(saved.cells, whole),
        y=_pointer(saved.y, d * size.row),
        told=_pointer(made.told, d * told),
        told_first=_pointer(made.first, whole),
        **_state_pointers(states, d, size),
        dy=_pointer(dy, d * size.row),
        dx=_pointer(made.dx, d * dx),
        dh0=_pointer(made.dh0, final),
        dc0=_pointer(made.dc0, final),
        reverse=int(reverse),
    )
