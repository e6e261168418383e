"""What every recurrent op takes and returns besides tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch.autograd import forward_ad

from weft.core.errors import ConfigError, InputError, nearest
from weft.core.sequences import Sequences
from weft.core.shapes import Bool, Float, Int, Tensor


class RecurrentWeights(NamedTuple):
    """One direction of one layer, in torch's layout; G is the number of gates.

    w_ih (G*U, D), w_hh (G*U, U), b_ih (G*U) or None, b_hh (G*U) or None
    """

    w_ih: Tensor
    w_hh: Tensor
    b_ih: Tensor | None = None
    b_hh: Tensor | None = None

    @property
    def hidden(self) -> int:
        return self.w_hh.shape[1]


def check_shapes(
    x: Tensor, w: RecurrentWeights, state: Sequence[Tensor], lengths: Tensor | None, gates: int
) -> None:
    """Refuse what does not fit together: some of torch's kernels would read beyond it in silence."""
    if x.dim() != 3 or x.shape[2] != w.w_ih.shape[1]:
        raise InputError(
            f"`x` must be (B, T, {w.w_ih.shape[1]}), as wide as `w_ih` takes it, but is {tuple(x.shape)}."
        )
    batch, rows, units = x.shape[0], gates * w.hidden, w.hidden
    parts = [("w_ih", w.w_ih, (rows, x.shape[2])), ("w_hh", w.w_hh, (rows, units))]
    parts += [("b_ih", w.b_ih, (rows,)), ("b_hh", w.b_hh, (rows,))]
    parts += [("state", leaf, (batch, units)) for leaf in state]
    for name, leaf, shape in parts:
        if leaf is not None and leaf.shape != shape:
            raise InputError(
                f"`{name}` must be {shape} for {gates} gates of {units} units and a batch of {batch}, "
                f"but is {tuple(leaf.shape)}."
            )
    check_lengths(lengths, batch, x.shape[1])


def check_lengths(lengths: Any, batch: int, steps: int) -> None:
    """Refuse lengths that are not one whole number a row, from 0 to the steps there are."""
    if lengths is None:
        return
    if not isinstance(lengths, torch.Tensor) or lengths.dtype != torch.int64 or lengths.shape != (batch,):
        found = f"{lengths.dtype} {tuple(lengths.shape)}" if hasattr(lengths, "dtype") else f"{lengths}"
        raise InputError(f"`lengths` must be an int64 tensor ({batch},), one a row, but is {found:.60}.")
    if batch and readable(lengths):
        least, most = (int(end) for end in lengths.aminmax())
        if least < 0 or most > steps:
            wrong = least if least < 0 else most
            raise InputError(
                f"`lengths` must lie between 0 and the {steps} steps there are, but one is {wrong}."
            )


def project_input(x: Float[Tensor, "B T D"], w: RecurrentWeights) -> Float[Tensor, "B T GU"]:
    """Return x W_ih^T + b_ih of all steps in one product."""
    return torch.nn.functional.linear(x, w.w_ih, w.b_ih)


def time_steps(size: int, reverse: bool) -> Iterator[int]:
    """Yield 0..size-1, or the same backwards."""
    return iter(range(size - 1, -1, -1) if reverse else range(size))


def valid_at(t: int, lengths: Int[Tensor, "B"] | None) -> Bool[Tensor, "B 1"] | None:
    """Return which rows have an element at step t; None when all do."""
    return None if lengths is None else (t < lengths).unsqueeze(1)


def keep_valid(valid: Tensor | None, new: Tensor, old: Tensor) -> Tensor:
    """Freeze finished rows: `new` where valid, `old` elsewhere."""
    return new if valid is None else torch.where(valid, new, old)


def blank_padding(x: Float[Tensor, "B T D"], lengths: Int[Tensor, "B"] | None) -> Float[Tensor, "B T D"]:
    """Set padded inputs to zero: whatever stood there, no gradient meets it."""
    return x if lengths is None else Sequences(x, lengths).fill(0).data


def ragged(x: Tensor, lengths: Int[Tensor, "B"]) -> bool:
    """Tell whether some row is padded. Where the answer costs a wait, or cannot be told, it says yes."""
    return not readable(x) or bool((lengths < x.shape[1]).any())


def readable(x: Tensor) -> bool:
    """Tell whether a number may be read back: it lies on a CPU, and nobody follows each operation."""
    return x.is_cpu and not (torch.compiler.is_compiling() or followed())


def followed() -> bool:
    """Tell whether each operation is followed: by vmap and its kin, forward mode, a tracer, an exporter."""
    transformed = torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0
    return transformed or torch.jit.is_tracing() or torch.compiler.is_exporting()


def choose_backend(name: str, known: tuple[str, ...], auto: str) -> str:
    """Return the backend to use; a name that is not known fails."""
    if name == "auto":
        return auto
    if name not in known:
        raise ConfigError(f"There is no backend `{name}`.{nearest(name, ('auto', *known))}")
    return name


def flag_padding(
    x: Float[Tensor, "B T D"], lengths: Int[Tensor, "B"], w_ih: Tensor, gate_bias: list[float]
) -> tuple[Tensor, Tensor]:
    """Add an input column that is 1 at padded steps, and its weights: `gate_bias[g]` for gate g.

    A large weight pins a gate open or shut at padding, so a library kernel that knows nothing of
    lengths freezes the state of finished rows exactly.
    """
    padded = torch.arange(x.shape[1], device=x.device) >= lengths.unsqueeze(1)
    x = torch.cat([x.masked_fill(padded.unsqueeze(2), 0), padded.unsqueeze(2).to(x.dtype)], dim=2)
    column = torch.tensor(gate_bias, dtype=w_ih.dtype, device=w_ih.device)
    column = column.repeat_interleave(w_ih.shape[0] // len(gate_bias)).unsqueeze(1)
    return x, torch.cat([w_ih, column], dim=1)


def kernel_options() -> tuple[bool, int, float, bool, bool, bool]:
    """Return biases, layers, dropout, train, bidirectional, batch_first as torch's kernels take them.

    cuDNN gives gradients only in training mode, so that is on whenever gradients are.
    """
    return True, 1, 0.0, torch.is_grad_enabled(), False, True


def both_biases(w: RecurrentWeights) -> RecurrentWeights:
    """Return the weights with both biases or with none: one that is absent beside the other is zero."""
    if (w.b_ih is None) == (w.b_hh is None):
        return w
    return RecurrentWeights(*zero_bias(w))


def zero_bias(w: RecurrentWeights) -> list[Tensor]:
    """Return the weights as torch's kernels take them, absent biases as zeros."""
    none = w.w_ih.new_zeros(w.w_ih.shape[0])
    return [w.w_ih, w.w_hh, none if w.b_ih is None else w.b_ih, none if w.b_hh is None else w.b_hh]
