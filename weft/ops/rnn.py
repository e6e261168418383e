"""The recurrent network: H_t = phi(X_t W_xh + H_{t-1} W_hh + b_h)."""

from __future__ import annotations

import torch

from weft.core.errors import ConfigError
from weft.core.sequences import Sequences
from weft.core.shapes import Float, Int, Tensor
from weft.ops.fused import choose_recurrent, fused_layer
from weft.ops.weights import (
    RecurrentWeights,
    blank_padding,
    check_shapes,
    flag_padding,
    keep_valid,
    kernel_options,
    ragged,
    time_steps,
    valid_at,
    zero_bias,
)

ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu}

_SHUT = -1e4  # the relu of this is 0


def rnn_step(
    x_t: Float[Tensor, "B D"], h: Float[Tensor, "B U"], w: RecurrentWeights, activation: str = "tanh"
) -> Float[Tensor, "B U"]:
    """Take one step: h_t = phi(W_ih x_t + b_ih + W_hh h + b_hh)."""
    linear = torch.nn.functional.linear
    return ACTIVATIONS[activation](linear(x_t, w.w_ih, w.b_ih) + linear(h, w.w_hh, w.b_hh))


def rnn_reference(
    x: Float[Tensor, "B T D"],
    w: RecurrentWeights,
    h: Float[Tensor, "B U"],
    lengths: Int[Tensor, "B"] | None = None,
    reverse: bool = False,
    activation: str = "tanh",
) -> tuple[Float[Tensor, "B T U"], Float[Tensor, "B U"]]:
    """Run the equation step by step; finished rows keep their state and give zeros."""
    inputs = blank_padding(x, lengths).unbind(1)
    outputs: dict[int, Tensor] = {}
    for t in time_steps(x.shape[1], reverse):
        valid = valid_at(t, lengths)
        new = rnn_step(inputs[t], h, w, activation)
        outputs[t] = keep_valid(valid, new, torch.zeros_like(new))
        h = keep_valid(valid, new, h)
    return torch.stack([outputs[t] for t in range(x.shape[1])], dim=1), h


def rnn(
    x: Float[Tensor, "B T D"],
    w: RecurrentWeights,
    h: Float[Tensor, "B U"] | None = None,
    lengths: Int[Tensor, "B"] | None = None,
    reverse: bool = False,
    activation: str = "tanh",
    backend: str = "auto",
) -> tuple[Float[Tensor, "B T U"], Float[Tensor, "B U"]]:
    """Run a tanh or relu recurrent layer over whole sequences.

    Returns the outputs of all steps (zeros at padding) and each row's state after its last valid
    step; `reverse` reads from the last valid step to the first.
    """
    if activation not in ACTIVATIONS:
        raise ConfigError(f"`activation` must be `tanh` or `relu`, but is `{activation}`.")
    check_shapes(x, w, () if h is None else (h,), lengths, gates=1)
    backend = choose_recurrent(backend, activation, x, w)
    if backend == "fused":
        states = [None if h is None else (h,)]
        y, finals = fused_layer(activation, x, [w], states, lengths, "backward" if reverse else "forward")
        return y, finals[0][0]
    h = x.new_zeros(x.shape[0], w.hidden) if h is None else h
    if x.shape[1] == 0:
        return x.new_zeros(x.shape[0], 0, w.hidden), h
    if backend == "reference":
        return rnn_reference(x, w, h, lengths, reverse, activation)
    if lengths is not None and ragged(x, lengths):
        return _rnn_ragged(Sequences(x, lengths), w, h, reverse, activation)
    y = _rnn_torch(x.flip(1) if reverse else x, w, h, activation)
    return (y.flip(1) if reverse else y), y[:, -1]


def _rnn_torch(x: Tensor, w: RecurrentWeights, h: Tensor, activation: str) -> Tensor:
    """Run torch's kernel on full rows."""
    kernel = torch._VF.rnn_tanh if activation == "tanh" else torch._VF.rnn_relu
    return kernel(x, h.unsqueeze(0).contiguous(), zero_bias(w), *kernel_options())[0]


def _rnn_ragged(
    rows: Sequences, w: RecurrentWeights, h: Tensor, reverse: bool, activation: str
) -> tuple[Tensor, Tensor]:
    """Run torch's kernel on padded rows; the final state is the last valid output.

    Padded steps of a relu come from a large negative input, so that it does not grow there without end.
    """
    rows = rows.reverse() if reverse else rows
    x, w_ih = rows.fill(0).data, w.w_ih
    if activation == "relu":
        x, w_ih = flag_padding(rows.data, rows.lengths, w_ih, [_SHUT])
    out = rows.with_data(_rnn_torch(x, w._replace(w_ih=w_ih), h, activation))
    h = torch.where((rows.lengths > 0).unsqueeze(1), out.last(), h)
    out = out.fill(0)
    return (out.reverse() if reverse else out).data, h
