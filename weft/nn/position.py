"""Position encodings as a layer: added to the input or concatenated with it."""

from __future__ import annotations

import torch
from torch import nn

from weft.core.errors import ConfigError
from weft.core.shapes import Float, Int, Tensor
from weft.ops.positions import plain_index, sinusoid

KINDS = ("sinusoidal", "learned", "rotary", "index", "none")


class PositionEncoding(nn.Module):
    """Tell an input where each element stands.

    kind  sinusoidal | learned | index (the number itself) | rotary and none (nothing here: rotary
          turns queries and keys inside attention)
    mode  add: x + p;  concat: W [x; p]
    """

    def __init__(self, kind: str, mode: str, width: int, max_positions: int):
        super().__init__()
        self.kind, self.mode, self.max_positions = kind, mode, max_positions
        self.table = self.join = None
        if kind == "learned":
            self.table = nn.Parameter(torch.empty(max_positions, width).normal_(std=0.02))
        if mode == "concat" and kind not in ("none", "rotary"):
            self.join = nn.Linear(2 * width, width)

    def forward(self, x: Float[Tensor, "B T D"], positions: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        if self.kind in ("none", "rotary"):
            return x
        p = self._encode(positions, x.shape[-1]).to(x.dtype)
        return x + p if self.join is None else self.join(torch.cat([x, p], dim=-1))

    def _encode(self, positions: Tensor, width: int) -> Tensor:
        if self.kind == "sinusoidal":
            return sinusoid(positions, width)
        if self.kind == "index":
            return plain_index(positions, width)
        assert self.table is not None
        self._check(positions)
        return self.table[positions]

    def _check(self, positions: Tensor) -> None:
        longest = int(positions.max()) + 1 if positions.numel() else 0
        if longest > self.max_positions:
            raise ConfigError(
                f"Learned positions reach `max_positions` ({self.max_positions}), but a sequence has "
                f"{longest} elements. Raise it, cut the data, or use sinusoidal positions."
            )
