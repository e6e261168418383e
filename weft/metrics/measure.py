"""A metric, and one measurement of it: statistics an item, their value, its bootstrap interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray
from numpy.typing import ArrayLike, DTypeLike

from weft.core.errors import DataError

Better = Literal["higher", "lower"]
BLOCK = 4_000_000  # resampling weights held at once: 32 MB
FEW = 1_000  # up to so many different items, drawing their counts beats drawing items


@dataclass(frozen=True)
class Metric:
    """How the statistics of some items become one number.

    value    statistics (n, k), one row an item -> the number
    of_sums  where only the column sums matter: sums (m, k) -> m numbers, which makes resampling fast
    share    the value is a share of 1, which people read in percent
    """

    name: str
    better: Better
    value: Callable[[Float[ndarray, "n k"]], float]
    signature: str = ""
    of_sums: Callable[[Float[ndarray, "m k"]], Float[ndarray, "m"]] | None = None
    share: bool = False


def metric_of_sums(
    name: str,
    better: Better,
    formula: Callable[[Float[ndarray, "m k"]], Float[ndarray, "m"]],
    signature: str = "",
    share: bool = False,
) -> Metric:
    """Make a metric whose value depends on the column sums of the statistics alone."""

    def value(stats: Float[ndarray, "n k"]) -> float:
        return float(formula(stats.sum(0, keepdims=True))[0])

    return Metric(name, better, value, signature, formula, share)


@dataclass(frozen=True, eq=False)
class Measurement:
    """A metric measured on n items: `stats` (n, k) holds what each item adds."""

    metric: Metric
    stats: Float[ndarray, "n k"]

    def __post_init__(self) -> None:
        if len(self.stats) == 0:
            raise DataError(f"`{self.metric.name}` needs at least one item to score, but got none.")

    def __len__(self) -> int:
        return len(self.stats)

    @cached_property
    def value(self) -> float:
        """The metric over all items."""
        return self.metric.value(self.stats)

    def interval(self, level: float = 0.95, samples: int = 1000, seed: int = 0) -> tuple[float, float]:
        """Return the percentile bootstrap interval: items redrawn with replacement `samples` times."""
        values = self.resample(samples, seed)
        values = values[np.isfinite(values)]
        if len(values) == 0:
            return math.nan, math.nan
        low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)

    def resample(self, samples: int = 1000, seed: int = 0) -> Float[ndarray, "samples"]:
        """Return the value on `samples` redrawn sets of items, the same sets for the same seed."""
        generator = np.random.default_rng(seed)
        if self.metric.of_sums is not None:
            return self.metric.of_sums(resampled_sums(self.stats, samples, generator))
        n = len(self.stats)
        draws = (generator.integers(0, n, n) for _ in range(samples))
        return np.array([self.metric.value(self.stats[draw]) for draw in draws])

    def where(self, mask: Bool[ndarray, "n"]) -> Measurement:
        """Return the measurement of the items where `mask` is True."""
        return Measurement(self.metric, self.stats[mask])


def resampled_sums(
    stats: Float[ndarray, "n k"], samples: int, generator: np.random.Generator
) -> Float[ndarray, "samples k"]:
    """Return the column sums of `samples` redrawn sets of n items."""
    rows, counts = np.unique(stats, axis=0, return_counts=True)
    if len(rows) <= FEW:
        weights = generator.multinomial(len(stats), counts / len(stats), size=samples)
        return weights @ rows
    blocks = [block @ stats for block in _weight_blocks(len(stats), samples, generator)]
    return np.concatenate(blocks)


def _weight_blocks(n: int, samples: int, generator: np.random.Generator) -> Iterator[ndarray]:
    """Yield how often each of n items was drawn, as many redrawn sets at once as memory allows."""
    size = max(1, BLOCK // n)
    for start in range(0, samples, size):
        draws = range(min(size, samples - start))
        yield np.stack([np.bincount(generator.integers(0, n, n), minlength=n) for _ in draws]).astype(float)


def ratio(sums: Float[ndarray, "m k"]) -> Float[ndarray, "m"]:
    """Divide the first column by the second; nothing counted gives NaN."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(sums[:, 1] > 0, sums[:, 0] / sums[:, 1], np.nan)


def f1(hits: ndarray, predicted: ndarray, reference: ndarray) -> ndarray:
    """Return 2 hits / (predicted + reference), the harmonic mean of precision and recall; 0 for 0/0."""
    return 2 * hits / np.maximum(predicted + reference, 1)


def columns(*values: object) -> Float[ndarray, "n k"]:
    """Stand k vectors of n numbers side by side."""
    return np.stack([np.asarray(value, dtype=np.float64).reshape(-1) for value in values], axis=1)


def require_pairs(predictions: Sized, references: Sized) -> None:
    """Refuse lists of predictions and references that cannot be paired."""
    if len(predictions) != len(references):
        raise DataError(
            f"Every prediction needs one reference, but there are {len(predictions):,} predictions "
            f"and {len(references):,} references. Give both in the same order."
        )


def paired(
    predictions: ArrayLike, references: ArrayLike, dtype: DTypeLike | None = None
) -> tuple[ndarray, ndarray]:
    """Return both as arrays of one shape, or refuse them."""
    predictions, references = np.asarray(predictions, dtype), np.asarray(references, dtype)
    require_pairs(predictions, references)
    if predictions.shape != references.shape:
        raise DataError(
            f"Predictions must have the shape of the references {references.shape}, "
            f"but have {predictions.shape}."
        )
    return predictions, references
