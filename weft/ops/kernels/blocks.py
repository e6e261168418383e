"""A stack of residual blocks forward and backward: buffers, tiles and launches of the Triton kernels.

Convolutions c = 2 l and 2 l + 1 of block l are dilated by 2^l. Their weights lie stacked: v (C * D, D, TAPS),
g and bias (C * D, ...); their pasts stand one behind the other: (B, S, D), S the sum of all reaches.
"""

from __future__ import annotations

import importlib.util
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch

from weft.core.shapes import Tensor
from weft.ops.blocks import state_rows

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
_MOST_ELEMENTS = 2**31 - 1  # of a convolution's input: addresses inside it are 32 bits wide
_LONGEST_KERNEL = 2**14  # taps times input channels, held by one program
_PROGRAMS = 512  # that a sum over rows is cut into, about: a few on each multiprocessor


def why_not(x: Tensor, dtype: torch.dtype, convolutions: int, taps: int) -> str | None:
    """Return why these kernels cannot run on x in a type, or None if they can."""
    if not x.is_cuda:
        return "its input is not on a CUDA device"
    if dtype not in DTYPES:
        return f"it works in bf16, fp16 and fp32, not in {str(dtype).removeprefix('torch.')}"
    steps = max(x.shape[1], state_rows(convolutions, taps))
    if x.shape[0] * steps * x.shape[2] > _MOST_ELEMENTS:
        return f"a convolution's input of more than {_MOST_ELEMENTS:,} elements is too large for it"
    if taps * padded_width(x.shape[2]) > _LONGEST_KERNEL:
        return f"taps * width must not be above {_LONGEST_KERNEL:,}, but is {taps * x.shape[2]:,}"
    return DEVICE_REASONS[x.device.index or 0]


def _device_reason(device: int) -> str | None:
    """Return why nothing runs on this device."""
    if torch.cuda.get_device_capability(device)[0] < 8:
        return "the GPU is older than compute capability 8.0"
    return None if importlib.util.find_spec("triton") else "triton is not installed"


# Asked once, not where torch.compile would look into the asking.
DEVICE_REASONS = tuple(map(_device_reason, range(torch.cuda.device_count())))


