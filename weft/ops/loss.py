"""Label-smoothed cross-entropy with the output projection."""

from __future__ import annotations

import torch

from weft.core.errors import InputError
from weft.core.shapes import Float, Int, Tensor
from weft.ops import trust
from weft.ops.fused import working_dtype
from weft.ops.weights import choose_backend, readable

IGNORE = -1  # a target of this value takes no part

# Bytes of logits from which they are made in chunks. On a GPU that saves passes over memory and so time;
# on a CPU it costs a fourth product, and saves memory.
LARGE_ON_GPU, LARGE = 32 * 2**20, 256 * 2**20


def cross_entropy_reference(
    hidden: Float[Tensor, "M D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, "V"] | None,
    target: Int[Tensor, "M"],
    smoothing: float = 0.0,
) -> Float[Tensor, "M"]:
    """Return each row's loss -(1-e) log p[target] - e mean_v log p[v]; 0 where the target is ignored."""
    logits = torch.nn.functional.linear(hidden, weight, bias)
    log_p = torch.log_softmax(logits, dim=1, dtype=torch.promote_types(logits.dtype, torch.float32))
    picked = log_p.gather(1, target.masked_fill(target == IGNORE, 0).unsqueeze(1)).squeeze(1)
    loss = -(1 - smoothing) * picked - smoothing * log_p.mean(1)
    return loss.masked_fill(target == IGNORE, 0)


def cross_entropy(
    hidden: Float[Tensor, "M D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, "V"] | None,
    target: Int[Tensor, "M"],
    smoothing: float = 0.0,
    per_token: bool = False,
    backend: str = "auto",
) -> tuple[Tensor, Tensor]:
    """Return (sum of losses, number of targets counted); per_token gives the losses (M,) for the sum.

    "plain" holds the logits whole; "chunked" makes them a part at a time, and again in the backward pass.
    A row whose target is ignored gives nothing, whatever stands in it.
    """
    if not 0 <= smoothing <= 1:
        raise InputError(f"`smoothing` must lie between 0 and 1, but is {smoothing}. Try 0.1.")
    _check_targets(target, weight.shape[0])
    ignored = target == IGNORE
    hidden = hidden.masked_fill(ignored.unsqueeze(1), 0)  # a gradient of zero does not undo a NaN
    backend = choose_backend(backend, ("reference", "plain", "chunked"), _fastest(hidden, weight))
    if backend == "reference":
        losses = cross_entropy_reference(hidden, weight, bias, target, smoothing)
    elif backend == "plain":
        losses = token_losses(torch.nn.functional.linear(hidden, weight, bias), target, smoothing)
    else:
        from weft.ops.kernels.loss import chunked_losses

        losses = chunked_losses(hidden, weight, bias, target, smoothing, working_dtype(hidden))
    return (losses if per_token else losses.sum()), (~ignored).sum()


def _check_targets(target: Int[Tensor, "M"], words: int) -> None:
    """Refuse a target that is no word, where it can be read: torch's own -100 among them."""
    if target.numel() and readable(target):
        least, most = (int(end) for end in target.aminmax())
        if least < IGNORE or most >= words:
            wrong = least if least < IGNORE else most
            raise InputError(
                f"`target` must lie between 0 and {words - 1}, or be {IGNORE} (ignored), but one is {wrong}."
            )


def _fastest(hidden: Tensor, weight: Tensor) -> str:
    """Return the backend for these sizes: logits that are small may be held."""
    if hidden.is_cuda and "loss" not in trust.TRUSTED:
        return "plain"
    size = hidden.shape[0] * weight.shape[0] * working_dtype(hidden).itemsize
    return "chunked" if size > (LARGE_ON_GPU if hidden.is_cuda else LARGE) else "plain"


def token_losses(
    logits: Float[Tensor, "M V"], target: Int[Tensor, "M"], smoothing: float = 0.0
) -> Float[Tensor, "M"]:
    """Return each row's loss from logits; 0 where the target is ignored."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return torch.nn.functional.cross_entropy(
        logits, target, ignore_index=IGNORE, reduction="none", label_smoothing=smoothing
    )
