"""The lectures' GRU where no kernel runs it: step by step into memory laid out before, backward by hand.

    r, z   = sigmoid(g_rz + h W_rz)
    n      = tanh(g_n + (r * h) W_n)
    h_t    = z * h + (1 - z) * n                 g: the input's share of the gates with both biases

Autograd would keep a node for each operation of each step. Here a step is five calls forward and eight
backward, and everything that needs no order is one operation over all steps.
"""

from __future__ import annotations

from typing import Any

import torch

from weft.core.errors import InputError
from weft.core.shapes import Float, Tensor
from weft.ops.weights import followed, time_steps


def gru_loop(
    gates: Float[Tensor, "T B G"], w_hh: Float[Tensor, "G U"], h: Float[Tensor, "B U"], reverse: bool
) -> tuple[Float[Tensor, "T B U"], Float[Tensor, "B U"]]:
    """Return the states of all steps and the last one, time first; it can be differentiated once."""
    run = _by_autograd if gates.shape[0] == 1 or followed() else _Loop.apply
    return run(gates, w_hh.to(gates.dtype), h.to(gates.dtype), reverse)


def _by_autograd(gates: Tensor, w_hh: Tensor, h: Tensor, reverse: bool) -> tuple[Tensor, Tensor]:
    """Run the equation in operations that torch can follow."""
    units = h.shape[1]
    w_rz, w_n = w_hh.mT.split([2 * units, units], dim=1)
    y: dict[int, Tensor] = {}
    for t in time_steps(gates.shape[0], reverse):
        g_rz, g_n = gates[t].split([2 * units, units], dim=1)
        r, z = torch.addmm(g_rz, h, w_rz).sigmoid().chunk(2, dim=1)
        n = torch.addmm(g_n, r * h, w_n).tanh()
        y[t] = h = torch.lerp(n, h, z)
    return torch.stack([y[t] for t in range(gates.shape[0])]), h


class _Loop(torch.autograd.Function):
    """The steps, and their gradients from the last to the first."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, w_hh: Tensor, h: Tensor, reverse: bool) -> tuple[Tensor, Tensor]:
        (steps, batch, _), units = gates.shape, h.shape[1]
        rz = gates.new_empty(steps, batch, 2 * units)
        n, rh, y = (gates.new_empty(steps, batch, units) for _ in range(3))
        w_rz, w_n = w_hh.mT.split([2 * units, units], dim=1)
        each = _by_step(*gates.split([2 * units, units], 2), rz, *rz.chunk(2, 2), n, rh, y)
        state = h
        for t in time_steps(steps, reverse):
            g_rz, g_n, rz_t, r_t, z_t, n_t, rh_t, y_t = each[t]
            torch.addmm(g_rz, state, w_rz, out=rz_t).sigmoid_()
            torch.mul(r_t, state, out=rh_t)
            torch.addmm(g_n, rh_t, w_n, out=n_t).tanh_()
            state = torch.lerp(n_t, state, z_t, out=y_t)
        ctx.reverse = reverse
        ctx.save_for_backward(w_hh, h, rz, n, rh, y)
        return y, state.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        if torch.is_grad_enabled():  # create_graph: these gradients would stand in no graph
            raise InputError('`reset="before"` is differentiated once by its loop. Try backend="reference".')
        dy, dh = grads
        w_hh, h, rz, n, rh, y = ctx.saved_tensors
        units = h.shape[1]
        before = torch.cat([y[1:], h[None]] if ctx.reverse else [h[None], y[:-1]])
        d_gates, dh = _walk_back(dy, dh.clone(), w_hh, before, rz, n, ctx.reverse)
        d_rz, d_n = (part.flatten(0, 1) for part in d_gates.split([2 * units, units], 2))
        d_w = torch.cat([d_rz.mT @ before.flatten(0, 1), d_n.mT @ rh.flatten(0, 1)])
        return d_gates, d_w, dh, None


def _by_step(*parts: Tensor) -> list[tuple[Tensor, ...]]:
    """Return what each step has of each part."""
    return list(zip(*(part.unbind(0) for part in parts), strict=True))


def _walk_back(
    dy: Tensor, dh: Tensor, w_hh: Tensor, before: Tensor, rz: Tensor, n: Tensor, reverse: bool
) -> tuple[Tensor, Tensor]:
    """Return the gradients of the gates before their nonlinearity (T, B, G), and of the first state.

    d_n = dh (1 - z) (1 - n^2)        d_rh = d_n W_n^T          d_z = dh (h - n) z (1 - z)
    d_r = d_rh h r (1 - r)            dh  <- dh z + d_rh r + d_rz W_rz^T
    """
    units = dh.shape[1]
    r, z = rz.chunk(2, 2)
    slopes = (before * r * (1 - r), (before - n) * z * (1 - z), (1 - z) * (1 - n.square()))
    made = dy.new_empty(*dy.shape[:2], 3 * units)
    d_rz, d_n = made.split([2 * units, units], 2)
    w_rz, w_n = w_hh.split([2 * units, units])
    d_rh = torch.empty_like(dh)
    each = _by_step(dy, r, z, *slopes, d_rz, *d_rz.chunk(2, 2), d_n)
    for t in time_steps(len(each), not reverse):
        dy_t, r_t, z_t, slope_r, slope_z, slope_n, d_rz_t, d_r_t, d_z_t, d_n_t = each[t]
        dh.add_(dy_t)
        torch.mul(dh, slope_n, out=d_n_t)
        torch.mul(dh, slope_z, out=d_z_t)
        torch.mm(d_n_t, w_n, out=d_rh)
        torch.mul(d_rh, slope_r, out=d_r_t)
        dh.mul_(z_t).addcmul_(d_rh, r_t).addmm_(d_rz_t, w_rz)
    return made, dh
