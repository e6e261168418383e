"""Translation without a model: what stands beside the training source that shares most with a text."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from weft.core.shapes import Float


def nearest_targets(train: Sequence[tuple[str, str]], test: Sequence[str]) -> list[str]:
    """Tell the target of the nearest training source by cosine of words, rare ones weighing more.

    A word's weight is log(N / n), n of the N sources holding it; among equals the first source is nearest.
    """
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for row, (source, _) in enumerate(train):
        for word in set(source.split()):
            holders[word].append(row)
    weights = {word: math.log(len(train) / len(rows)) for word, rows in holders.items()}
    squares = np.zeros(len(train))
    for word, rows in holders.items():
        squares[rows] += weights[word] ** 2
    norms = np.sqrt(np.maximum(squares, 1e-12))
    return [train[int(_shared(text, holders, weights, norms).argmax())][1] for text in test]


def _shared(
    text: str, holders: dict[str, list[int]], weights: dict[str, float], norms: Float[np.ndarray, "N"]
) -> Float[np.ndarray, "N"]:
    """Return sum_w weight_w² over the words shared with each source, by the source's norm."""
    total = np.zeros(len(norms))
    for word in set(text.split()) & holders.keys():
        total[holders[word]] += weights[word] ** 2
    return total / norms
