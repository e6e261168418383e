"""A recurrent layer in one direction or in both, by the name of its cell."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from weft.core.shapes import Float, Int, Tensor
from weft.ops.fused import fused_layer, runs_fused
from weft.ops.gru import gru
from weft.ops.lstm import lstm
from weft.ops.rnn import rnn
from weft.ops.weights import RecurrentWeights, check_shapes

CELLS = {
    "tanh": rnn,
    "relu": partial(rnn, activation="relu"),
    "lstm": lstm,
    "gru_after": gru,
    "gru_before": partial(gru, reset="before"),
}


def recurrent_layer(
    cell: str,
    x: Float[Tensor, "B T D"],
    weights: Sequence[RecurrentWeights],
    states: Sequence[Any] | None = None,
    lengths: Int[Tensor, "B"] | None = None,
) -> tuple[Float[Tensor, "B T dirsU"], list[Any]]:
    """Run a layer over whole sequences: forwards, and backwards too if there are weights for two directions.

    The outputs of the directions lie side by side; each has its final state. On a GPU both directions
    run in one launch.
    """
    states = states or [None] * len(weights)
    if len(weights) == 2 and runs_fused(cell, x, weights):
        pairs = [state if cell == "lstm" or state is None else (state,) for state in states]
        _check_both(cell, x, weights, pairs, lengths)
        y, finals = fused_layer(cell, x, weights, pairs, lengths, "both")
        return y, finals if cell == "lstm" else [h for (h,) in finals]
    outputs, finals = [], []
    for reverse, (w, state) in enumerate(zip(weights, states, strict=True)):
        y, final = CELLS[cell](x, w, state, lengths, bool(reverse))
        outputs.append(y)
        finals.append(final)
    return (outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=2)), finals


def _check_both(
    cell: str, x: Tensor, weights: Sequence[RecurrentWeights], states: Sequence[Any], lengths: Tensor | None
) -> None:
    from weft.ops.kernels import plan

    for w, state in zip(weights, states, strict=True):
        check_shapes(x, w, state or (), lengths, plan.CELLS[cell].gates)