def state_offset(c: int, taps: int) -> int:
    """Return where convolution c's part of the past begins."""
    return (taps - 1) * (2 * (2 ** (c // 2) - 1) + (c % 2) * 2 ** (c // 2))


class Tiles(NamedTuple):
    """How the products are cut: rows, channels and chunk of a convolution; of the sum over rows the same."""

    bm: int
    bn: int
    bk: int
    padded: int  # channels of the normalised weights: a multiple of bn and bk
    warps: int
    stages: int
    br: int  # rows a step of the weights' gradient
    bo: int
    bi: int
    side: int  # taps beside one another in a tile
    sum_warps: int
    sum_stages: int


def _tiles(width: int, dtype: torch.dtype) -> Tiles:
    padded = padded_width(width)
    if padded == 32:
        return Tiles(64, 32, 32, padded, 4, 3, 32, 32, 32, 4, 8, 1)
    bk = 32 if dtype == torch.float32 else 64
    return Tiles(64, 64, bk, padded, 4, 3, bk, 64, 64, 1, 4, 3)


def padded_width(width: int) -> int:
    """Return the channels of the normalised weights: a whole number of tiles."""
    return 32 if width <= 32 else -(-width // 64) * 64


def _precision(dtype: torch.dtype) -> str:
    """Return how fp32 is multiplied: as torch's convolutions do."""
    cudnn: Any = torch.backends.cudnn
    allowed = dtype != torch.float32 or cudnn.conv.fp32_precision == "tf32"
    return "tf32" if allowed else "ieee"


def _on(x: Tensor) -> AbstractContextManager[Any]:
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()


def _launch(kernel: str, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> None:
    """Launch a kernel of `convolution.py`, which is Triton source and imported when something runs."""
    from weft.ops.kernels import convolution

    launcher: Any = getattr(convolution, kernel)
    launcher[grid](*arguments, **constants)


class Problem(NamedTuple):
    """The sizes, and what every product of them is launched with."""

    batch: int
    steps: int
    width: int
    convolutions: int
    taps: int
    tiles: Tiles
    product: dict[str, Any]

    @property
    def rows(self) -> int:
        return self.batch * self.steps

    def grid(self, rows: int) -> tuple[int, int]:
        """Return the programs of a convolution."""
        return -(-rows // self.tiles.bm), -(-self.width // self.tiles.bn)


def _problem(x: Tensor, v: Tensor) -> Problem:
    batch, steps, width = x.shape
    convolutions, taps, tiles = v.shape[0] // width, v.shape[2], _tiles(width, x.dtype)
    product = {
        "D": width,
        "DP": tiles.padded,
        "TAPS": taps,
        "BM": tiles.bm,
        "BN": tiles.bn,
        "BK": tiles.bk,
        "PRECISION": _precision(x.dtype),
        "num_warps": tiles.warps,
        "num_stages": tiles.stages,
    }
    return Problem(batch, steps, width, convolutions, taps, tiles, product)


class Made(NamedTuple):
    """What forward leaves."""

    y: Tensor  # (B, T, D)
    state: Tensor  # (B, S, D)
    between: Tensor  # (C-1, B, T, D): the inputs of the second and later convolutions
    kept: Tensor  # (L, B, T, D) int8: where a block's F(x) is above zero; empty without `save`
    w: Tensor  # (C, TAPS, DP, DP): the normalised weights; tap, output, input


def run_forward(
    x: Tensor,
    v: Tensor,
    g: Tensor,
    bias: Tensor,
    past: Tensor | None,
    lengths: Tensor | None,
    seed: Tensor | None,
    dropout: float,
    save: bool,
) -> Made:
    """Run the blocks; `seed` (1,) int64: draw dropout's masks from it."""
    p, x = _problem(x, v), x.contiguous()
    past = None if past is None else past.contiguous()
    with _on(x):
        w = _normalised(v, g, x, p)
        made = _room(x, p, w, save)
        between, scale = made.between.unbind(0), 1 / (1 - dropout)
        outs, inputs = (*between, made.y), (x, *between)
        for c in range(p.convolutions):
            mine = None if past is None else past[:, state_offset(c, p.taps) :]
            second = c % 2 == 1
            _launch(
                "convolve",
                p.grid(p.rows),
                inputs[c],
                w[c],
                bias,
                mine,
                lengths,
                seed,
                inputs[c - 1] if second else None,
                outs[c],
                made.kept[c // 2] if second and save else None,
                p.rows,
                p.steps,
                2 ** (c // 2),
                c,
                0 if past is None else past.stride(0),
                dropout,
                scale,
                **p.product,
            )
        _keep(x, made, past, lengths, p)
    return made


def _room(x: Tensor, p: Problem, w: Tensor, save: bool) -> Made:
    levels = p.convolutions // 2 if save else 0
    return Made(
        torch.empty_like(x),
        x.new_empty(p.batch, state_rows(p.convolutions, p.taps), p.width),
        x.new_empty(p.convolutions - 1, *x.shape),
        x.new_empty(levels, *x.shape, dtype=torch.int8),
        w,
    )


def _normalised(v: Tensor, g: Tensor, x: Tensor, p: Problem) -> Tensor:
    """Return g v / ||v|| of every convolution in x's type, padded with zeros."""
    padded = p.tiles.padded
    w = x.new_empty(p.convolutions, p.taps, padded, padded)
    block = _power_of_two(p.taps * padded)
    rows = max(1, min(padded, 2048 // block))
    _launch(
        "normalise",
        (padded // rows, p.convolutions),
        v,
        g,
        w,
        D=p.width,
        DP=padded,
        TAPS=p.taps,
        ROWS=rows,
        BLOCK=block,
        num_warps=_row_warps(block),
    )
    return w


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _row_warps(block: int) -> int:
    """Return the warps of a program that holds a whole row."""
    return 4 if block <= 2048 else 8


def _keep(x: Tensor, made: Made, past: Tensor | None, lengths: Tensor | None, p: Problem) -> None:
    """Fill the new state."""
    longest = (p.taps - 1) * 2 ** (p.convolutions // 2 - 1)
    grid = (-(-p.batch * longest * p.width // 1024), p.convolutions)
    strides = (0 if past is None else past.stride(0), made.state.stride(0))
    _launch(
        "keep_inputs",
        grid,
        x,
        made.between,
        past,
        lengths,
        made.state,
        p.batch,
        p.steps,
        *strides,
        D=p.width,
        TAPS=p.taps,
        BLOCK=1024,
    )


class Gradients(NamedTuple):
    """Of the stacked weights, x and the past; empty where not asked for."""

    x: Tensor
    past: Tensor
    v: Tensor
    g: Tensor
    bias: Tensor


class Given(NamedTuple):
    """What forward was given and left, and what backward was given."""

    x: Tensor
    v: Tensor
    g: Tensor
    bias: Tensor
    past: Tensor | None
    lengths: Tensor | None
    y: Tensor
    between: Tensor
    kept: Tensor
    w: Tensor
    dy: Tensor
    d_state: Tensor | None
    scale: float


def run_backward(given: Given, need_past: bool) -> Gradients:
    """Return the gradients. No chance is drawn: what forward left above zero tells what dropout kept."""
    x = given.x.contiguous()
    past = None if given.past is None else given.past.contiguous()
    d_state = None if given.d_state is None else given.d_state.contiguous()
    p = _problem(x, given.v)
    given = given._replace(x=x, past=past, d_state=d_state, dy=given.dy.contiguous())
    with _on(x):
        d_past = torch.empty_like(past) if need_past and past is not None else x.new_empty(0)
        dx, dz = _pull_all(given, d_past if need_past else None, p)
        dv, dg, d_bias = _weights(given, dz, p)
    return Gradients(dx, d_past, dv, dg, d_bias)


def _pull_all(given: Given, d_past: Tensor | None, p: Problem) -> tuple[Tensor, Tensor]:
    """Return the gradients of x and of every convolution's sums (C, B, T, D)."""
    wt = given.w.mT.contiguous()  # summed over outputs now: they stand last
    carried, dz = torch.empty_like(given.y), given.y.new_empty(p.convolutions, *given.y.shape)
    inputs, tops, size = given.between.unbind(0), dz.unbind(0), given.y.numel()
    _launch(
        "begin_backward",
        (-(-size // 1024),),
        given.dy,
        given.y,
        given.kept[-1],
        carried,
        tops[-1],
        size,
        given.scale,
        BLOCK=1024,
    )
    for c in reversed(range(p.convolutions)):
        if d_past is not None:
            _pull_past(given, wt[c], tops[c], d_past, c, p)
        if c % 2 == 1:
            ends = (None, inputs[c - 1], None, tops[c - 1])
        elif c:
            ends = (carried, inputs[c - 1], given.kept[c // 2 - 1], tops[c - 1])
        else:
            ends = (carried, None, None, None)
        _pull(given, wt[c], tops[c], ends, c, p)
    return carried, dz


def _pull(given: Given, wt: Tensor, dz: Tensor, ends: tuple[Tensor | None, ...], c: int, p: Problem) -> None:
    """Pull the gradient of convolution c's sums back to its input, in place or to the sums before."""
    d_state = None if given.d_state is None else given.d_state[:, state_offset(c, p.taps) :]
    _launch(
        "pull_back",
        p.grid(p.rows),
        dz,
        wt,
        d_state,
        given.lengths,
        *ends,
        p.rows,
        p.steps,
        p.steps,
        0,
        2 ** (c // 2),
        0 if d_state is None else d_state.stride(0),
        p.steps * p.width,
        given.scale,
        **p.product,
    )


def _pull_past(given: Given, wt: Tensor, dz: Tensor, d_past: Tensor, c: int, p: Problem) -> None:
    """Pull the same gradient back to the inputs before the first step."""
    reach, at = (p.taps - 1) * 2 ** (c // 2), state_offset(c, p.taps)
    d_state = None if given.d_state is None else given.d_state[:, at:]
    rows = p.batch * reach
    _launch(
        "pull_back",
        p.grid(rows),
        dz,
        wt,
        d_state,
        given.lengths,
        None,
        None,
        None,
        d_past[:, at:],
        rows,
        p.steps,
        reach,
        -reach,
        2 ** (c // 2),
        0 if d_state is None else d_state.stride(0),
        d_past.stride(0),
        1.0,
        **p.product,
    )


def _weights(given: Given, dz: Tensor, p: Problem) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of v, g and the biases."""
    partial, partial_bias = _sums_over_rows(given, dz, p)
    made = [torch.empty_like(t) for t in (given.v, given.g, given.bias)]
    block = _power_of_two(p.taps * p.width)
    _launch(
        "finish_weights",
        (p.width, p.convolutions),
        partial,
        partial_bias,
        given.v,
        given.g,
        *made,
        partial.shape[0],
        D=p.width,
        TAPS=p.taps,
        MOST=_power_of_two(partial.shape[0]),
        BLOCK=block,
        num_warps=_row_warps(block),
    )
    return made[0], made[1], made[2]


def _sums_over_rows(given: Given, dz: Tensor, p: Problem) -> tuple[Tensor, Tensor]:
    """Return sum_m dz[m] input[m - shift] and sum_m dz[m], each in parts of some rows."""
    t, width = p.tiles, p.width
    tiles = -(-width // t.bo) * -(-width // t.bi) * -(-p.taps // t.side)
    wanted = max(1, _PROGRAMS // (tiles * p.convolutions))
    chunks = _power_of_two(-(-p.rows // (wanted * t.br)))  # few different ones: each is compiled
    splits = -(-p.rows // (chunks * t.br))
    wide = dz.new_empty(0, dtype=torch.float32)
    partial = wide.new_empty(splits, p.convolutions, width, p.taps, width)
    partial_bias = wide.new_empty(splits, p.convolutions, width)
    _launch(
        "sum_weights",
        (tiles, splits, p.convolutions),
        given.x,
        given.between,
        dz,
        given.past,
        given.lengths,
        partial,
        partial_bias,
        p.rows,
        p.steps,
        0 if given.past is None else given.past.stride(0),
        D=width,
        TAPS=p.taps,
        CHUNKS=chunks,
        BR=t.br,
        BO=t.bo,
        BI=t.bi,
        SIDE=t.side,
        PRECISION=_precision(dz.dtype),
        num_warps=t.sum_warps,
        num_stages=t.sum_stages,
    )
    return partial, partial_bias
