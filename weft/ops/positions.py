"""Where a token stands: sine and cosine waves, rotation, plain index (A10)."""

from __future__ import annotations

import torch

from weft.core.shapes import Float, Int, Tensor

_BASE = 10000.0


def sinusoid(positions: Int[Tensor, "*B"], width: int) -> Float[Tensor, "*B D"]:
    """Return p[i, 2j] = sin(i / 10000^(2j/D)), p[i, 2j+1] = cos(the same)."""
    pairs = torch.arange(0, width, 2, dtype=torch.float32, device=positions.device)
    angles = positions.unsqueeze(-1) / _BASE ** (pairs / width)  # (..., ceil(D/2))
    waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)
    return waves[..., :width]


def plain_index(positions: Int[Tensor, "*B"], width: int, scale: float = 0.01) -> Float[Tensor, "*B D"]:
    """Return the index itself, times `scale`, in every second column and 0 between.

    In all columns alike it would be invisible: layer norm takes out what they have in common.
    """
    columns = torch.arange(width, device=positions.device) % 2 == 0
    return (positions.float() * scale).unsqueeze(-1) * columns


def rotate(x: Float[Tensor, "B N T E"], positions: Int[Tensor, "B T"]) -> Float[Tensor, "B N T E"]:
    """Turn each pair (x_2j, x_2j+1) by the angle i / 10000^(2j/E), so that q . k sees i_q - i_k only."""
    pairs = torch.arange(0, x.shape[-1], 2, dtype=torch.float32, device=x.device)
    angles = positions.unsqueeze(1).unsqueeze(-1) / _BASE ** (pairs / x.shape[-1])  # (B, 1, T, E/2)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)
