"""The temporal convolutional network's training step, against the same blocks made of torch's parts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn

from weft import ops
from weft.bench.case import Case, Side, Sides, compiled
from weft.core.sequences import Sequences
from weft.core.shapes import Tensor
from weft.nn.families import families
from weft.nn.families.tcn import TCNConfig


class Shape(NamedTuple):
    """Batch, steps, width, levels, taps."""

    batch: int
    steps: int
    width: int
    levels: int
    taps: int

    def __str__(self) -> str:
        return f"B{self.batch} T{self.steps} width {self.width} levels {self.levels} K{self.taps}"


SHAPES = {
    "cuda": [Shape(64, 784, 25, 8, 7), Shape(16, 80, 600, 4, 3)],
    "cpu": [Shape(8, 196, 25, 4, 7), Shape(4, 80, 200, 4, 3)],
    "quick": [Shape(2, 9, 5, 2, 3)],
}
DTYPES = {"cuda": ("tf32", "bf16"), "cpu": ("fp32",), "quick": ("fp32",)}
DROPOUT = 0.1


class TorchBlock(nn.Module):
    """A residual block of torch's parts: weight-normed Conv1d, padded in front, relu, dropout, twice."""

    def __init__(self, width: int, taps: int, dilation: int):
        super().__init__()
        convolutions = (nn.Conv1d(width, width, taps, dilation=dilation) for _ in range(2))
        self.convolutions = nn.ModuleList(map(nn.utils.parametrizations.weight_norm, convolutions))
        self.reach, self.dropout = (taps - 1) * dilation, nn.Dropout(DROPOUT)

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for convolution in self.convolutions:
            y = convolution(nn.functional.pad(y, (self.reach, 0)))
            y = self.dropout(torch.relu(y))
        return torch.relu(x + y)


class TorchStack(nn.Sequential):
    """The blocks one after another, on (B, T, D)."""

    def __init__(self, shape: Shape):
        super().__init__(*(TorchBlock(shape.width, shape.taps, 2**level) for level in range(shape.levels)))

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input.mT).mT


def cases(scale: str) -> Iterator[Case]:
    """Yield the cases for "cuda", "cpu" or "quick"."""
    for shape in SHAPES[scale]:
        for dtype in DTYPES[scale]:
            draw = partial(_draw, shape)
            yield Case(f"TCN {shape}", dtype, draw, partial(_sides, shape), headline=True)


def _draw(shape: Shape) -> tuple[Tensor, ...]:
    return (torch.rand(shape.batch, shape.steps, shape.width),)


def _sides(shape: Shape, device: torch.device) -> Sides:
    config = TCNConfig(layers=shape.levels, kernel=shape.taps, dropout=DROPOUT)
    ours = families["tcn"].backbone(shape.width, config, None)
    assert isinstance(ours, nn.Module)
    _hold_relus(ours)
    eager, peer = TorchStack(shape), TorchStack(shape)
    timed = [_weft_side(ours), _torch_side("eager", eager, eager)]
    if device.type == "cuda":
        timed.append(_torch_side("torch.compile", peer, compiled(peer)))
    return Sides(timed, _reference_side(copy.deepcopy(ours)))


def _hold_relus(network: Any) -> None:
    """Put every sum far from zero, every other channel's below it.

    The gate compares gradients, and a relu's slope jumps at zero: where rounding puts a sum on the other
    side, whoever rounds, they differ by more than rounding. The time does not depend on the values.
    """
    for convolution in (c for block in network.blocks for c in (block.first, block.second)):
        with torch.no_grad():
            convolution.g.fill_(0.03)
            convolution.bias.fill_(1.0)
            convolution.bias[1::2] = -1.0


def _weft_side(network: nn.Module) -> Side:
    return Side("weft", network, lambda x: (network(Sequences.full(x))[0].data,))


def _torch_side(name: str, network: nn.Module, run: Callable[..., Tensor]) -> Side:
    return Side(name, network, lambda x: (run(x),))


def _reference_side(network: Any) -> Side:
    """Call the blocks' equation with the reference convolution, without dropout."""

    def convolve(convolution: Any, x: Tensor) -> Tensor:
        weight, dilation = convolution.weight(), convolution.dilation
        return torch.relu(ops.causal_conv(x, weight, convolution.bias, dilation, backend="reference"))

    def call(x: Tensor) -> tuple[Tensor, ...]:
        for block in network.blocks:
            x = torch.relu(x + convolve(block.second, convolve(block.first, x)))
        return (x,)

    return Side("reference", network, call)
