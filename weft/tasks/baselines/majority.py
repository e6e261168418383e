"""Labels without a model: the most frequent one of training, whatever the input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from numpy import ndarray

from weft.data import LabelField, LabelsField
from weft.data.fit import most_frequent


def majority_label(labels: Iterable[str], count: int) -> list[str]:
    """Tell the most frequent training label `count` times; of equals, the first by name."""
    return [most_frequent(Counter(labels))] * count


def majority_score(field: LabelField | LabelsField, wanted: ndarray) -> dict[str, Any]:
    """Return which label is told always, and how often it is right; nothing where it is not known."""
    if field.frequent is None:
        return {}
    right = wanted == field.names.index(field.frequent)
    return {"baseline": {"label": field.frequent, "accuracy": float(right.mean())}}
