"""Absurd sizes are refused before anything is allocated."""

import pytest

from weft.core.errors import DataError
from weft.data.sizes import memory_free, refuse_absurd, refuse_full


def test_memory_is_there():
    assert memory_free() > 1_000_000


def test_what_fits_passes(tmp_path):
    refuse_absurd(1000, "It", "Ask for less.")
    refuse_full(1000, tmp_path / "not" / "there" / "yet", "It")


def test_what_does_not_fit_is_refused(tmp_path):
    with pytest.raises(
        DataError, match=r"It would take 1,000,000\.0 GB, but .* of memory is free\. Ask for less"
    ):
        refuse_absurd(10**15, "It", "Ask for less.")
    with pytest.raises(DataError, match=r"of disk, but .* is free\. Ask for less"):
        refuse_full(10**18, tmp_path / "not" / "there", "It")
