"""Language without a model: every token as likely as it was in training, whatever stands before it."""

from __future__ import annotations

import numpy as np

from weft.data import EOS
from weft.metrics import Measurement, bits


def unigram_bits(
    train: list[np.ndarray], test: list[np.ndarray], characters: np.ndarray, size: int
) -> Measurement:
    """Measure bits per character of p(v) = (count of v + 1) / (tokens + size), an EOS ending each line.

    `train` and `test` hold the token ids of each line, `characters` each test line's length with its newline.
    """
    counts = np.ones(size)
    counts[EOS] += len(train)
    for line in train:
        counts += np.bincount(line, minlength=size)
    surprise = -np.log(counts / counts.sum())
    nll = [surprise[line].sum() + surprise[EOS] for line in test]
    return bits(nll, characters)
