"""Recurrent layers drawn at random, and the fused recurrence held against the equation on them."""

from typing import NamedTuple

import torch

from weft import ops
from weft.ops.kernels import plan
from weft.ops.kernels.products import WAYS
from weft.ops.weights import RecurrentWeights

TOLERANCE = {torch.bfloat16: 2e-2, torch.float16: 3e-3, torch.float32: 3e-3}  # of the norm
# fp32 is multiplied as tf32, which has the 10 bits of fp16; where it is not, what is left is the logic
EXACT = {**TOLERANCE, torch.float32: 1e-5}
REFERENCES = {
    "tanh": ops.rnn_reference,
    "relu": lambda *a: ops.rnn_reference(*a, activation="relu"),
    "lstm": ops.lstm_reference,
    "gru_after": ops.gru_reference,
    "gru_before": lambda *a: ops.gru_reference(*a, reset="before"),
}


class Draw(NamedTuple):
    """One layer and its inputs."""

    cell: str
    dtype: torch.dtype
    batch: int
    steps: int
    inputs: int
    units: int
    ways: str
    bias: bool = True
    ragged: bool = False
    starts: bool = False


def make(d: Draw, device: str):
    """Return x, weights of each direction, states, lengths, in the draw's type."""
    gates, dirs = plan.CELLS[d.cell].gates, len(WAYS[d.ways])
    shapes = [(gates * d.units, d.inputs), (gates * d.units, d.units), *[(gates * d.units,)] * (2 * d.bias)]
    bound = d.units**-0.5

    def leaf(*shape, scale=1.0):
        return (torch.randn(shape, device=device) * scale).to(d.dtype).requires_grad_()

    x = leaf(d.batch, d.steps, d.inputs)
    weights = [RecurrentWeights(*(leaf(*s, scale=bound) for s in shapes)) for _ in range(dirs)]
    count = 2 if d.cell == "lstm" else 1
    states = [
        tuple(leaf(d.batch, d.units, scale=0.5) for _ in range(count)) if d.starts else None
        for _ in range(dirs)
    ]
    lengths = torch.randint(0, d.steps + 1, (d.batch,), device=device) if d.ragged else None
    return x, weights, states, lengths


def poison(device: str):
    """Fill the memory that comes next from torch's store with NaN."""
    held = [torch.full((n,), float("nan"), device=device) for n in (10, 1000, 100_000, 3_000_000)]
    del held


def fused(d: Draw, x, weights, states, lengths):
    from weft.ops.fused import fused_layer

    return fused_layer(d.cell, x, weights, states, lengths, d.ways)


def reference(d: Draw, x, weights, states, lengths):
    """Run the equation in each direction, in float32."""
    outputs, finals = [], []
    for reverse, w, state in zip(WAYS[d.ways], weights, states, strict=True):
        zeros = x.new_zeros(d.batch, d.units)
        start = state or tuple(zeros for _ in range(2 if d.cell == "lstm" else 1))
        start = start if d.cell == "lstm" else start[0]
        y, final = REFERENCES[d.cell](x, w, start, lengths, reverse)
        outputs.append(y)
        finals.append(final if isinstance(final, tuple) else (final,))
    return torch.cat(outputs, 2), finals


def everything(run, d: Draw, x, weights, states, lengths, slopes):
    """Return outputs, final states and the gradients of one fixed scalar of them."""
    y, finals = run(d, x, weights, states, lengths)
    outputs = [y, *(leaf for final in finals for leaf in final)]
    if not slopes:
        slopes += [torch.randn(o.shape, device=o.device).to(d.dtype) for o in outputs]
    leaves = [x, *(leaf for w in weights for leaf in w if leaf is not None)]
    leaves += [leaf for state in states if state for leaf in state]
    scalar = sum((o.float() * s.float()).sum() for o, s in zip(outputs, slopes, strict=True))
    return outputs + list(torch.autograd.grad(scalar, leaves))


def check_nan(d: Draw, device: str):
    """Put NaN with every bit set into one row of x, one of h0 and one of the gradient: they stay there.

    Every bit set is also what a place holds before it is written, so whoever told it would be waited for.
    """
    made, steps = make(d, device), d.steps
    x, _, states, _ = made
    poisoned = x.data[1, steps // 2], states[0][0].data[2]
    slope = torch.randn(d.batch, steps, d.units, device=device).to(d.dtype)
    for values in (*poisoned, slope[3, steps // 2]):
        values.view(torch.int32 if d.dtype == torch.float32 else torch.int16).fill_(-1)
    y = fused(d, *made)[0]
    (dx,) = torch.autograd.grad(y, x, slope)
    assert y[1, steps // 2 :].isnan().all()
    assert y[2].isnan().all()
    assert dx[3, : steps // 2 + 1].isnan().all()
    for whole, rows in ((y, [0, 3]), (dx, [0])):
        assert whole[rows].isfinite().all()


def widen(made):
    x, weights, states, lengths = made

    def wide(t):
        return None if t is None else t.detach().double().requires_grad_()

    weights = [RecurrentWeights(*map(wide, w)) for w in weights]
    return wide(x), weights, [state and tuple(map(wide, state)) for state in states], lengths


def check(d: Draw, device: str, tolerance: dict[torch.dtype, float] = TOLERANCE):
    """Hold the kernel against the equation in float64; NaN stands in all padding."""
    made, slopes = make(d, device), []
    if d.ragged:
        padding = torch.arange(d.steps, device=device) >= made[3].unsqueeze(1)
        made[0].data[padding] = float("nan")
    poison(device)
    got = everything(fused, d, *made, slopes)
    want = everything(reference, d, *widen(made), slopes)
    for name, one, other in zip(range(len(got)), got, want, strict=True):
        assert one.isfinite().all(), (d, name)
        error = (one.double() - other).norm().item()
        bound = tolerance[d.dtype] * other.norm().item() + 1e-6 * other.numel() ** 0.5
        assert error <= bound, (d, name, error, bound)
