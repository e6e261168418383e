"""Metrics of probability against hand-worked numbers."""

import math

import numpy as np
import pytest
import torch

from weft.metrics import bits, frame_nll, keys_nll, loss, perplexity


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


def test_frame_nll_of_coin_flips_is_88_ln_2():
    frames = np.zeros((4, 88), dtype=np.uint8)
    nll = keys_nll(np.zeros((3, 88)), frames[1:])  # the first frame is given, not predicted
    assert nll == pytest.approx([88 * math.log(2)] * 3)


def test_frame_nll_averages_over_frames_of_all_pieces():
    # two keys: P(on) = 3/4, 1/4. Piece one: frame (1, 0), 2 ln(4/3). Piece two: (0, 0) twice, ln 4 + ln(4/3).
    logits = np.log([[3.0, 1 / 3]])
    one = keys_nll(logits, np.array([[1, 0]], dtype=np.uint8))
    two = keys_nll(np.repeat(logits, 2, 0), np.zeros((2, 2), dtype=np.uint8))
    measured = frame_nll([one.sum(), two.sum()], [1, 2])
    assert measured.value == pytest.approx((2 * math.log(4 / 3) + 2 * (math.log(4) + math.log(4 / 3))) / 3)


def test_keys_nll_is_the_binary_cross_entropy_of_torch():
    generator = np.random.default_rng(0)
    logits, frames = 40 * generator.normal(size=(6, 88)), generator.integers(0, 2, (6, 88)).astype(np.uint8)
    expected = torch.nn.functional.binary_cross_entropy_with_logits(
        torch.tensor(logits), torch.tensor(frames, dtype=torch.float64), reduction="none"
    )
    assert keys_nll(logits, frames) == pytest.approx(expected.sum(-1).numpy(), rel=1e-12)
