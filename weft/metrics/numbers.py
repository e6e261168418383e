"""Metrics of predicted numbers: single values and forecasts."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import ArrayLike

from weft.core.errors import DataError
from weft.metrics.measure import Measurement, Metric, columns, metric_of_sums, paired, ratio


def mae(predictions: ArrayLike, references: ArrayLike) -> Measurement:
    """Measure the mean absolute error: mean |p - y|. Both are (n, ...); a reference of NaN is not counted."""
    predictions, references = paired(predictions, references, np.float64)
    return _mean_over_elements("mae", np.abs(predictions - references), references)


def mse(predictions: ArrayLike, references: ArrayLike) -> Measurement:
    """Measure the mean squared error: mean (p - y)². Both are (n, ...); a reference of NaN is not counted."""
    predictions, references = paired(predictions, references, np.float64)
    return _mean_over_elements("mse", (predictions - references) ** 2, references)


def mase(predictions: ArrayLike, references: ArrayLike, scale: ArrayLike) -> Measurement:
    """Measure the mean absolute scaled error: mean |p - y| / scale.

    `scale` is the mean change of training over a season; it broadcasts against (n, F, C): a number, one a
    channel (C,), or one an item (n, 1, 1). Below 1 beats the seasonal naive forecast in training.
    """
    predictions, references = paired(predictions, references, np.float64)
    scale = np.asarray(scale, dtype=np.float64)
    if not (scale > 0).all():
        raise DataError(
            "MASE needs a positive scale, but a training series never changes (its naive error is 0). "
            "Leave constant series out."
        )
    return _mean_over_elements("mase", np.abs(predictions - references) / scale, references)


def smape(predictions: ArrayLike, references: ArrayLike) -> Measurement:
    """Measure the symmetric mean absolute percentage error: mean 200 |p - y| / (|p| + |y|), 0 for 0/0."""
    predictions, references = paired(predictions, references, np.float64)
    size = np.abs(predictions) + np.abs(references)
    errors = 200 * np.abs(predictions - references) / np.where(size == 0, 1, size)
    return _mean_over_elements("smape", errors, references)


def spearman(predictions: ArrayLike, references: ArrayLike) -> Measurement:
    """Measure Spearman's rank correlation: Pearson's of the ranks, ties sharing their mean rank.

    Constant predictions order nothing: they score 0.
    """
    predictions, references = paired(predictions, references, np.float64)
    return Measurement(Metric("spearman", "higher", _spearman), columns(predictions, references))


def ranks(values: Float[ndarray, "n"]) -> Float[ndarray, "n"]:
    """Return each value's rank from 1, equal values sharing the mean of theirs."""
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[index]


def _spearman(stats: Float[ndarray, "n 2"]) -> float:
    if np.isnan(stats).any():
        return np.nan
    x, y = (centred(ranks(column)) for column in stats.T)
    size = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / size) if size > 0 else 0.0


def centred(values: Float[ndarray, "n"]) -> Float[ndarray, "n"]:
    """Subtract the mean."""
    return values - values.mean()


def _mean_over_elements(name: str, errors: Float[ndarray, "n ..."], references: ndarray) -> Measurement:
    """Sum and count an item's errors (n, ...) where its reference is known."""
    n = len(errors)
    known = ~np.isnan(references)
    sums = np.where(known, errors, 0).reshape(n, -1).sum(1)
    return Measurement(metric_of_sums(name, "lower", ratio), columns(sums, known.reshape(n, -1).sum(1)))
