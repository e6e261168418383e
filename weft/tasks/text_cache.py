"""A continuous cache (Grave, Joulin, Usunier 2017): words that followed states like this one come again.

    p_cache(w) ~ sum over the last C steps i of [w_i = w] exp(s cos(y_t, y_i)), y_i the output that told w_i
    p(w) = (1 - share) p_model(w) + share p_cache(w)

Nothing is learned: what it knows is the text read so far, so that names of a new text are met again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch

from weft.core.shapes import Float, Int, Tensor


class Past(NamedTuple):
    """The last outputs of each row, of norm 1, and the tokens that came after them."""

    outputs: Float[Tensor, "B C D"]
    tokens: Int[Tensor, "B C"]


@dataclass(frozen=True)
class TextCache:
    """How far back is looked, what share of the probability it gets, how much likeness counts."""

    size: int
    share: float
    sharpness: float

    def mix(
        self,
        log_p: Float[Tensor, "B T V"],
        y: Float[Tensor, "B T D"],
        wanted: Int[Tensor, "B T"],
        past: Past | None,
    ) -> tuple[Float[Tensor, "B T V"], Past]:
        """Return log p with the cache's share in it, and the past to go on with.

        Step t sees what was said before it alone: `wanted` enters the cache for the steps after.
        """
        here = Past(torch.nn.functional.normalize(y.float(), dim=2), wanted.clamp(min=0))
        past = past or Past(here.outputs[:, :0], here.tokens[:, :0])
        seen = Past(*(torch.cat(pair, dim=1) for pair in zip(past, here, strict=True)))
        shares = self._shares(here.outputs, seen.outputs)
        known = torch.zeros_like(log_p).scatter_add(2, _like(seen.tokens, shares), shares.to(log_p.dtype))
        mixed = torch.logaddexp(log_p + _log(1 - self.share), known.log() + _log(self.share))
        empty = ~(shares > 0).any(2, keepdim=True)  # the first step of all has nothing behind it
        kept = Past(*(part[:, -self.size :] for part in seen))
        return torch.where(empty, log_p, mixed), kept

    def _shares(self, asking: Float[Tensor, "B T D"], seen: Float[Tensor, "B S D"]) -> Float[Tensor, "B T S"]:
        """Return how much of the cache's probability each place seen gets: 0 at and after the step itself."""
        steps, places = asking.shape[1], seen.shape[1]
        ages = torch.arange(places - steps, places, device=seen.device).unsqueeze(1)
        ages = ages - torch.arange(places, device=seen.device)  # (T, S) steps back
        out = (ages <= 0) | (ages > self.size)
        scores = (self.sharpness * (asking @ seen.mT)).masked_fill(out, -torch.inf)
        return torch.softmax(scores, dim=2).nan_to_num(0.0)


def _like(tokens: Int[Tensor, "B S"], shares: Float[Tensor, "B T S"]) -> Int[Tensor, "B T S"]:
    return tokens.unsqueeze(1).expand_as(shares)


def _log(x: float) -> Tensor:
    return torch.tensor(x).log()
