"""Frequencies of keys by hand."""

import math

import numpy as np
import pytest

from weft.tasks.baselines import key_frequency_nll


def test_nll_by_hand():
    train = [np.array([[1, 0], [1, 0]], np.uint8), np.array([[0, 0]], np.uint8)]
    test = [np.array([[0, 1], [1, 0]], np.uint8), np.array([[1, 1]], np.uint8)]
    found = key_frequency_nll(train, test)
    first, second = 2.5 / 4, 0.5 / 4  # of 3 frames
    assert found.value == pytest.approx(-math.log(first) - math.log(1 - second))
    assert found.stats[:, 1].tolist() == [1, 0]
