"""torch.nn.MultiheadAttention with `lengths=`, and no NaN for a row without keys."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from weft.core.sequences import length_mask
from weft.core.shapes import Int, Tensor
from weft.ops.weights import check_lengths


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
        options: dict[str, Any] = {
            "need_weights": need_weights,
            "attn_mask": attn_mask,
            "average_attn_weights": average_attn_weights,
            "is_causal": is_causal,
        }
        if lengths is None:
            return super().forward(query, key, value, key_padding_mask, **options)
        row_axis = 1 if key.dim() == 3 and not self.batch_first else 0
        size = key.shape[-2] if row_axis == 0 else key.shape[0]
        check_lengths(lengths, key.shape[row_axis] if key.dim() == 3 else 1, size)
        own_key = self.bias_k is not None or self.add_zero_attn  # then no row is without one
        empty = torch.zeros_like(lengths, dtype=torch.bool) if own_key else lengths == 0
        padding = ~length_mask(lengths, size)
        padding = _join(padding, key_padding_mask, attn_mask)
        # rows without a key attend to all, and then get what zeros would have given
        padding = padding.masked_fill(empty.unsqueeze(1), 0)
        padding = padding if key.dim() == 3 else padding.squeeze(0)
        y, weights = super().forward(query, key, value, padding, **options)
        return self._without_keys(y, weights, empty, row_axis)

    def _without_keys(
        self, y: Tensor, weights: Tensor | None, empty: Tensor, row_axis: int
    ) -> tuple[Tensor, Tensor | None]:
        """Give empty rows the output bias, and weights of zero."""
        rows = empty.unsqueeze(1 - row_axis).unsqueeze(2) if y.dim() == 3 else empty.view(1, 1)
        bias = self.out_proj.bias
        nothing = torch.zeros_like(y) if bias is None else bias.expand_as(y)
        if weights is not None:
            weights = weights.masked_fill(empty.view(-1, *[1] * (weights.dim() - 1)), 0)
        return torch.where(rows, nothing, y), weights


def _join(padding: Tensor, given: Tensor | None, attn_mask: Tensor | None) -> Tensor:
    """Return both paddings in one: True drops, or -inf where one of torch's masks is to be added."""
    added = next((x for x in (given, attn_mask) if x is not None and x.is_floating_point()), None)
    if added is None:
        return padding if given is None else padding | given
    zeros = torch.zeros_like(padding, dtype=added.dtype)
    if given is not None:
        zeros = given if given.is_floating_point() else zeros.masked_fill(given, float("-inf"))
    return zeros.masked_fill(padding, float("-inf"))
