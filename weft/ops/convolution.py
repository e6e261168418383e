"""Causal dilated convolution: y_t = b + sum_j W_j x_{t - (K-1-j) * dilation}."""

from __future__ import annotations

import torch

from weft.core.errors import InputError
from weft.core.shapes import Float, Tensor
from weft.ops.weights import choose_backend


def causal_conv_reference(
    x: Float[Tensor, "B T D"], weight: Float[Tensor, "Dout D K"], bias: Tensor | None, dilation: int
) -> Float[Tensor, "B T Dout"]:
    """Sum over the taps, one product a tap; before the start the input is zero."""
    taps = weight.shape[2]
    y = x.new_zeros(x.shape[0], x.shape[1], weight.shape[0])
    for j in range(taps):
        shift = (taps - 1 - j) * dilation
        past = torch.nn.functional.pad(x, (0, 0, shift, 0))[:, : x.shape[1]]
        y = y + past @ weight[:, :, j].T
    return y if bias is None else y + bias


def causal_conv(
    x: Float[Tensor, "B T D"],
    weight: Float[Tensor, "Dout D K"],
    bias: Float[Tensor, "Dout"] | None = None,
    dilation: int = 1,
    past: Float[Tensor, "B R D"] | None = None,
    backend: str = "auto",
) -> Float[Tensor, "B T Dout"]:
    """Convolve without looking ahead.

    past   the R = (K-1) * dilation inputs before x (None: zeros), so a stream may be cut anywhere
    """
    reach = (weight.shape[2] - 1) * dilation
    if past is not None and past.shape[1] != reach:
        raise InputError(f"`past` must hold the {reach} inputs before x, but holds {past.shape[1]}.")
    if x.shape[1] == 0:
        return x.new_zeros(x.shape[0], 0, weight.shape[0])
    if choose_backend(backend, ("reference", "torch"), "torch") == "reference":
        x = x if past is None else torch.cat([past, x], dim=1)
        y = causal_conv_reference(x, weight, bias, dilation)
        return y if past is None else y[:, reach:]
    x = torch.nn.functional.pad(x, (0, 0, reach, 0)) if past is None else torch.cat([past, x], dim=1)
    return torch.nn.functional.conv1d(x.mT, weight, bias, dilation=dilation).mT
