"""Metrics of labels: one an item, several an item, or one a token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.typing import ArrayLike

from weft.metrics.measure import (
    Measurement,
    Metric,
    columns,
    f1,
    metric_of_sums,
    paired,
    ratio,
    require_pairs,
)


def accuracy(predictions: ArrayLike, references: ArrayLike) -> Measurement:
    """Measure the share of items with the right label.

    Labels are ids or names; a reference of -1 (unseen in training) equals no prediction: it counts wrong.
    """
    predictions, references = paired(predictions, references)
    right = predictions == references
    return Measurement(
        metric_of_sums("accuracy", "higher", ratio, share=True), columns(right, np.ones(len(right)))
    )


def token_accuracy(predictions: Sequence[ArrayLike], references: Sequence[ArrayLike]) -> Measurement:
    """Measure the share of tokens with the right label, over all tokens of all items."""
    require_pairs(predictions, references)
    pairs = [paired(p, r) for p, r in zip(predictions, references, strict=True)]
    right = [np.sum(p == r) for p, r in pairs]
    return Measurement(
        metric_of_sums("token_accuracy", "higher", ratio, share=True),
        columns(right, [len(r) for _, r in pairs]),
    )


def macro_f1(predictions: ArrayLike, references: ArrayLike) -> Measurement:
    """Measure the mean over labels of F1 = 2 hits / (predicted + true).

    The labels are those that occur, as prediction or as reference, among the items measured.
    """
    predictions, references = paired(predictions, references)
    _, ids = np.unique(np.concatenate([predictions, references]), return_inverse=True)
    stats = columns(ids[: len(predictions)], ids[len(predictions) :])
    return Measurement(Metric("macro_f1", "higher", _macro_f1, share=True), stats)


def token_macro_f1(predictions: Sequence[ArrayLike], references: Sequence[ArrayLike]) -> Measurement:
    """Measure the mean over labels of F1 over all tokens, by items whose tokens carry label ids.

    The labels are those that occur among the tokens measured; -1 (unseen in training) is one of them.
    """
    require_pairs(predictions, references)
    pairs = [paired(p, r, np.int64) for p, r in zip(predictions, references, strict=True)]
    size = 2 + max((int(side.max(initial=-1)) for pair in pairs for side in pair), default=-1)
    stats = np.stack([_token_counts(p + 1, r + 1, size) for p, r in pairs]) if pairs else np.zeros((0, 3))
    return Measurement(metric_of_sums("macro_f1", "higher", _token_macro_f1, share=True), stats)


def confusion(predictions: ArrayLike, references: ArrayLike, size: int) -> Int[ndarray, "size size"]:
    """Count items by label: row = reference id, column = predicted id.

    References of -1 (unseen in training) have no row and are left out.
    """
    predictions, references = paired(predictions, references)
    seen = references >= 0
    cells = references[seen].astype(np.int64) * size + predictions[seen].astype(np.int64)
    return np.bincount(cells, minlength=size * size).reshape(size, size)


def label_micro_f1(predictions: ArrayLike, references: ArrayLike) -> Measurement:
    """Measure F1 over all (item, label) decisions together. Both are multi-hot (n, labels)."""
    return Measurement(
        metric_of_sums("micro_f1", "higher", _label_micro_f1, share=True),
        _label_stats(predictions, references),
    )


def label_macro_f1(predictions: ArrayLike, references: ArrayLike) -> Measurement:
    """Measure the mean over labels of F1; a label neither predicted nor true counts 0.

    Both are multi-hot (n, labels).
    """
    return Measurement(
        metric_of_sums("macro_f1", "higher", _label_macro_f1, share=True),
        _label_stats(predictions, references),
    )


def label_set_accuracy(predictions: ArrayLike, references: ArrayLike) -> Measurement:
    """Measure the share of items whose whole set of labels is right. Both are multi-hot (n, labels)."""
    predictions, references = paired(predictions, references)
    right = (predictions == references).all(1)
    return Measurement(
        metric_of_sums("accuracy", "higher", ratio, share=True), columns(right, np.ones(len(right)))
    )


def _macro_f1(stats: Float[ndarray, "n 2"]) -> float:
    predicted, reference = stats.astype(np.int64).T
    size = int(stats.max()) + 1
    hits = np.bincount(reference[predicted == reference], minlength=size)
    counts = np.bincount(predicted, minlength=size) + np.bincount(reference, minlength=size)
    return float((2 * hits[counts > 0] / counts[counts > 0]).mean())


def _token_counts(predicted: ndarray, reference: ndarray, size: int) -> Float[ndarray, "k"]:
    """Lay side by side one item's tokens by label: hits, predicted, true."""
    sides = (reference[predicted == reference], predicted, reference)
    return np.concatenate([np.bincount(side, minlength=size) for side in sides]).astype(np.float64)


def _token_macro_f1(sums: Float[ndarray, "m k"]) -> Float[ndarray, "m"]:
    hits, predicted, reference = np.split(sums, 3, axis=1)
    occurring = (predicted + reference > 0).sum(1)
    return f1(hits, predicted, reference).sum(1) / np.maximum(occurring, 1)


def _label_stats(predictions: ArrayLike, references: ArrayLike) -> Float[ndarray, "n k"]:
    """Lay side by side, an item: hits, predicted, true, each a column a label."""
    predictions, references = paired(predictions, references)
    predicted, reference = predictions > 0.5, references > 0.5
    return np.concatenate([predicted & reference, predicted, reference], axis=1).astype(np.float64)


def _label_micro_f1(sums: Float[ndarray, "m k"]) -> Float[ndarray, "m"]:
    return f1(*(part.sum(1) for part in np.split(sums, 3, axis=1)))


def _label_macro_f1(sums: Float[ndarray, "m k"]) -> Float[ndarray, "m"]:
    return f1(*np.split(sums, 3, axis=1)).mean(1)
