"""ROUGE: F1 of word n-grams, or of the longest common subsequence, averaged over items."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from weft.metrics.measure import Measurement, columns, metric_of_sums, ratio, require_pairs

_SIGNATURE = "f1|words:a-z0-9|case:lc|stem:no"


def rouge_1(predictions: Sequence[str], references: Sequence[str]) -> Measurement:
    """Measure the mean F1 of single words."""
    return _mean("rouge_1", partial(_ngram_f1, n=1), predictions, references)


def rouge_2(predictions: Sequence[str], references: Sequence[str]) -> Measurement:
    """Measure the mean F1 of word pairs."""
    return _mean("rouge_2", partial(_ngram_f1, n=2), predictions, references)


def rouge_l(predictions: Sequence[str], references: Sequence[str]) -> Measurement:
    """Measure the mean F1 of the longest common subsequence of words."""
    return _mean("rouge_l", _lcs_f1, predictions, references)


def words(text: str) -> list[str]:
    """Split as ROUGE does: lower case, everything but a-z and 0-9 separates.

    Text in other scripts has no such words, so ROUGE means nothing there; use chrF.
    """
    return re.findall(r"[a-z0-9]+", text.lower())


def longest_common_subsequence(a: Sequence[str], b: Sequence[str]) -> int:
    """Return its length; the rows of the usual table are bits of one integer (Hyyrö 2004)."""
    places: dict[str, int] = {}
    for i, word in enumerate(a):
        places[word] = places.get(word, 0) | 1 << i
    full = (1 << len(a)) - 1
    row = full
    for word in b:
        matches = row & places.get(word, 0)
        row = (row + matches | row - matches) & full
    return len(a) - row.bit_count()


def _mean(
    name: str,
    score: Callable[[list[str], list[str]], float],
    predictions: Sequence[str],
    references: Sequence[str],
) -> Measurement:
    require_pairs(predictions, references)
    scores = [score(words(p), words(r)) for p, r in zip(predictions, references, strict=True)]
    return Measurement(
        metric_of_sums(name, "higher", ratio, _SIGNATURE, share=True), columns(scores, np.ones(len(scores)))
    )


def _ngram_f1(prediction: list[str], reference: list[str], n: int) -> float:
    predicted, true = _ngrams(prediction, n), _ngrams(reference, n)
    return _f1((predicted & true).total(), predicted.total(), true.total())


def _ngrams(tokens: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def _lcs_f1(prediction: list[str], reference: list[str]) -> float:
    return _f1(longest_common_subsequence(prediction, reference), len(prediction), len(reference))


def _f1(hits: int, predicted: int, true: int) -> float:
    return 2 * hits / (predicted + true) if hits else 0.0
