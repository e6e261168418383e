"""The gated recurrent unit (R7), reset after or before the recurrent product."""

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
class GRUConfig(RecurrentConfig):
    """Options of the gru family."""

    reset: str = option(
        "after",
        "where the reset gate acts: after the recurrent product (torch, cuDNN) or before it (the lectures)",
        choices=("after", "before"),
    )


class GRULayer(nn.Module):
    """One direction of one layer."""

    def __init__(self, config: GRUConfig, inputs: int, units: int):
        super().__init__()
        self.weights = RecurrentParameters(inputs, units, 3, config.init, config.weight_dropout)
        self.reset = config.reset

    def draw_weights(self) -> RecurrentWeights:
        return self.weights.draw()

    def run(
        self, x: Tensor, w: RecurrentWeights, state: Tensor, lengths: Tensor | None, reverse: bool
    ) -> tuple[Tensor, Tensor]:
        return ops.gru(x, w, state, lengths, reverse, self.reset)

    def step(self, x_t: Tensor, w: RecurrentWeights, state: Tensor) -> tuple[Tensor, Tensor]:
        h = ops.gru_step(x_t, state, w, self.reset)
        return h, h

    def begin(self, h: Float[Tensor, "B U"]) -> Tensor:
        return h

    def output(self, state: Tensor) -> Float[Tensor, "B U"]:
        return state


def backbone(width: int, config: GRUConfig, attention: AttentionSpec | None = None) -> Backbone:
    """Build a causal stack, with attention to a source when given."""
    return RecurrentBackbone(partial(GRULayer, config), width, config, attention)


def encoder(width: int, config: GRUConfig, bidirectional: bool = True) -> Encoder:
    """Build a stack that reads whole sequences."""
    if bidirectional:
        return BidirectionalEncoder(partial(GRULayer, config), width, config, f"gru_{config.reset}")
    return OneWayEncoder(backbone(width, config))


families.register("gru")(Family(GRUConfig, backbone, encoder, lambda config: 1))
