"""The seasonal naive forecast."""

import numpy as np
import pytest

from weft.core.errors import DataError
from weft.tasks.baselines import seasonal_naive

HISTORY = np.array([[[9.0], [1.0], [2.0], [3.0]]])


def test_the_last_season_comes_again_and_again():
    assert seasonal_naive(HISTORY, 5, 3)[0, :, 0].tolist() == [1, 2, 3, 1, 2]
    assert seasonal_naive(HISTORY, 2)[0, :, 0].tolist() == [3, 3]


def test_a_season_longer_than_the_history_is_refused():
    with pytest.raises(DataError, match="A season must have 1 to 4 steps"):
        seasonal_naive(HISTORY, 2, 5)
