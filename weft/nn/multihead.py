"""torch.nn.MultiheadAttention with `lengths=`, and no NaN for a row without keys."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from weft.core.sequences import length_mask
from weft.core.shapes import Int, Tensor


class MultiheadAttention(nn.MultiheadAttention):
    """torch.nn.MultiheadAttention's constructor, call and state_dict.

    lengths (B,) are the valid keys of each row. A row with none gives the output bias and no NaN.
    """

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
        lengths: Int[Tensor, "B"] | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        size = key.shape[1 if self.batch_first else 0]
        if lengths is not None:
            given = key_padding_mask
            key_padding_mask = ~length_mask(lengths, size)
            key_padding_mask = key_padding_mask if given is None else key_padding_mask | given
        options: dict[str, Any] = {
            "need_weights": need_weights,
            "attn_mask": attn_mask,
            "average_attn_weights": average_attn_weights,
            "is_causal": is_causal,
        }
        own_key = self.bias_k is not None or self.add_zero_attn  # then no row is without one
        empty = None if lengths is None or own_key else lengths == 0
        if empty is None or not bool(empty.any()):
            return super().forward(query, key, value, key_padding_mask, **options)
        return self._forward_some_empty(query, key, value, key_padding_mask, empty, options)

    def _forward_some_empty(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        empty: Tensor,
        options: dict[str, Any],
    ) -> tuple[Tensor, Tensor | None]:
        """Let rows without a key attend to anything, then put in what zeros would have given."""
        assert mask is not None
        y, weights = super().forward(query, key, value, mask & ~empty.unsqueeze(1), **options)
        rows = empty.view(-1, 1, 1) if self.batch_first else empty.view(1, -1, 1)
        bias = self.out_proj.bias
        nothing = torch.zeros_like(y) if bias is None else bias.expand_as(y)
        if weights is not None:
            weights = weights.masked_fill(empty.view(-1, *[1] * (weights.dim() - 1)), 0)
        return torch.where(rows, nothing, y), weights
