"""Least squares with a ridge, in closed form; as a forecast, one map from history to horizon."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.core.shapes import Float


@dataclass(frozen=True)
class LinearModel:
    """y = x W + b."""

    weight: Float[np.ndarray, "P Q"]
    bias: Float[np.ndarray, "Q"]

    def predict(self, x: Float[np.ndarray, "N P"]) -> Float[np.ndarray, "N Q"]:
        return x @ self.weight + self.bias


def ridge(x: Float[np.ndarray, "N P"], y: Float[np.ndarray, "N Q"], penalty: float = 0.0) -> LinearModel:
    """Fit W = (X'X + penalty n I)^-1 X'Y on centred columns; b is free of the penalty."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    centre, level = x.mean(0), y.mean(0)
    gram = (x - centre).T @ (x - centre) + penalty * len(x) * np.eye(x.shape[1])
    weight = np.linalg.lstsq(gram, (x - centre).T @ (y - level), rcond=None)[0]
    return LinearModel(weight, level - centre @ weight)


def linear_forecast(
    history: Float[np.ndarray, "N H C"], future: Float[np.ndarray, "N F C"], penalty: float = 1e-3
) -> LinearModel:
    """Fit one map from history to horizon for all channels, their levels taken off."""
    level = history[:, -1:]
    return ridge(_rows(history - level), _rows(future - level), penalty)


def tell_linear(model: LinearModel, history: Float[np.ndarray, "N H C"]) -> Float[np.ndarray, "N F C"]:
    """Forecast with a model of `linear_forecast`."""
    level = history[:, -1:]
    told = model.predict(_rows(history - level)).reshape(len(history), history.shape[2], -1)
    return told.swapaxes(1, 2) + level


def _rows(windows: Float[np.ndarray, "N T C"]) -> Float[np.ndarray, "M T"]:
    """Lay the channels of every window one below the other."""
    return windows.swapaxes(1, 2).reshape(-1, windows.shape[1])
