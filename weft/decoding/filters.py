"""What may come next. Each filter maps scores to scores, -inf where a token is out."""

from __future__ import annotations

import math

import torch

from weft.core.shapes import Bool, Float, Int, Tensor
from weft.decoding.limits import Rules
from weft.decoding.ranking import best


def forbid_end(scores: Float[Tensor, "B V"], early: Bool[Tensor, "B"], eos: int) -> Float[Tensor, "B V"]:
    """Forbid `eos` on the lanes where `early` is True."""
    scores = scores.clone()
    scores[:, eos] = scores[:, eos].masked_fill(early, -torch.inf)
    return scores


def forbid_repeats(
    scores: Float[Tensor, "B V"], history: Int[Tensor, "B T"], size: int
) -> Float[Tensor, "B V"]:
    """Forbid tokens that would complete a run of `size` tokens the lane already holds."""
    if history.shape[1] < size:
        return scores
    runs = history.unfold(1, size, 1)  # (B, T - size + 1, size)
    suffix = history[:, history.shape[1] - (size - 1) :].unsqueeze(1)
    repeats = (runs[..., :-1] == suffix).all(2)
    ceiling = torch.zeros_like(repeats, dtype=scores.dtype).masked_fill(
        repeats, -torch.inf
    )  # scores are <= 0
    return scores.scatter_reduce(1, runs[..., -1], ceiling, "amin")


def force_prefix(
    allowed: Float[Tensor, "B V"], scores: Float[Tensor, "B V"], rules: Rules, step: int
) -> Float[Tensor, "B V"]:
    """Allow only token `step` of the prefix where the prefix reaches that far, whatever else forbids it."""
    token = rules.prefix[:, step : step + 1]
    only = torch.full_like(scores, -torch.inf).scatter(1, token, scores.gather(1, token))
    return torch.where((rules.forced > step).unsqueeze(1), only, allowed)


def top_k(scores: Float[Tensor, "B V"], count: int) -> tuple[Float[Tensor, "B W"], Int[Tensor, "B W"]]:
    """Return the `count` best scores of each lane and their tokens, best first."""
    return best(scores, min(count, scores.shape[1]))


def top_p(ranked: Float[Tensor, "B V"], share: float) -> Float[Tensor, "B V"]:
    """Keep the fewest best tokens that hold `share` of the probability; `ranked` comes best first."""
    probabilities = ranked.softmax(1)
    before = probabilities.cumsum(1) - probabilities
    keep = before < share
    keep[:, 0] = True
    return ranked.masked_fill(~keep, -torch.inf)


def min_p(scores: Float[Tensor, "B V"], ratio: float) -> Float[Tensor, "B V"]:
    """Keep tokens with p >= ratio · max p."""
    if ratio == 0:
        return scores
    return scores.masked_fill(scores < scores.amax(1, keepdim=True) + math.log(ratio), -torch.inf)
