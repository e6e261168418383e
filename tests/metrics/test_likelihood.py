"""Metrics of probability against hand-worked numbers."""

import math

import numpy as np
import pytest

from weft.metrics import bits, frame_nll, loss, perplexity


def test_a_uniform_guess_over_eight_has_loss_ln_8_perplexity_8_and_3_bits():
    counts = np.array([5, 2])
    nll = counts * math.log(8)
    assert loss(nll, counts).value == pytest.approx(math.log(8))
    assert perplexity(nll, counts).value == pytest.approx(8)
    assert bits(nll, counts).value == pytest.approx(3)


def test_long_items_weigh_more():
    assert loss([1.0, 9.0], [1, 3]).value == 2.5


def test_bits_are_counted_per_what_is_asked():
    tokens_of_four = bits([math.log(16)], [4], per="byte")
    assert tokens_of_four.value == pytest.approx(1)
    assert tokens_of_four.metric.name == "bits_per_byte"


def test_an_absurd_loss_is_an_infinite_perplexity_without_a_warning():
    assert perplexity([1e6], [1]).value == math.inf


def test_frame_nll_averages_over_frames_of_all_pieces():
    # two keys: P(on) = 3/4, 1/4. Piece one: frame (1, 0), 2 ln(4/3). Piece two: (0, 0) twice, ln 4 + ln(4/3).
    one, two = 2 * math.log(4 / 3), 2 * (math.log(4) + math.log(4 / 3))
    assert frame_nll([one, two], [1, 2]).value == pytest.approx((one + two) / 3)
