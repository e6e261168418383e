"""Dropout that can be drawn once and used step by step."""

from __future__ import annotations

import torch
from torch import nn

from weft.core.shapes import Tensor


class Dropout(nn.Module):
    """Zero a share p of the features; `locked` keeps one draw for all steps of a row (variational)."""

    def __init__(self, p: float = 0.0, locked: bool = False):
        super().__init__()
        self.p, self.locked = p, locked

    def draw(self, like: Tensor) -> Tensor | None:
        """Return the factors for a tensor (B, T, D), one a row when locked; None for all ones."""
        if not self.training or self.p == 0:
            return None
        shape = (like.shape[0], 1, like.shape[2]) if self.locked else like.shape
        return torch.nn.functional.dropout(like.new_ones(shape), self.p)

    def forward(self, x: Tensor) -> Tensor:
        if not self.locked:
            return torch.nn.functional.dropout(x, self.p, self.training)
        return apply_mask(x, self.draw(x))

    def extra_repr(self) -> str:
        return f"p={self.p}, locked={self.locked}"


def apply_mask(x: Tensor, mask: Tensor | None) -> Tensor:
    """Multiply by drawn factors."""
    return x if mask is None else x * mask


def mask_at(mask: Tensor | None, t: int) -> Tensor | None:
    """Return the factors (B, D) for step t."""
    if mask is None:
        return None
    return mask[:, min(t, mask.shape[1] - 1)]
