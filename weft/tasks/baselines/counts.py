"""A linear model on how often each symbol stands in a text; the order of symbols is lost on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from weft.core.shapes import Float
from weft.tasks.baselines.linear import ridge


def ridge_on_counts(
    train: Sequence[str], values: Float[np.ndarray, "N"], test: Sequence[str], penalty: float = 1e-5
) -> Float[np.ndarray, "M"]:
    """Fit the values of training texts by the shares of their symbols, and tell those of the test texts."""
    symbols = sorted(set().union(*train))
    model = ridge(symbol_shares(train, symbols), np.asarray(values)[:, None], penalty)
    return model.predict(symbol_shares(test, symbols))[:, 0]


def symbol_shares(texts: Sequence[str], symbols: Sequence[str]) -> Float[np.ndarray, "N P"]:
    """Return how much of each text each symbol makes up, and the logarithm of its length."""
    counts = [Counter(text) for text in texts]
    sizes = np.array([max(len(text), 1) for text in texts])
    occurrences = np.array([[count[symbol] for symbol in symbols] for count in counts])
    return np.column_stack([occurrences / sizes[:, None], np.log(sizes)])
