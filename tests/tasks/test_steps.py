"""Parts of series by position: bounds, histories reaching back, counts."""

import numpy as np
import pytest

from weft.core.errors import DataError
from weft.data import RowSource
from weft.tasks.steps import StepRows

SERIES = [np.arange(10.0)[:, None], 100 + np.arange(20.0)[:, None]]


def parts(fractions=(0.6, 0.2, 0.2), **options):
    source = RowSource.from_memory(SERIES, ("values",))
    return {
        part: [row.values[0][:, 0].tolist() for row in StepRows(source, part, fractions, **options)]
        for part in ("train", "valid", "test")
    }


def test_every_step_is_in_one_part_of_its_series():
    found = parts()
    assert found["train"] == [list(range(6)), list(range(100, 112))]
    assert found["valid"] == [[6, 7], [112, 113, 114, 115]]
    assert found["test"] == [[8, 9], [116, 117, 118, 119]]


def test_histories_reach_back_into_the_part_before():
    found = parts(lookback=3)
    assert found["train"][0] == list(range(6))
    assert found["valid"][0] == [3, 4, 5, 6, 7]
    assert found["test"][1] == [113, 114, 115, 116, 117, 118, 119]


def test_a_history_ends_at_the_beginning_of_the_series():
    assert parts((0.2, 0.4, 0.4), lookback=5)["valid"][0] == [0, 1, 2, 3, 4, 5]


def test_counts_leave_the_rest_out():
    found = parts(counts=(4, 2, 3), lookback=1)
    assert found["train"][0] == [0, 1, 2, 3]
    assert found["valid"][0] == [3, 4, 5]
    assert found["test"][0] == [5, 6, 7, 8]


def test_more_steps_than_there_are_are_refused():
    with pytest.raises(DataError, match="are 12 steps, but the series has 10"):
        parts(counts=(8, 2, 2))


def test_a_view_says_what_it_is():
    source = RowSource.from_memory(SERIES, ("values",))
    assert "valid: 20% of each series" in StepRows(source, "valid", (0.6, 0.2, 0.2)).description
    assert "test: 2,880 steps" in StepRows(source, "test", (1, 0, 0), 0, (8640, 2880, 2880)).description
