"""Metrics of numbers against hand-worked cases and SciPy."""

import numpy as np
import pytest
import scipy.stats

from weft.core.errors import DataError
from weft.metrics import mae, mase, mse, smape, spearman
from weft.metrics.numbers import ranks


def test_errors_average_over_all_elements():
    predicted, true = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 0.0], [0.0, 4.0]])
    assert mae(predicted, true).value == (0 + 2 + 3 + 0) / 4
    assert mse(predicted, true).value == (0 + 4 + 9 + 0) / 4
    assert mse(predicted, true).where(np.array([True, False])).value == 2


def test_unknown_references_are_not_counted_but_unknown_predictions_show():
    assert mae([1.0, 5.0], [2.0, np.nan]).value == 1
    assert np.isnan(mae([1.0, np.nan], [2.0, 5.0]).value)


def test_mase_is_the_error_in_units_of_the_naive_forecast():
    # training 1 3 2 6 with season 1: steps 2, 1, 4, mean 7/3. Errors 1 and 2, mean 3/2.
    assert mase([5.0, 9.0], [6.0, 7.0], 7 / 3).value == pytest.approx(1.5 / (7 / 3))


def test_mase_scales_each_channel_by_its_own_season():
    predicted, true = np.array([[[1.0, 10.0], [0.0, 0.0]]]), np.zeros((1, 2, 2))
    assert mase(predicted, true, [2.0, 20.0]).value == pytest.approx((0.5 + 0.5) / 4)


def test_a_constant_series_has_no_mase():
    with pytest.raises(DataError, match="never changes"):
        mase([1.0], [1.0], 0.0)


def test_smape_is_symmetric_and_bounded():
    assert smape([3.0], [1.0]).value == smape([1.0], [3.0]).value == 100
    assert smape([0.0, 0.0], [0.0, 5.0]).value == 100  # 0 for 0/0, and 200


@pytest.mark.parametrize("levels", [3, 1000])
def test_spearman_is_that_of_scipy_with_and_without_ties(levels):
    x, y = np.random.default_rng(levels).integers(0, levels, (2, 200)).astype(float)
    assert spearman(x, y + x / 2).value == pytest.approx(
        scipy.stats.spearmanr(x, y + x / 2).statistic, abs=1e-12
    )
    assert ranks(x).tolist() == scipy.stats.rankdata(x).tolist()


def test_spearman_interval_holds_the_value():
    x, y = np.random.default_rng(0).normal(size=(2, 300))
    measured = spearman(x + y, y)
    low, high = measured.interval(samples=300)
    assert 0.55 < low < measured.value < high < 0.8


def test_constant_predictions_order_nothing():
    assert spearman([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]).value == 0
