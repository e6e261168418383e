"""The learning rate as a function of the step."""

from __future__ import annotations

import math
from collections.abc import Callable

from torch.optim import Optimizer

from weft.training.config import TrainConfig


def constant(step: int, warmup: int, total: int) -> float:
    """Return min(1, step / warmup)."""
    return min(1.0, step / max(warmup, 1))


def inverse_sqrt(step: int, warmup: int, total: int) -> float:
    """Return min(step^-½, step · warmup^-3/2) · warmup^½: the lectures' rule, its peak scaled to 1."""
    return min(step**-0.5, step * warmup**-1.5) * warmup**0.5


def cosine(step: int, warmup: int, total: int) -> float:
    """Return ½ (1 + cos(π · (step - warmup) / (total - warmup))) after a linear warm-up."""
    if step <= warmup:
        return constant(step, warmup, total)
    share = min(1.0, (step - warmup) / max(total - warmup, 1))
    return 0.5 * (1 + math.cos(math.pi * share))


_SHAPES: dict[str, Callable[[int, int, int], float]] = {
    "constant": constant,
    "inverse_sqrt": inverse_sqrt,
    "cosine": cosine,
    "plateau": constant,
}


class Schedule:
    """Sets the rate before every step: lr · shape(step) · factor^(times a plateau was met)."""

    def __init__(self, config: TrainConfig, total: int):
        self._config = config
        self._shape = _SHAPES[config.schedule]
        self._total = total
        self._drops = 0
        self._waited = 0

    def rate(self, step: int) -> float:
        """Return the rate of step 1, 2, …"""
        config = self._config
        return config.lr * self._shape(step, config.warmup, self._total) * config.plateau_factor**self._drops

    def set(self, optimizer: Optimizer, step: int) -> float:
        """Give the optimizer the rate of this step, and return it."""
        rate = self.rate(step)
        for group in optimizer.param_groups:
            group["lr"] = rate
        return rate

    def observe(self, improved: bool) -> None:
        """Hear of a validation; after `plateau_patience` without a new best a plateau lowers the rate."""
        self._waited = 0 if improved else self._waited + 1
        if self._config.schedule == "plateau" and self._waited >= self._config.plateau_patience:
            self._drops += 1
            self._waited = 0

    def save(self) -> dict[str, int]:
        return {"drops": self._drops, "waited": self._waited}

    def load(self, saved: dict[str, int]) -> None:
        self._drops, self._waited = saved["drops"], saved["waited"]
