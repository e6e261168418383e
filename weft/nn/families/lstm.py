"""The long short-term memory (R6)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import nn

from weft import ops
from weft.core.config import option
from weft.core.protocols import Backbone, Encoder
from weft.core.shapes import Float, Tensor
from weft.nn.families.family import AttentionSpec, Family, families
from weft.nn.families.one_way import OneWayEncoder
from weft.nn.families.recurrent import (
    BidirectionalEncoder,
    RecurrentBackbone,
    RecurrentConfig,
    RecurrentParameters,
)
from weft.ops.weights import RecurrentWeights


@dataclass(frozen=True)
class LSTMConfig(RecurrentConfig):
    """Options of the lstm family."""

    forget_bias: float = option(1.0, "initial bias of the forget gates")
    chrono: int | None = option(
        None, "longest memory in steps: forget and input biases are drawn for it (chrono)", low=2
    )


class LSTMState(NamedTuple):
    h: Float[Tensor, "B U"]
    c: Float[Tensor, "B U"]


class LSTMLayer(nn.Module):
    """One direction of one layer."""

    def __init__(self, config: LSTMConfig, inputs: int, units: int):
        super().__init__()
        self.weights = RecurrentParameters(inputs, units, 4, config.init, config.weight_dropout)
        i, f, _, _ = self.weights.bias_ih.data.chunk(4)
        f.fill_(config.forget_bias)
        if config.chrono is not None:
            f.copy_(torch.empty_like(f).uniform_(1, config.chrono - 1).log())
            i.copy_(-f)

    def draw_weights(self) -> RecurrentWeights:
        return self.weights.draw()

    def run(
        self, x: Tensor, w: RecurrentWeights, state: LSTMState, lengths: Tensor | None, reverse: bool
    ) -> tuple[Tensor, LSTMState]:
        y, final = ops.lstm(x, w, state, lengths, reverse)
        return y, LSTMState(*final)

    def step(self, x_t: Tensor, w: RecurrentWeights, state: LSTMState) -> tuple[Tensor, LSTMState]:
        new = LSTMState(*ops.lstm_step(x_t, state, w))
        return new.h, new

    def begin(self, h: Float[Tensor, "B U"]) -> LSTMState:
        return LSTMState(h, torch.zeros_like(h))

    def output(self, state: LSTMState) -> Float[Tensor, "B U"]:
        return state.h


def backbone(width: int, config: LSTMConfig, attention: AttentionSpec | None = None) -> Backbone:
    """Build a causal stack, with attention to a source when given."""
    return RecurrentBackbone(partial(LSTMLayer, config), width, config, attention)


def encoder(width: int, config: LSTMConfig, bidirectional: bool = True) -> Encoder:
    """Build a stack that reads whole sequences."""
    if bidirectional:
        return BidirectionalEncoder(partial(LSTMLayer, config), width, config, "lstm")
    return OneWayEncoder(backbone(width, config))


families.register("lstm")(Family(LSTMConfig, backbone, encoder, lambda config: 1))
