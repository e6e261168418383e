"""The recurrent network (R1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

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
class RNNConfig(RecurrentConfig):
    """Options of the rnn family."""

    activation: str = option("tanh", "the cell's activation", choices=("tanh", "relu"))


class RNNLayer(nn.Module):
    """One direction of one layer."""

    def __init__(self, config: RNNConfig, inputs: int, units: int):
        super().__init__()
        self.weights = RecurrentParameters(inputs, units, 1, config.init, config.weight_dropout)
        self.activation = config.activation

    def draw_weights(self) -> RecurrentWeights:
        return self.weights.draw()

    def run(
        self, x: Tensor, w: RecurrentWeights, state: Tensor, lengths: Tensor | None, reverse: bool
    ) -> tuple[Tensor, Tensor]:
        return ops.rnn(x, w, state, lengths, reverse, self.activation)

    def step(self, x_t: Tensor, w: RecurrentWeights, state: Tensor) -> tuple[Tensor, Tensor]:
        h = ops.rnn_step(x_t, state, w, self.activation)
        return h, h

    def begin(self, h: Float[Tensor, "B U"]) -> Tensor:
        return h

    def output(self, state: Tensor) -> Float[Tensor, "B U"]:
        return state


def backbone(width: int, config: RNNConfig, attention: AttentionSpec | None = None) -> Backbone:
    """Build a causal stack, with attention to a source when given."""
    return RecurrentBackbone(partial(RNNLayer, config), width, config, attention)


def encoder(width: int, config: RNNConfig, bidirectional: bool = True) -> Encoder:
    """Build a stack that reads whole sequences."""
    if bidirectional:
        return BidirectionalEncoder(partial(RNNLayer, config), width, config, config.activation)
    return OneWayEncoder(backbone(width, config))


families.register("rnn")(Family(RNNConfig, backbone, encoder, lambda config: 1))
