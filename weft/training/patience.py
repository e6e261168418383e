"""What is best so far, and how long it has stood."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from weft.core.errors import ConfigError, nearest


class Patience:
    """Watches one validation metric: knows the best value, its step, and when waiting is over."""

    def __init__(self, metric: str, better: Mapping[str, str], patience: int):
        known = {"loss": "lower", **better}
        if metric not in known:
            raise ConfigError(f"`train.metric` cannot be `{metric}`.{nearest(metric, known)}")
        self.metric = metric
        self.best: dict[str, float] = {}
        self.best_step = 0
        self._sign = 1.0 if known[metric] == "higher" else -1.0
        self._patience = patience
        self._waited = 0

    def observe(self, values: Mapping[str, float], step: int) -> bool:
        """Hear of a validation; return whether it is the best so far. A NaN is not, nor is it waited for."""
        if self.undefined(values):
            return False
        if not self.improves(values):
            self._waited += 1
            return False
        self.best, self.best_step, self._waited = dict(values), step, 0
        return True

    def improves(self, values: Mapping[str, float]) -> bool:
        """Tell whether these values would be the best so far."""
        if self.undefined(values):
            return False
        return not self.best or self._sign * values[self.metric] > self._sign * self.best[self.metric]

    def undefined(self, values: Mapping[str, float]) -> bool:
        """Tell whether the metric is NaN: nothing could be measured, so nothing is known."""
        if self.metric not in values:
            raise ConfigError(f"`train.metric` cannot be `{self.metric}`.{nearest(self.metric, values)}")
        return math.isnan(values[self.metric])

    @property
    def exhausted(self) -> bool:
        """Whether `patience` validations passed without a new best."""
        return bool(self._patience) and self._waited >= self._patience

    def save(self) -> dict[str, Any]:
        best = {name: repr(value) for name, value in self.best.items()}  # text: inf is no JSON number
        return {"best": best, "best_step": self.best_step, "waited": self._waited}

    def load(self, saved: dict[str, Any]) -> None:
        self.best = {name: float(value) for name, value in saved["best"].items()}
        self.best_step, self._waited = saved["best_step"], saved["waited"]
