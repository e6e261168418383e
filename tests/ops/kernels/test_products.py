"""What surrounds the recurrence, on a CPU: products and sums over all steps against autograd of the equation.

What the kernel leaves is taken from the equation itself, in the kernel's layout: time first, units padded.
"""

from contextlib import contextmanager
from typing import NamedTuple

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.nn.functional import linear

from weft.ops.kernels import products, recurrence
from weft.ops.kernels.plan import CELLS

BATCH, STEPS, INPUTS, UNITS = 3, 6, 4, 5
LENGTHS = torch.tensor([6, 0, 3])


class Step(NamedTuple):
    """What a step leaves: both shares of the gates (leaves of a graph), the new state, r * h."""

    input: torch.Tensor
    hidden: torch.Tensor
    state: tuple[torch.Tensor, ...]
    first: torch.Tensor


def take_step(cell: str, x_t, state, w_ih, w_hh, b_ih, b_hh) -> Step:
    """Take a step of the equation with the shares of the gates kept apart."""
    h, first = state[0], x_t.new_zeros(x_t.shape[0], UNITS)
    share, hidden = linear(x_t, w_ih, b_ih), linear(h, w_hh, b_hh)
    if cell == "gru_before":
        r = torch.sigmoid((share + hidden)[:, :UNITS])
        first = r * h
        hidden = torch.cat([hidden[:, : 2 * UNITS], linear(first, w_hh[2 * UNITS :], b_hh[2 * UNITS :])], 1)
    share.retain_grad()
    hidden.retain_grad()
    if cell in ("tanh", "relu"):
        return Step(share, hidden, (getattr(torch, cell)(share + hidden),), first)
    if cell == "lstm":
        i, f, g, o = (share + hidden).chunk(4, 1)
        c = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
        return Step(share, hidden, (torch.sigmoid(o) * torch.tanh(c), c), first)
    (x_r, x_z, x_n), (h_r, h_z, h_n) = share.chunk(3, 1), hidden.chunk(3, 1)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + (h_n if cell == "gru_before" else r * h_n))
    return Step(share, hidden, (z * h + (1 - z) * n,), first)


def run(cell: str, x, weights, states, lengths, reverse: bool):
    """Return the steps by time and the outputs (T, B, U), zeros at padding."""
    steps, outputs, state = {}, {}, states
    for t in range(STEPS - 1, -1, -1) if reverse else range(STEPS):
        valid = torch.ones(BATCH, 1, dtype=bool) if lengths is None else (t < lengths).unsqueeze(1)
        made = take_step(cell, x[:, t], state, *weights)
        steps[t] = made
        outputs[t] = torch.where(valid, made.state[0], 0)
        state = tuple(torch.where(valid, new, old) for new, old in zip(made.state, state, strict=True))
    return steps, torch.stack([outputs[t] for t in range(STEPS)])


def padded(parts: torch.Tensor, gates: int) -> torch.Tensor:
    """Return (T, B, gates * U) as (T, B, gates * 8)."""
    cut = parts.unflatten(2, (-1, UNITS))[:, :, :gates]
    return torch.nn.functional.pad(cut, (0, 8 - UNITS)).flatten(2)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("ways", products.WAYS)
