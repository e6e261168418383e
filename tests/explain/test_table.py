import pytest

from weft.explain.table import amount, size, span


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (12.34, "12.3"), (1234, "1.23 k"), (3.3e18, "3.3 E")])
def test_amount(number, text):
    assert amount(number) == text


@pytest.mark.parametrize(("number", "text"), [(12, "12 B"), (1.5e9, "1.5 GB")])
def test_size(number, text):
    assert size(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(40, "40 s"), (720, "12.0 min"), (9000, "2.5 h"), (2e5, "2.3 days")]
)
def test_span(seconds, text):
    assert span(seconds) == text
