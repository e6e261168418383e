"""Residual blocks of causal dilated convolutions: x <- relu(x + F_l(x)), block l dilated by 2^l.

F_l is dropout(relu(conv(.))) twice, and a convolution's kernel is g v / ||v||.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from weft.core.errors import ConfigError
from weft.core.sequences import Sequences
from weft.core.shapes import Float, Int, Tensor
from weft.ops import trust
from weft.ops.convolution import causal_conv
from weft.ops.fused import working_dtype
from weft.ops.weights import choose_backend, ragged

BACKENDS = ("reference", "torch", "fused")


class NormedKernel(NamedTuple):
    """One convolution. Its kernel is g v / ||v||, one g an output channel.

    v (D, D, K), g (D, 1, 1), bias (D)
    """

    v: Tensor
    g: Tensor
    bias: Tensor

    def kernel(self) -> Float[Tensor, "D D K"]:
        """Return g v / ||v||."""
        return self.g * self.v / self.v.norm(dim=(1, 2), keepdim=True)


def state_rows(convolutions: int, kernel: int) -> int:
    """Return how many past inputs all convolutions see together: 2 (K-1) (2^L - 1)."""
    return 2 * (kernel - 1) * (2 ** (convolutions // 2) - 1)


def residual_blocks_reference(
    x: Float[Tensor, "B T D"],
    weights: Sequence[NormedKernel],
    dropout: float = 0.0,
    past: Float[Tensor, "B S D"] | None = None,
    lengths: Int[Tensor, "B"] | None = None,
    backend: str = "reference",
) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B S D"]]:
    """Run block after block; return the outputs, zeros in the padding, and what each convolution saw last."""
    whole = lengths is None or not ragged(x, lengths)
    lengths = Sequences.full(x).lengths if lengths is None else lengths
    rows = state_rows(len(weights), weights[0].v.shape[2])
    past = x.new_zeros(x.shape[0], rows, x.shape[2]) if past is None else past
    pasts = split_past(past, len(weights))
    kept = []

    def convolve(c: int, inputs: Tensor) -> Tensor:
        kept.append(keep_past(Sequences(inputs, lengths), pasts[c], whole))
        w = weights[c]
        y = causal_conv(inputs, w.kernel(), w.bias, 2 ** (c // 2), pasts[c], backend)
        return torch.nn.functional.dropout(torch.relu(y), dropout)

    for first in range(0, len(weights), 2):
        x = torch.relu(x + convolve(first + 1, convolve(first, x)))
    return x if whole else Sequences(x, lengths).fill(0).data, torch.cat(kept, dim=1)


def keep_past(x: Sequences, past: Float[Tensor, "B R D"], whole: bool = False) -> Float[Tensor, "B R D"]:
    """Return the R inputs before each row's end, across the seam with `past`; `whole` rows have one end."""
    reach = past.shape[1]
    if whole:
        new = min(reach, x.max_length)
        return torch.cat([past[:, new:], x.data[:, x.max_length - new :]], dim=1)
    joined = torch.cat([past, x.data], dim=1)
    index = x.lengths.unsqueeze(1) + torch.arange(reach, device=past.device)  # (B, R)
    return joined[torch.arange(past.shape[0], device=past.device).unsqueeze(1), index]


def split_past(past: Float[Tensor, "B S D"], convolutions: int) -> Sequence[Tensor]:
    """Return each convolution's own past, (B, R_c, D): R_c = (K-1) 2^l in block l."""
    shares = [2 ** (c // 2) for c in range(convolutions)]
    unit = past.shape[1] // sum(shares)  # K - 1
    return past.split([share * unit for share in shares], dim=1)


def residual_blocks(
    x: Float[Tensor, "B T D"],
    weights: Sequence[NormedKernel],
    dropout: float = 0.0,
    past: Float[Tensor, "B S D"] | None = None,
    lengths: Int[Tensor, "B"] | None = None,
    backend: str = "auto",
) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B S D"]]:
    """Run blocks of two convolutions each; return the outputs, zeros in the padding, and the new past.

    weights  two kernels a block, in order
    past     the last R_c inputs of every convolution c, one behind the other (None: zeros); the new one is
             taken before each row's end, so a ragged batch may be cut anywhere
    dropout  the share of what a convolution gives that is put to zero, by torch's stream of chance
    """
    if not 0 <= dropout < 1:
        raise ConfigError(f"`dropout` must be at least 0 and below 1, but is {dropout}. Try 0.1.")
    reason = _refusal(x, weights)
    chosen = choose_backend(backend, BACKENDS, "fused" if can_fuse_blocks(x, weights) else "torch")
    if chosen != "fused":
        return residual_blocks_reference(x, weights, dropout, past, lengths, chosen)
    if reason is not None:
        raise ConfigError(f'backend="fused" cannot run these blocks: {reason}. Try backend="auto".')
    from weft.ops.kernels.blocks_autograd import residual_stack

    dtype = working_dtype(x)
    past = None if past is None else past.to(dtype)
    lengths = None if lengths is None else lengths.to(x.device, torch.int64, non_blocking=True)
    seed = torch.randint(2**62, (1,), device=x.device) if dropout else None  # drawn where it is read
    return residual_stack(x.to(dtype), past, lengths, seed, dropout, weights)


def can_fuse_blocks(x: Tensor, weights: Sequence[NormedKernel]) -> bool:
    """Tell whether "auto" takes the fused kernels for these blocks."""
    return "blocks" in trust.TRUSTED and _refusal(x, weights) is None


def _refusal(x: Tensor, weights: Sequence[NormedKernel]) -> str | None:
    """Return why the fused kernels cannot run these blocks, or None if they can."""
    if not x.is_cuda:
        return "their input is not on a CUDA device"
    if x.numel() == 0:
        return "their input is empty"
    from weft.ops.kernels import blocks

    return blocks.why_not(x, working_dtype(x), len(weights), weights[0].v.shape[2])
