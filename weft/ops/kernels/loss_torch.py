"""Rows of logits by torch, on any device: the functions of `loss_triton` in as many calls as needed."""

from __future__ import annotations

from weft.core.shapes import Tensor
from weft.ops.loss import IGNORE

ALIGN = 1  # rows of logits need no padding


def write_losses(
    logits: Tensor, words: int, target: Tensor, smoothing: float, losses: Tensor, norms: Tensor
) -> None:
    """Write each row's loss and log sum_v exp(logit[v]), 0 where the target is ignored; spend the logits."""
    x, ignored = logits.to(losses.dtype), target == IGNORE
    top = x.amax(1)
    x = x.sub_(top.unsqueeze(1))
    picked = x.gather(1, target.masked_fill(ignored, 0).unsqueeze(1)).squeeze(1)
    mean = x.mean(1) if smoothing else 0
    log_sum = x.exp_().sum(1).log()
    losses.copy_((log_sum - (1 - smoothing) * picked - smoothing * mean).masked_fill(ignored, 0))
    norms.copy_((top + log_sum).masked_fill(ignored, 0))


def take_gradients(
    logits: Tensor,
    words: int,
    target: Tensor,
    slopes: Tensor,
    norms: Tensor,
    smoothing: float,
    column_sums: Tensor | None,
) -> Tensor:
    """Return slope (p[v] - (1-e)[v = target] - e/V), and add its sums over rows."""
    ignored = target == IGNORE
    d = logits.to(norms.dtype).sub_(norms.unsqueeze(1)).exp_()
    hit = d.new_full((1, 1), smoothing - 1).expand(d.shape[0], 1)
    d.sub_(smoothing / words).scatter_add_(1, target.masked_fill(ignored, 0).unsqueeze(1), hit)
    d.mul_(slopes.unsqueeze(1)).masked_fill_(ignored.unsqueeze(1), 0)
    if column_sums is not None:
        column_sums += d.sum(0)
    return d.to(logits.dtype)
