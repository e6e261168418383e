"""A causal backbone used as an encoder."""

from __future__ import annotations

from torch import nn

from weft.core.protocols import Backbone
from weft.core.sequences import Sequences
from weft.core.shapes import Float, Tensor


class OneWayEncoder(nn.Module):
    """Read left to right; the summary is the last valid output."""

    def __init__(self, backbone: Backbone):
        super().__init__()
        self.backbone = backbone

    def forward(self, x: Sequences, memory: None = None) -> Sequences:
        return self.backbone(x)[0]

    def summarise(self, encoded: Sequences) -> Float[Tensor, "B D"]:
        return encoded.last()