@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("starts", [False, True])
def test_gradients_are_autograds(cell, ways, ragged, starts):
    gates, told_gates, dirs = CELLS[cell].gates, CELLS[cell].told, len(products.WAYS[ways])
    shapes = [(gates * UNITS, INPUTS), (gates * UNITS, UNITS), (gates * UNITS,), (gates * UNITS,)] * dirs
    weights = [torch.randn(s, dtype=torch.float64).requires_grad_() for s in shapes]
    x = torch.randn(BATCH, STEPS, INPUTS, dtype=torch.float64, requires_grad=True)
    lengths = LENGTHS if ragged else None
    h0 = torch.randn(dirs, BATCH, UNITS, dtype=torch.float64) * starts
    size = products.layer_size(x, weights, cell, ways)
    made = []
    for d, reverse in enumerate(products.WAYS[ways]):
        states = (h0[d], torch.zeros_like(h0[d]))[: 2 if cell == "lstm" else 1]
        made.append(run(cell, x, weights[4 * d : 4 * d + 4], states, lengths, reverse))
    want = torch.autograd.grad(
        sum((y * torch.randn_like(y)).sum() for _, y in made),
        [
            x,
            *weights,
            *(s for steps, _ in made for t in range(STEPS) for s in (steps[t].input, steps[t].hidden)),
        ],
    )
    shares = iter(want[1 + len(weights) :])
    by_time = [[(next(shares), next(shares)) for _ in range(STEPS)] for _ in made]
    dx = torch.cat([padded(torch.stack([a for a, _ in one]), gates) for one in by_time], 2)
    told = torch.cat([padded(torch.stack([b for _, b in one]), told_gates) for one in by_time], 2)
    first = [padded(torch.stack([steps[t].first for t in range(STEPS)]), 1) for steps, _ in made]
    y = torch.cat([padded(y, 1) for _, y in made], 2)
    none = x.new_empty(0)
    saved = products.Saved(*(t.detach() for t in (y, none, none, none, torch.stack(first))))
    data = x.detach() if lengths is None else x.detach().clone()
    if lengths is not None:
        data[torch.arange(STEPS) >= lengths.unsqueeze(1)] = torch.nan  # nobody may see it
    flat = [w.detach() for w in weights]
    start = products.pad_units(h0, size) if starts else None
    got = products.weight_gradients(data, flat, start, lengths, saved, told, dx, size, cell, ways)
    got = [products.input_gradient(dx, flat, size, True), *got]
    for one, other in zip(got, want, strict=False):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_the_inputs_share_is_a_product_with_room_behind_each_gate():
    weights = [torch.randn(s, dtype=torch.float64) for s in [(20, 4), (20, 5), (20,), (20,)] * 2]
    x = torch.randn(BATCH, STEPS, INPUTS, dtype=torch.float64)
    size = products.layer_size(x, weights, "lstm", "both")
    padded_rows = torch.nn.functional.pad(x.transpose(0, 1), (0, 3))[..., :INPUTS].transpose(0, 1)
    for inputs in (x, x.transpose(0, 1).contiguous().transpose(0, 1), padded_rows):
        share = products.input_gates(inputs, weights, size)
        like = products.input_gates_like(inputs, size)
        assert (share.shape, share.stride()) == (like.shape, like.stride())
        cut = share.unflatten(2, (2, 4, 8))
        for d in (0, 1):
            want = linear(x, weights[4 * d], weights[4 * d + 2]).transpose(0, 1).unflatten(2, (4, 5))
            torch.testing.assert_close(cut[:, :, d, :, :5], want)
        assert (cut[..., 5:] == 0).all()
    assert share.is_contiguous(), "as the layer beneath left them, time first"


@contextmanager
def fp32_multiplied_as(wish: str):
    """Say it as torch does since 2.9; from then on torch's older names for it refuse to be read."""
    said = [torch.backends.cuda.matmul, torch.backends.cudnn.rnn]
    before = [layer.fp32_precision for layer in said]
    for layer in said:
        layer.fp32_precision = wish
    try:
        yield said[0]
    finally:
        for layer, value in zip(said, before, strict=True):
            layer.fp32_precision = value


@pytest.mark.parametrize("wish", ["tf32", "ieee"])
def test_what_a_program_says_of_tf32_can_be_read_and_stays(monkeypatch, wish):
    monkeypatch.setattr(recurrence, "device_reason", lambda device: "the device is asked next")
    with FakeTensorMode(), fp32_multiplied_as(wish) as matmul:
        with products.tf32_products(torch.bfloat16):
            assert matmul.fp32_precision == wish
        with products.tf32_products(torch.float32):
            assert matmul.fp32_precision == "tf32"
        assert matmul.fp32_precision == wish
        reason = recurrence.why_not(torch.empty(1, device="cuda"), torch.float32, 8, 1, "lstm")
    assert reason is not None
    assert ("forbids" in reason) == (wish == "ieee")
