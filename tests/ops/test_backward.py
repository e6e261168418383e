"""The hand-derived step backward against autograd, in one step and through time."""

from functools import partial

import pytest
import torch

from weft import ops
from weft.ops.weights import RecurrentWeights

TOLERANCE = 1e-10  # float64
CELLS = {
    "tanh": (1, ops.rnn_step, ops.rnn_step_backward),
    "relu": (1, partial(ops.rnn_step, activation="relu"), partial(ops.rnn_step_backward, activation="relu")),
    "lstm": (4, ops.lstm_step, ops.lstm_step_backward),
    "after": (3, ops.gru_step, ops.gru_step_backward),
    "before": (3, partial(ops.gru_step, reset="before"), partial(ops.gru_step_backward, reset="before")),
}
REFERENCES = {
    "tanh": ops.rnn_reference,
    "relu": partial(ops.rnn_reference, activation="relu"),
    "lstm": ops.lstm_reference,
    "after": ops.gru_reference,
    "before": partial(ops.gru_reference, reset="before"),
}


def draw(cell, rows, inputs, units, bias):
    """Return x_t, the state and the weights, in float64, that ask for gradients."""

    def leaf(*shape):
        return torch.randn(shape, dtype=torch.float64).requires_grad_()

    gates = CELLS[cell][0] * units
    biases = [leaf(gates), leaf(gates)] if bias else []
    w = RecurrentWeights(leaf(gates, inputs), leaf(gates, units), *biases)
    state = (leaf(rows, units), leaf(rows, units)) if cell == "lstm" else leaf(rows, units)
    return leaf(rows, inputs), state, w


def flat(*parts):
    """Return the tensors of states and weights one after the other, absent biases left out."""
    leaves = [leaf for part in parts for leaf in (part if isinstance(part, tuple) else (part,))]
    return [leaf for leaf in leaves if leaf is not None]


def slopes_of(state):
    """Draw gradients of a state, shaped as it is."""
    drawn = tuple(torch.randn_like(leaf) for leaf in flat(state))
    return drawn if isinstance(state, tuple) else drawn[0]


def hold(left, right):
    for one, other in zip(left, right, strict=True):
        assert one.shape == other.shape
        assert (one - other).abs().max() <= TOLERANCE
        assert other.abs().max() > 0


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("rows", "inputs", "units"), [(1, 1, 1), (3, 2, 5), (4, 7, 3)])
def test_a_step_backward_is_autograds(cell, bias, rows, inputs, units):
    _, step, backward = CELLS[cell]
    x_t, state, w = draw(cell, rows, inputs, units, bias)
    if cell == "relu":
        with torch.no_grad():
            for leaf in flat(x_t, state, w):
                leaf.abs_()  # so that some unit is open even if there is only one
    new = step(x_t, state, w)
    slopes = slopes_of(new)
    with torch.no_grad():
        dx, d_state, dw = backward(slopes, x_t, state, w)
    want = torch.autograd.grad(flat(new), flat(x_t, state, w), flat(slopes))
    hold(flat(dx, d_state, dw), want)
    assert (dw.b_ih is None) == (not bias)


def test_an_lstm_step_backward_by_hand():
    """Weights 0, biases i = g = o = 0 and f = ln 3, so i = o = 1/2, f = 3/4, g = 0; c = 0, so tanh(c_t) = 0.

    dh = 2, dc = 1: dc + 2 * 1/2 * 1 = 2; d_i = d_f = d_o = 0, d_g = 2 * 1/2 = 1; dc = 2 * 3/4.
    """
    zero = torch.zeros(1, 1, dtype=torch.float64)
    bias = torch.tensor([0, 1.0986122886681098, 0, 0], dtype=torch.float64)
    w = RecurrentWeights(zero.expand(4, 1), zero.expand(4, 1) + 5, bias, torch.zeros_like(bias))
    _, (dh, dc), dw = ops.lstm_step_backward((zero + 2, zero + 1), zero, (zero, zero), w)
    assert dc.item() == pytest.approx(1.5, abs=1e-12)
    assert dh.item() == pytest.approx(5, abs=1e-12)  # d W_hh
    assert dw.b_ih is not None
    assert dw.b_ih.tolist() == pytest.approx([0, 0, 1, 0], abs=1e-12)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("bias", [True, False])
def test_steps_backward_through_time_sum_to_the_whole(cell, bias):
    _, step, backward = CELLS[cell]
    steps, x = 6, torch.randn(3, 6, 4, dtype=torch.float64).requires_grad_()
    _, state, w = draw(cell, 3, 4, 5, bias)
    y, final = REFERENCES[cell](x, w, state)
    dy, grads = torch.randn_like(y), slopes_of(final)
    want = torch.autograd.grad([y, *flat(final)], [x, *flat(state, w)], [dy, *flat(grads)])
    with torch.no_grad():
        states = [state]
        for t in range(steps):
            states.append(step(x[:, t], states[-1], w))
        dx, total = torch.empty_like(x), [torch.zeros_like(leaf) for leaf in flat(w)]
        for t in reversed(range(steps)):
            grads = (grads[0] + dy[:, t], grads[1]) if cell == "lstm" else grads + dy[:, t]
            dx[:, t], grads, dw = backward(grads, x[:, t], states[t], w)
            total = [one + other for one, other in zip(total, flat(dw), strict=True)]
    hold([dx, *flat(grads), *total], want)
