"""The best few of many scores, ties settled by place, the same on every device."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from weft.core.shapes import Float, Int, Tensor

CHUNK = 128


def best(scores: Float[Tensor, "B V"], count: int) -> tuple[Float[Tensor, "B W"], Int[Tensor, "B W"]]:
    """Return each row's `count` best scores (all ≤ 0) and their places, best first; of equals the first.

    A row shorter than `count` is filled with -inf at places past its end. Whoever is among the
    `count` best sits in one of the `count` chunks with the best maxima (ties by place again), so a
    long row costs one pass for the maxima and a search in `count` chunks.
    """
    size = scores.shape[1]
    if size <= CHUNK * count:
        places = torch.arange(max(size, count), device=scores.device).expand(len(scores), -1)
        return _best_of(F.pad(scores, (0, places.shape[1] - size), value=-torch.inf), places, count)
    places = _places_in_best_chunks(_maxima(scores), count)
    picked = scores.gather(1, places.clamp(max=size - 1)).masked_fill(places >= size, -torch.inf)
    return _best_of(picked, places, count)


def _maxima(scores: Float[Tensor, "B V"]) -> Float[Tensor, "B C"]:
    """Return the maximum of every chunk, the last perhaps short, without a copy of the scores."""
    whole = scores.shape[1] // CHUNK * CHUNK
    maxima = scores[:, :whole].unflatten(1, (-1, CHUNK)).amax(2)  # (B, V/128)
    if whole == scores.shape[1]:
        return maxima
    return torch.cat([maxima, scores[:, whole:].amax(1, keepdim=True)], dim=1)


def _places_in_best_chunks(maxima: Tensor, count: int) -> Tensor:
    numbers = torch.arange(maxima.shape[1], device=maxima.device).expand(len(maxima), -1)
    _, chosen = _best_of(maxima, numbers, count)
    return (chosen.unsqueeze(2) * CHUNK + torch.arange(CHUNK, device=maxima.device)).flatten(1)


def _best_of(scores: Tensor, places: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Rank by one whole number per entry: the bits of |score| as float64, its place in the 29 bits left free.

    Bits of a positive float order as the float does, and float32 leaves the last 29 of float64 zero.
    """
    keys = scores.clamp(max=0).double().abs_().view(torch.int64) + places
    order = keys.topk(count, dim=1, largest=False, sorted=True).indices
    return scores.gather(1, order), places.gather(1, order)
