"""A moving average of the weights, better to predict with than the last ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from weft.core.shapes import Tensor


class Ema:
    """Keeps average ← d · average + (1 - d) · weights, d = min(decay, (1 + n) / (10 + n)) after n steps.

    The smaller d of the first steps forgets where the weights began. With decay 0 nothing is kept
    and the weights stand for their own average.
    """

    def __init__(self, model: nn.Module, decay: float):
        self._model = model
        self._decay = decay
        self._updates = 0
        parameters = [p for p in model.parameters() if p.requires_grad] if decay else []
        self._weights: list[Tensor] = [p.detach() for p in parameters]
        self._averages = [w.clone() for w in self._weights]

    @torch.no_grad()
    def update(self) -> None:
        """Move the average towards the weights."""
        self._updates += 1
        if self._averages:
            decay = min(self._decay, (1 + self._updates) / (10 + self._updates))
            torch._foreach_lerp_(self._averages, self._weights, 1 - decay)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Let the model bear the average inside the block."""
        raw = [w.clone() for w in self._weights]
        _copy(self._averages, self._weights)
        try:
            yield
        finally:
            _copy(raw, self._weights)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the model's state_dict with the average in the weights' place."""
        average = {_place(w): a for w, a in zip(self._weights, self._averages, strict=True)}
        weights: dict[str, Tensor] = self._model.state_dict()
        return {name: average.get(_place(tensor), tensor) for name, tensor in weights.items()}

    def save(self) -> dict[str, Any]:
        """Return what `state_dict` does not hold: the weights under training."""
        return {"updates": self._updates, "raw": list(self._weights)}

    def load(self, saved: dict[str, Any]) -> None:
        """Take the model's weights, just loaded, for the average, and give it the raw ones."""
        self._updates = saved["updates"]
        _copy(self._weights, self._averages)
        _copy(saved["raw"], self._weights)


@torch.no_grad()
def _copy(sources: list[Tensor], targets: list[Tensor]) -> None:
    for source, target in zip(sources, targets, strict=True):
        target.copy_(source)


def _place(tensor: Tensor) -> tuple[int, torch.Size]:
    return tensor.data_ptr(), tensor.shape
