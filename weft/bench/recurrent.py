"""Recurrent layers: RNN, LSTM, GRU in both conventions, against torch.nn (cuDNN) and the eager loop."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn

import weft.nn
from weft import ops
from weft.bench.case import Case, Side, Sides
from weft.core.shapes import Tensor
from weft.ops.weights import RecurrentWeights


class Shape(NamedTuple):
    """Batch, steps, inputs, units, layers."""

    batch: int
    steps: int
    inputs: int
    units: int
    layers: int = 1

    def __str__(self) -> str:
        layers = f" ×{self.layers}" if self.layers > 1 else ""
        return f"B{self.batch} T{self.steps} {self.inputs}→{self.units}{layers}"


SHAPES = {
    "cuda": [
        Shape(64, 784, 1, 128),
        Shape(32, 70, 650, 650, 2),
        Shape(64, 256, 1024, 1024),
        Shape(512, 256, 512, 512),
    ],
    "cpu": [Shape(32, 64, 256, 256), Shape(64, 784, 1, 128)],
    "quick": [Shape(3, 5, 4, 8), Shape(2, 4, 8, 8, 2)],
}
PERSISTENT = {"cuda": [Shape(16, 1024, 768, 768)], "cpu": [], "quick": [Shape(2, 6, 8, 8)]}
RAGGED = {
    "cuda": [Shape(64, 256, 1024, 1024)],
    "cpu": [Shape(32, 64, 256, 256)],
    "quick": [Shape(3, 5, 4, 8)],
}
ODD = {
    "cuda": [(Shape(32, 70, 650, 650), 704)],
    "cpu": [(Shape(32, 64, 250, 250), 256)],
    "quick": [(Shape(3, 5, 4, 7), 8)],
}
PERSISTENT_DTYPE = {"cuda": "fp16", "cpu": "fp32", "quick": "fp32"}  # what cuDNN keeps on the chip
DTYPES = {"cuda": ("bf16", "fp16", "tf32", "fp32"), "cpu": ("fp32",), "quick": ("fp32",)}

CELLS: dict[str, tuple[Callable[..., nn.Module], Callable[..., nn.Module]]] = {
    "RNN": (weft.nn.RNN, nn.RNN),
    "LSTM": (weft.nn.LSTM, nn.LSTM),
    "GRU after": (weft.nn.GRU, nn.GRU),
    "GRU before": (partial(weft.nn.GRU, reset="before"), nn.GRU),
}
OPS: dict[str, Callable[..., tuple[Tensor, Any]]] = {
    "RNN": ops.rnn,
    "LSTM": ops.lstm,
    "GRU after": ops.gru,
    "GRU before": partial(ops.gru, reset="before"),
}


def cases(scale: str) -> Iterator[Case]:
    """Yield the cases for "cuda", "cpu" or "quick"."""
    for shape, cell in itertools.product(SHAPES[scale], CELLS):
        for dtype in DTYPES[scale]:
            shown = dtype in ("bf16", "fp32")
            yield _case(cell, shape, dtype, partial(_against_torch, cell, shape), shown)
    for shape in PERSISTENT[scale]:
        yield _case("LSTM", shape, PERSISTENT_DTYPE[scale], partial(_against_torch, "LSTM", shape), True)
    for shape, cell in itertools.product(RAGGED[scale], CELLS):
        yield _case(f"{cell} ragged", shape, DTYPES[scale][0], partial(_against_full, cell, shape))
    for (shape, even), cell in itertools.product(ODD[scale], CELLS):
        yield _case(f"{cell} odd", shape, DTYPES[scale][0], partial(_against_even, cell, shape, even))


def _case(
    name: str, shape: Shape, dtype: str, sides: Callable[[torch.device], Sides], headline: bool = False
) -> Case:
    inputs = partial(_draw, shape)
    return Case(f"{name} {shape}", dtype, inputs, sides, shape.steps * shape.layers, headline)


def _draw(shape: Shape) -> tuple[Tensor, ...]:
    return (torch.randn(shape.batch, shape.steps, shape.inputs),)


def _layers(cell: str, shape: Shape) -> tuple[nn.Module, nn.Module]:
    """Return weft's layer and torch's, with the same weights."""
    ours, theirs = (make(shape.inputs, shape.units, shape.layers, batch_first=True) for make in CELLS[cell])
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


def _against_torch(cell: str, shape: Shape, device: torch.device) -> Sides:
    """Set weft beside torch.nn, and where torch has no such cell also beside the eager loop."""
    ours, theirs = _layers(cell, shape)
    timed = [_layer_side("weft", ours), _layer_side("torch.nn", theirs)]
    if cell == "GRU before":
        timed[1] = timed[1]._replace(name="torch.nn (reset after)")
        timed += [_loop_side("eager loop", cell, copy.deepcopy(ours)), _weft_after(shape)]
    return Sides(timed, _loop_side("reference", cell, copy.deepcopy(ours)))


def _weft_after(shape: Shape) -> Side:
    return _layer_side("weft (reset after)", _layers("GRU after", shape)[0])


def _against_full(cell: str, shape: Shape, device: torch.device) -> Sides:
    """Set ragged rows beside full ones: what lengths cost."""
    ours = _layers(cell, shape)[0]
    lengths = torch.linspace(shape.steps / 2, shape.steps, shape.batch).long().to(device)
    timed = [_layer_side("weft", ours, lengths), _layer_side("weft (full rows)", copy.deepcopy(ours))]
    return Sides(timed, _loop_side("reference", cell, copy.deepcopy(ours), lengths))


def _against_even(cell: str, shape: Shape, even: int, device: torch.device) -> Sides:
    """Set an odd number of units beside the next that suits the hardware."""
    made = _against_torch(cell, shape, device)
    wider = _layer_side(f"weft (U={even})", _layers(cell, shape._replace(units=even))[0])
    return made._replace(timed=[*made.timed[:2], wider])


def _layer_side(name: str, layer: nn.Module, lengths: Tensor | None = None) -> Side:
    """Call a layer; one of torch's knows no lengths."""

    def call(x: Tensor) -> tuple[Tensor, ...]:
        y, final = layer(x) if lengths is None else layer(x, lengths=lengths)
        return (y, *(final if isinstance(final, tuple) else (final,)))

    return Side(name, layer, call)


def _loop_side(name: str, cell: str, layer: Any, lengths: Tensor | None = None) -> Side:
    """Call the equation step by step, layer upon layer."""
    op = partial(OPS[cell], backend="reference")

    def call(x: Tensor) -> tuple[Tensor, ...]:
        finals: list[tuple[Tensor, ...]] = []
        for index in range(layer.num_layers):
            x, final = op(x, _weights(layer, index), lengths=lengths)
            finals.append(final if isinstance(final, tuple) else (final,))
        return (x, *(torch.stack(leaves) for leaves in zip(*finals, strict=True)))

    return Side(name, layer, call)


def _weights(layer: Any, index: int) -> RecurrentWeights:
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return RecurrentWeights(*(getattr(layer, f"{name}_l{index}") for name in names))
