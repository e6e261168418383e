"""One step backward of each recurrent cell, by hand: the chain rule written out.

d is the gradient of the gates before their nonlinearity; all else follows from it by products:

    dx_t = d W_ih    dh = d W_hh + what does not pass the gates
    dW_ih = d^T x_t    dW_hh = d^T h    db_ih = db_hh = sum of d over the rows

sigmoid' = s (1 - s) and tanh' = 1 - t^2, so the gates themselves are all it takes. Names are those of
`gradients` in `weft/ops/kernels/recurrence.cu`: old and now are the state before and after the step.
"""

from __future__ import annotations

import torch

from weft.core.shapes import Float, Tensor
from weft.ops.lstm import LSTMPair, lstm_gates
from weft.ops.rnn import rnn_step
from weft.ops.weights import RecurrentWeights


def rnn_step_backward(
    dh: Float[Tensor, "B U"],
    x_t: Float[Tensor, "B D"],
    h: Float[Tensor, "B U"],
    w: RecurrentWeights,
    activation: str = "tanh",
) -> tuple[Float[Tensor, "B D"], Float[Tensor, "B U"], RecurrentWeights]:
    """Return the gradients of x_t, h and the weights, dh being that of h_t.

    tanh  d = dh * (1 - h_t^2)
    relu  d = dh where h_t > 0, else 0
    """
    now = rnn_step(x_t, h, w, activation)
    d = dh * (1 - now * now) if activation == "tanh" else dh * (now > 0)
    return d @ w.w_ih, d @ w.w_hh, _weight_gradients(d, d, x_t, h, w)


def lstm_step_backward(
    grads: LSTMPair, x_t: Float[Tensor, "B D"], state: LSTMPair, w: RecurrentWeights
) -> tuple[Float[Tensor, "B D"], LSTMPair, RecurrentWeights]:
    """Return the gradients of x_t, (h, c) and the weights, `grads` being (dh, dc) of (h_t, c_t).

    dc  = dc + dh * o * (1 - tanh(c_t)^2)    c_t is seen by h_t too
    d_i = dc * g * i * (1 - i)
    d_f = dc * c * f * (1 - f)
    d_g = dc * i * (1 - g^2)
    d_o = dh * tanh(c_t) * o * (1 - o)
    dc  = dc * f                             of c, before the step
    """
    (dh, dc), (h, old) = grads, state
    i, f, g, o = lstm_gates(x_t, h, w)
    th = torch.tanh(f * old + i * g)
    dc = dc + dh * o * (1 - th * th)
    d_i = dc * g * i * (1 - i)
    d_f = dc * old * f * (1 - f)
    d_g = dc * i * (1 - g * g)
    d_o = dh * th * o * (1 - o)
    d = torch.cat([d_i, d_f, d_g, d_o], dim=1)
    return d @ w.w_ih, (d @ w.w_hh, dc * f), _weight_gradients(d, d, x_t, h, w)


def gru_step_backward(
    dh: Float[Tensor, "B U"],
    x_t: Float[Tensor, "B D"],
    h: Float[Tensor, "B U"],
    w: RecurrentWeights,
    reset: str = "after",
) -> tuple[Float[Tensor, "B D"], Float[Tensor, "B U"], RecurrentWeights]:
    """Return the gradients of x_t, h and the weights, dh being that of h_t = z * h + (1 - z) * n.

    d_z = dh * (h - n) * z * (1 - z)
    d_n = dh * (1 - z) * (1 - n^2)

    after   d_r = d_n * (W_hn h + b_hn) * r * (1 - r)    W_hn and b_hn meet d_n * r
            dh  = dh * z + [d_r, d_z, d_n * r] W_hh
    before  drh = d_n W_hn                               the gradient of r * h
            d_r = drh * h * r * (1 - r)
            dh  = dh * z + drh * r + [d_r, d_z] W_h(rz)
    """
    back = _gru_after_backward if reset == "after" else _gru_before_backward
    return back(dh, x_t, h, w)


def _gru_after_backward(
    dh: Tensor, x_t: Tensor, old: Tensor, w: RecurrentWeights
) -> tuple[Tensor, Tensor, RecurrentWeights]:
    linear, units = torch.nn.functional.linear, w.hidden
    x_rz, x_n = linear(x_t, w.w_ih, w.b_ih).split([2 * units, units], dim=1)
    h_rz, hidden = linear(old, w.w_hh, w.b_hh).split([2 * units, units], dim=1)
    r, z = torch.sigmoid(x_rz + h_rz).chunk(2, dim=1)
    n = torch.tanh(x_n + r * hidden)

    d_z = dh * (old - n) * z * (1 - z)
    d_n = dh * (1 - z) * (1 - n * n)
    d_r = d_n * hidden * r * (1 - r)
    d, d_hh = torch.cat([d_r, d_z, d_n], dim=1), torch.cat([d_r, d_z, d_n * r], dim=1)
    return d @ w.w_ih, dh * z + d_hh @ w.w_hh, _weight_gradients(d, d_hh, x_t, old, w)


def _gru_before_backward(
    dh: Tensor, x_t: Tensor, old: Tensor, w: RecurrentWeights
) -> tuple[Tensor, Tensor, RecurrentWeights]:
    linear, units = torch.nn.functional.linear, w.hidden
    w_rz, w_n = w.w_hh.split([2 * units, units])
    b_rz, b_n = (None, None) if w.b_hh is None else w.b_hh.split([2 * units, units])
    x_rz, x_n = linear(x_t, w.w_ih, w.b_ih).split([2 * units, units], dim=1)
    r, z = torch.sigmoid(x_rz + linear(old, w_rz, b_rz)).chunk(2, dim=1)
    n = torch.tanh(x_n + linear(r * old, w_n, b_n))

    d_z = dh * (old - n) * z * (1 - z)
    d_n = dh * (1 - z) * (1 - n * n)
    drh = d_n @ w_n
    d_r = drh * old * r * (1 - r)
    d_rz, d = torch.cat([d_r, d_z], dim=1), torch.cat([d_r, d_z, d_n], dim=1)
    weights = _weight_gradients(d, d, x_t, old, w)
    weights = weights._replace(w_hh=torch.cat([d_rz.mT @ old, d_n.mT @ (r * old)]))
    return d @ w.w_ih, dh * z + drh * r + d_rz @ w_rz, weights


def _weight_gradients(
    d_ih: Tensor, d_hh: Tensor, x_t: Tensor, h: Tensor, w: RecurrentWeights
) -> RecurrentWeights:
    """Return dW = d^T input and db = the sum of d over the rows; d_hh is what meets W_hh."""
    b_ih = None if w.b_ih is None else d_ih.sum(0)
    b_hh = None if w.b_hh is None else d_hh.sum(0)
    return RecurrentWeights(d_ih.mT @ x_t, d_hh.mT @ h, b_ih, b_hh)
