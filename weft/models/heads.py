"""From the model's width to scores, numbers or logits."""

from __future__ import annotations

import torch
from torch import nn

from weft.core.shapes import Float, Int, Tensor
from weft.ops.loss import cross_entropy


class Head(nn.Module):
    """W dropout(y) + b; with `table`, W is that embedding table (tied)."""

    def __init__(self, width: int, outputs: int, dropout: float, table: nn.Parameter | None = None):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, width)) if table is None else table
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.dropout = nn.Dropout(dropout)
        if table is None:
            nn.init.xavier_uniform_(self.weight)

    def forward(self, y: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        return torch.nn.functional.linear(self.dropout(y), self.weight, self.bias)

    def loss(
        self,
        y: Float[Tensor, "M D"],
        target: Int[Tensor, "M"],
        smoothing: float = 0.0,
        per_token: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Return the cross-entropy (sum, count), or its terms (M,), without keeping the logits."""
        return cross_entropy(self.dropout(y), self.weight, self.bias, target, smoothing, per_token)
