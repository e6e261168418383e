"""The seasonal naive forecast: every step as it was one season ago."""

from __future__ import annotations

import numpy as np

from weft.core.errors import DataError
from weft.core.shapes import Float


def seasonal_naive(
    history: Float[np.ndarray, "N H C"], horizon: int, season: int = 1
) -> Float[np.ndarray, "N F C"]:
    """Repeat the last season of each history: y_{t+k} = x_{t+k-season}, cycled where k > season."""
    steps = history.shape[1]
    if not 1 <= season <= steps:
        raise DataError(f"A season must have 1 to {steps} steps, the history's, but has {season}.")
    return history[:, steps - season + np.arange(horizon) % season]
