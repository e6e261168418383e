"""Attention masks (A4, A9): True keeps a pair of query and key."""

from __future__ import annotations

import torch

from weft.core.shapes import Bool, Int, Tensor


def position_mask(
    queries: Int[Tensor, "*#B T"],
    keys: Int[Tensor, "*#B S"],
    causal: bool = False,
    neighbourhood: int | None = None,
) -> Bool[Tensor, "... T S"]:
    """Return which keys a query may see by position.

    causal         key <= query
    neighbourhood  |key - query| <= r
    """
    ahead = keys.unsqueeze(-2) - queries.unsqueeze(-1)
    mask = ahead <= 0 if causal else torch.ones_like(ahead, dtype=torch.bool)
    return mask if neighbourhood is None else mask & (ahead.abs() <= neighbourhood)


def combine(*masks: Tensor | None) -> Tensor | None:
    """Return the pairs that every given mask keeps; None keeps all."""
    combined: Tensor | None = None
    for mask in masks:
        if mask is not None:
            combined = mask if combined is None else combined & mask
    return combined
