"""Values, intervals and parts of measurements."""

import numpy as np
import pytest

from weft.core.errors import DataError
from weft.metrics.measure import (
    FEW,
    Measurement,
    Metric,
    columns,
    metric_of_sums,
    ratio,
    require_pairs,
    resampled_sums,
)

MEAN = metric_of_sums("mean", "higher", ratio)


def mean_of(values):
    return Measurement(MEAN, columns(values, np.ones(len(values))))


def test_the_value_is_that_of_the_summed_statistics():
    assert mean_of([1.0, 2.0, 6.0]).value == 3.0


def test_no_items_are_refused():
    with pytest.raises(DataError, match="`mean` needs at least one item"):
        mean_of([])


def test_where_measures_a_part():
    part = mean_of([1.0, 2.0, 6.0]).where(np.array([True, False, True]))
    assert (len(part), part.value) == (2, 3.5)


def test_a_share_has_the_binomial_interval():
    hits = np.arange(400) < 100  # share .25, standard error sqrt(.25 * .75 / 400) = .02165
    low, high = mean_of(hits).interval(samples=4000)
    assert low == pytest.approx(0.25 - 1.96 * 0.02165, abs=0.004)
    assert high == pytest.approx(0.25 + 1.96 * 0.02165, abs=0.004)


def test_a_mean_of_many_different_values_has_the_normal_interval():
    values = np.random.default_rng(0).normal(size=2 * FEW)  # too many different rows for the multinomial way
    error = values.std() / np.sqrt(len(values))
    low, high = mean_of(values).interval(samples=4000)
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.1 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.1 * error)


@pytest.mark.parametrize("size", [50, 2 * FEW])
def test_both_ways_of_resampling_draw_n_items_with_the_right_mean_and_spread(size):
    values = np.random.default_rng(1).normal(size=size)
    sums = resampled_sums(columns(values, np.ones(size)), 5000, np.random.default_rng(2))
    assert np.all(sums[:, 1] == size)
    assert sums[:, 0].mean() == pytest.approx(values.sum(), abs=4 * values.std() * np.sqrt(size / 5000))
    assert sums[:, 0].std() == pytest.approx(values.std() * np.sqrt(size), rel=0.05)


def test_metrics_that_need_every_item_are_resampled_item_by_item():
    median = Metric("median", "higher", lambda stats: float(np.median(stats[:, 0])))
    measured = Measurement(median, columns(np.arange(101)))
    low, high = measured.interval()
    assert measured.value == 50
    assert 35 < low < 46
    assert 54 < high < 65


def test_a_wider_level_gives_a_wider_interval():
    measured = mean_of(np.arange(100))
    narrow, wide = measured.interval(level=0.5), measured.interval(level=0.99)
    assert wide[0] < narrow[0] < measured.value < narrow[1] < wide[1]


def test_the_same_seed_gives_the_same_interval():
    measured = mean_of(np.arange(100))
    assert measured.interval(seed=3) == measured.interval(seed=3)
    assert measured.interval(seed=3) != measured.interval(seed=4)


def test_one_item_has_no_width():
    assert mean_of([0.5]).interval() == (0.5, 0.5)


def test_nothing_counted_is_no_number():
    measured = Measurement(MEAN, columns([0.0], [0.0]))
    assert np.isnan(measured.value)
    assert np.isnan(measured.interval()).all()


def test_unequal_lists_are_refused():
    with pytest.raises(DataError, match="1,000 predictions and 3 references"):
        require_pairs(range(1000), range(3))
