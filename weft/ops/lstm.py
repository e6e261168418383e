"""The long short-term memory, in torch's gate order i, f, g, o."""

from __future__ import annotations

from typing import Any

import torch

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

LSTMPair = tuple[Tensor, Tensor]  # h (B, U) and c (B, U)

_SHUT, _OPEN = -1e4, 1e4  # the sigmoid of these is exactly 0 and 1


def lstm_gates(
    x_t: Float[Tensor, "B D"], h: Float[Tensor, "B U"], w: RecurrentWeights
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return i, f, g, o: sigmoid, sigmoid, tanh, sigmoid of W_ih x_t + b_ih + W_hh h + b_hh."""
    linear = torch.nn.functional.linear
    i, f, g, o = (linear(x_t, w.w_ih, w.b_ih) + linear(h, w.w_hh, w.b_hh)).chunk(4, dim=1)
    return torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)


def lstm_step(x_t: Float[Tensor, "B D"], state: LSTMPair, w: RecurrentWeights) -> LSTMPair:
    """Take one step: c_t = f*c + i*g; h_t = o*tanh(c_t)."""
    h, c = state
    i, f, g, o = lstm_gates(x_t, h, w)
    c = f * c + i * g
    return o * torch.tanh(c), c


def lstm_reference(
    x: Float[Tensor, "B T D"],
    w: RecurrentWeights,
    state: LSTMPair,
    lengths: Int[Tensor, "B"] | None = None,
    reverse: bool = False,
) -> tuple[Float[Tensor, "B T U"], LSTMPair]:
    """Run the equation step by step; finished rows keep their state and give zeros."""
    inputs = blank_padding(x, lengths).unbind(1)
    h, c = state
    outputs: dict[int, Tensor] = {}
    for t in time_steps(x.shape[1], reverse):
        valid = valid_at(t, lengths)
        new_h, new_c = lstm_step(inputs[t], (h, c), w)
        outputs[t] = keep_valid(valid, new_h, torch.zeros_like(new_h))
        h, c = keep_valid(valid, new_h, h), keep_valid(valid, new_c, c)
    return torch.stack([outputs[t] for t in range(x.shape[1])], dim=1), (h, c)


def lstm(
    x: Float[Tensor, "B T D"],
    w: RecurrentWeights,
    state: LSTMPair | None = None,
    lengths: Int[Tensor, "B"] | None = None,
    reverse: bool = False,
    backend: str = "auto",
) -> tuple[Float[Tensor, "B T U"], LSTMPair]:
    """Run an LSTM layer over whole sequences.

    Returns the outputs of all steps (zeros at padding) and each row's (h, c) after its last valid
    step; `reverse` reads from the last valid step to the first.
    """
    check_shapes(x, w, state or (), lengths, gates=4)
    backend = choose_recurrent(backend, "lstm", x, w)
    if backend == "fused":
        y, finals = fused_layer("lstm", x, [w], [state], lengths, "backward" if reverse else "forward")
        return y, (finals[0][0], finals[0][1])
    if state is None:
        zeros = x.new_zeros(x.shape[0], w.hidden)
        state = (zeros, zeros)
    if x.shape[1] == 0:
        return x.new_zeros(x.shape[0], 0, w.hidden), state
    if backend == "reference":
        return lstm_reference(x, w, state, lengths, reverse)
    if lengths is not None and ragged(x, lengths):
        return _lstm_ragged(Sequences(x, lengths), w, state, reverse)
    y, h, c = _lstm_torch(x.flip(1) if reverse else x, w, state)
    return (y.flip(1) if reverse else y), (h, c)


def _lstm_torch(x: Tensor, w: RecurrentWeights, state: LSTMPair) -> tuple[Tensor, Tensor, Tensor]:
    """Run torch's kernel on full rows."""
    h, c = (leaf.unsqueeze(0).contiguous() for leaf in state)
    compiled = torch.compiler.is_dynamo_compiling() and torch.is_grad_enabled()
    kernel = _uncompiled if compiled else torch._VF.lstm
    y, h, c = kernel(x, (h, c), zero_bias(w), *kernel_options())
    return y, h[0], c[0]


@torch._disable_dynamo  # loads torch.compile when called, not before
def _uncompiled(*args: Any) -> Any:
    """Leave the kernel out of compiled graphs: torch cannot put its gradient in one on a CPU."""
    return torch._VF.lstm(*args)


def _lstm_ragged(
    rows: Sequences, w: RecurrentWeights, state: LSTMPair, reverse: bool
) -> tuple[Tensor, LSTMPair]:
    """Run torch's kernel on padded rows: at padding i = 0 and f = 1, so c stays; h is the last output."""
    rows = rows.reverse() if reverse else rows
    x, w_ih = flag_padding(rows.data, rows.lengths, w.w_ih, [_SHUT, _OPEN, 0.0, 0.0])
    y, _, c = _lstm_torch(x, w._replace(w_ih=w_ih), state)
    out = rows.with_data(y)
    h = torch.where((rows.lengths > 0).unsqueeze(1), out.last(), state[0])
    out = out.fill(0)
    return (out.reverse() if reverse else out).data, (h, c)
