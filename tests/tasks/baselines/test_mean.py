"""The mean of training."""

import numpy as np

from weft.tasks.baselines import mean_value


def test_the_mean_is_told_each_time():
    assert mean_value(np.array([1.0, 2.0, 6.0]), 2).tolist() == [3.0, 3.0]
