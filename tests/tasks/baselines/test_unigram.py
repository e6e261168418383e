"""The unigram model by hand."""

import math

import numpy as np
import pytest

from weft.tasks.baselines import unigram_bits


def test_bits_by_hand():
    train, test = [np.array([4, 4])], [np.array([4]), np.array([], np.int64)]
    found = unigram_bits(train, test, np.array([2, 1]), size=5)
    shares = {"a": 3 / 8, "end": 2 / 8}  # (2 + 1) and (1 + 1) of 3 tokens + 5
    bits = -(math.log2(shares["a"]) + 2 * math.log2(shares["end"]))
    assert found.value == pytest.approx(bits / 3)
