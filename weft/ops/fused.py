"""Recurrent layers on a GPU in one launch a pass: whether they can run there, and running them.

`weft.ops.kernels` is imported only where there is a GPU to run on.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from weft.core.errors import ConfigError
from weft.core.shapes import Tensor
from weft.ops import trust
from weft.ops.weights import RecurrentWeights, both_biases, choose_backend


def choose_recurrent(
    backend: str, cell: str, x: Tensor, w: RecurrentWeights, elsewhere: str = "torch"
) -> str:
    """Return "fused", "reference", or the backend that serves `elsewhere`.

    "auto" takes the fused kernel where it runs and is trusted; a name that cannot run here fails with the
    reason.
    """
    known = ("reference", elsewhere, "fused")
    if backend == "auto":
        return "fused" if runs_fused(cell, x, [w]) else elsewhere
    name = choose_backend(backend, known, "auto")
    reason = _refusal(cell, x, w.hidden) if name == "fused" else None
    if reason is not None:
        raise ConfigError(f'backend="fused" cannot run this layer: {reason}. Try backend="auto".')
    return name


def _refusal(cell: str, x: Tensor, units: int, directions: int = 1) -> str | None:
    """Return why the fused kernel cannot run a layer, or None if it can."""
    if not x.is_cuda:
        return "its input is not on a CUDA device"
    if x.numel() == 0:
        return "its input is empty"
    from weft.ops.kernels import recurrence

    return recurrence.why_not(x, working_dtype(x), units, directions, cell)


def working_dtype(x: Tensor) -> torch.dtype:
    """Return the type the layer works in: autocast's where that is on, as torch's recurrent layers do."""
    autocast = torch.is_autocast_enabled(x.device.type) and x.dtype != torch.float64
    return torch.get_autocast_dtype(x.device.type) if autocast else x.dtype


def fused_layer(
    cell: str,
    x: Tensor,
    weights: Sequence[RecurrentWeights],
    states: Sequence[tuple[Tensor, ...] | None],
    lengths: Tensor | None,
    ways: str,
) -> tuple[Tensor, list[tuple[Tensor, ...]]]:
    """Run a layer one way or both; return the outputs (B, T, dirs * U) and each direction's final state.

    ways    "forward", "backward" (from each row's last valid step), or "both"
    states  (h,) or, for lstm, (h, c) of each direction; None for zeros
    """
    from weft.ops.kernels.autograd import recurrence

    dtype = working_dtype(x)
    flat = [leaf.to(dtype) for w in map(both_biases, weights) for leaf in w if leaf is not None]
    h0, c0 = (_gather(states, i, dtype) for i in (0, 1))
    lengths = None if lengths is None else lengths.to(x.device, torch.int64, non_blocking=True)
    y, hn, cn = recurrence(x.to(dtype), flat, h0, c0, lengths, cell, ways)
    finals = zip(hn.unbind(0), cn.unbind(0), strict=True) if cell == "lstm" else ((h,) for h in hn.unbind(0))
    return y, list(finals)


def _gather(states: Sequence[tuple[Tensor, ...] | None], leaf: int, dtype: torch.dtype) -> Tensor | None:
    """Return one leaf of all directions' states as (dirs, B, U), None where there is none."""
    leaves = [None if state is None or leaf >= len(state) else state[leaf] for state in states]
    known = [x for x in leaves if x is not None]
    if not known:
        return None
    return torch.stack([torch.zeros_like(known[0]) if x is None else x for x in leaves]).to(dtype)


def has_kernels(x: Tensor) -> bool:
    """Tell whether "auto" may take the fused kernel where x lies."""
    return x.is_cuda and "recurrence" in trust.TRUSTED


def runs_fused(cell: str, x: Tensor, weights: Sequence[RecurrentWeights]) -> bool:
    """Tell whether "auto" runs all directions of a layer, of one size, in one launch."""
    alike = len({w.hidden for w in weights}) == 1
    return alike and has_kernels(x) and _refusal(cell, x, weights[0].hidden, len(weights)) is None
