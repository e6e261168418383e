"""The gated recurrent unit, in torch's gate order r, z, n, in both conventions.

after   (torch, cuDNN)  n = tanh(W_in x + b_in + r * (W_hn h + b_hn))
before  (the lectures)  n = tanh(W_in x + b_in + W_hn (r * h) + b_hn)
both                    h_t = z * h + (1 - z) * n
"""

from __future__ import annotations

import torch

from weft.core.errors import ConfigError
from weft.core.sequences import Sequences
from weft.core.shapes import Float, Int, Tensor
from weft.ops.fused import choose_recurrent, fused_layer
from weft.ops.weights import (
    RecurrentWeights,
    blank_padding,
    both_biases,
    check_shapes,
    flag_padding,
    keep_valid,
    kernel_options,
    project_input,
    ragged,
    time_steps,
    valid_at,
    zero_bias,
)

RESETS = ("after", "before")

_OPEN = 1e4  # the sigmoid of this is exactly 1


def gru_step(
    x_t: Float[Tensor, "B D"], h: Float[Tensor, "B U"], w: RecurrentWeights, reset: str = "after"
) -> Float[Tensor, "B U"]:
    """Take one step of the equations above."""
    return _step(torch.nn.functional.linear(x_t, w.w_ih, w.b_ih), h, w, reset)


def _step(gates_x: Tensor, h: Tensor, w: RecurrentWeights, reset: str) -> Tensor:
    linear, units = torch.nn.functional.linear, w.hidden
    x_rz, x_n = gates_x.split([2 * units, units], dim=1)
    if reset == "after":
        h_rz, h_n = linear(h, w.w_hh, w.b_hh).split([2 * units, units], dim=1)
        r, z = torch.sigmoid(x_rz + h_rz).chunk(2, dim=1)
        n = torch.tanh(x_n + r * h_n)
    else:
        w_rz, w_n = w.w_hh.split([2 * units, units])
        b_rz, b_n = (None, None) if w.b_hh is None else w.b_hh.split([2 * units, units])
        r, z = torch.sigmoid(x_rz + linear(h, w_rz, b_rz)).chunk(2, dim=1)
        n = torch.tanh(x_n + linear(r * h, w_n, b_n))
    return z * h + (1 - z) * n


def gru_reference(
    x: Float[Tensor, "B T D"],
    w: RecurrentWeights,
    h: Float[Tensor, "B U"],
    lengths: Int[Tensor, "B"] | None = None,
    reverse: bool = False,
    reset: str = "after",
) -> tuple[Float[Tensor, "B T U"], Float[Tensor, "B U"]]:
    """Run the equation step by step; finished rows keep their state and give zeros."""
    x = blank_padding(x, lengths)
    outputs: dict[int, Tensor] = {}
    gates_x = project_input(x, w).unbind(1)
    for t in time_steps(x.shape[1], reverse):
        valid = valid_at(t, lengths)
        new = _step(gates_x[t], h, w, reset)
        outputs[t] = keep_valid(valid, new, torch.zeros_like(new))
        h = keep_valid(valid, new, h)
    return torch.stack([outputs[t] for t in range(x.shape[1])], dim=1), h


def gru(
    x: Float[Tensor, "B T D"],
    w: RecurrentWeights,
    h: Float[Tensor, "B U"] | None = None,
    lengths: Int[Tensor, "B"] | None = None,
    reverse: bool = False,
    reset: str = "after",
    backend: str = "auto",
) -> tuple[Float[Tensor, "B T U"], Float[Tensor, "B U"]]:
    """Run a GRU layer over whole sequences.

    Returns the outputs of all steps (zeros at padding) and each row's state after its last valid
    step; `reverse` reads from the last valid step to the first. No library has a kernel for
    `reset="before"`: it runs fused on a GPU, elsewhere step by step (backend "loop").
    """
    if reset not in RESETS:
        raise ConfigError(f"`reset` must be `after` (torch) or `before` (the lectures), but is `{reset}`.")
    cell = f"gru_{reset}"
    check_shapes(x, w, () if h is None else (h,), lengths, gates=3)
    backend = choose_recurrent(backend, cell, x, w, "torch" if reset == "after" else "loop")
    if backend == "fused":
        states = [None if h is None else (h,)]
        y, finals = fused_layer(cell, x, [w], states, lengths, "backward" if reverse else "forward")
        return y, finals[0][0]
    h = x.new_zeros(x.shape[0], w.hidden) if h is None else h
    if x.shape[1] == 0:
        return x.new_zeros(x.shape[0], 0, w.hidden), h
    if backend == "reference":
        return gru_reference(x, w, h, lengths, reverse, reset)
    if backend == "loop":
        return _gru_loop(x, w, h, lengths, reverse)
    if lengths is not None and ragged(x, lengths):
        return _gru_ragged(Sequences(x, lengths), w, h, reverse)
    y, h = _gru_torch(x.flip(1) if reverse else x, w, h)
    return (y.flip(1) if reverse else y), h


def _gru_torch(x: Tensor, w: RecurrentWeights, h: Tensor) -> tuple[Tensor, Tensor]:
    """Run torch's kernel on full rows."""
    y, h = torch._VF.gru(x, h.unsqueeze(0).contiguous(), zero_bias(w), *kernel_options())
    return y, h[0]


def _gru_ragged(rows: Sequences, w: RecurrentWeights, h: Tensor, reverse: bool) -> tuple[Tensor, Tensor]:
    """Run torch's kernel on padded rows: what it makes of the padding is bounded, and nobody sees it."""
    rows = rows.reverse() if reverse else rows
    out = rows.with_data(_gru_torch(rows.fill(0).data, w, h)[0])
    h = torch.where((rows.lengths > 0).unsqueeze(1), out.last(), h)
    out = out.fill(0)
    return (out.reverse() if reverse else out).data, h


def _gru_loop(
    x: Tensor, w: RecurrentWeights, h: Tensor, lengths: Tensor | None, reverse: bool
) -> tuple[Tensor, Tensor]:
    """Run reset="before" step by step; at padding z = 1, so the state stays."""
    from weft.ops.kernels.gru_loop import gru_loop

    w = both_biases(w)
    bias = None if w.b_ih is None or w.b_hh is None else w.b_ih + w.b_hh
    w_ih, inputs = w.w_ih, x
    if lengths is not None:
        inputs, w_ih = flag_padding(x, lengths, w_ih, [0.0, _OPEN, 0.0])
    gates = torch.nn.functional.linear(inputs.transpose(0, 1), w_ih, bias)  # (T, B, 3U)
    y, h = gru_loop(gates, w.w_hh, h, reverse)
    y = y.transpose(0, 1)
    return (y if lengths is None else Sequences(y, lengths).fill(0).data), h
