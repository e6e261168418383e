"""From summed gradients to the step's gradient: divided by the count, its norm measured and limited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn.utils import get_total_norm

from weft.core.shapes import Tensor


@dataclass(frozen=True)
class Reading:
    """What one step measured, as plain numbers."""

    loss: float  # summed over `count` elements
    count: float
    norm: float  # of the mean's gradient, before clipping
    clipped: bool


class Clipper:
    """Limits the global norm: g ← g / count · min(1, limit / ‖g / count‖).

    Norm, loss and count are read back in one transfer. It is the only time a step waits for its
    device: about 20 µs on a GPU plus the queue's refill (nothing on a CPU), and for it a
    non-finite value is known before the update.
    """

    def __init__(self, limit: float):
        self._limit = limit or float("inf")

    def clip(self, parameters: Sequence[Tensor], loss: Tensor, count: Tensor) -> Reading:
        """Turn gradients of a sum into the clipped gradient of the mean."""
        gradients = [p.grad for p in parameters if p.grad is not None]
        norm = get_total_norm(gradients) if gradients else torch.zeros_like(loss)
        total, elements, length = torch.stack([loss, count.to(loss), norm.to(loss)]).tolist()
        length /= max(elements, 1.0)
        factor = min(1.0, self._limit / length) if length > 0 else 1.0
        _scale(gradients, factor / max(elements, 1.0))
        return Reading(total, elements, length, clipped=factor < 1.0)


def _scale(gradients: list[Tensor], factor: float) -> None:
    if gradients:
        torch._foreach_mul_(gradients, factor)
