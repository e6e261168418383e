"""Labels without a model: the most frequent one of training, whatever the input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def majority_label(labels: Iterable[str], count: int) -> list[str]:
    """Tell the most frequent training label `count` times; of equals, the first by name."""
    return [most_frequent(Counter(labels))] * count


def most_frequent(counts: Counter[str]) -> str:
    """Return the label counted most; of equals, the first by name."""
    return min(counts, key=lambda name: (-counts[name], name))
