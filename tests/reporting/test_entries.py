"""Times and rates as people read them."""

import pytest

from weft.reporting.entries import duration, rate


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(4.25, "4.2 s"), (60, "1 min 00 s"), (200.4, "3 min 20 s"), (7500, "2 h 05 min"), (59.97, "1 min 00 s")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(12_345.6, "12,300"), (812.4, "812"), (4.236, "4.24"), (0.5, "0.5")]
)
def test_rates_have_three_digits(value, text):
    assert rate(value) == text
