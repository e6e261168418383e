import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_stepper import BOS, EOS, ToyStepper

from weft.core.sequences import Sequences
from weft.decoding import DecodingConfig, greedy, sample
from weft.decoding.sample import chooser, invert, lane_keys, uniform

ROWS = torch.arange(6)
CONFIG = DecodingConfig(method="sample", samples=3, max_length=8, seed=7)


def frequencies(config: DecodingConfig, log_probs: torch.Tensor, draws: int = 20_000) -> torch.Tensor:
    keys = lane_keys(replace(config, samples=1), range(draws))
    tokens = chooser(config)(log_probs.expand(draws, -1), keys, 0)
    return tokens.bincount(minlength=len(log_probs)) / draws


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0.1, 0.4, 0.3, 0.2]),
        ({"temperature": 0.5}, [1 / 30, 16 / 30, 9 / 30, 4 / 30]),
        ({"temperature": 0.0}, [0, 1, 0, 0]),
        ({"temperature": 1e-42}, [0, 1, 0, 0]),
        ({"top_k": 2}, [0, 4 / 7, 3 / 7, 0]),
        ({"top_p": 0.75}, [0, 4 / 9, 3 / 9, 2 / 9]),
        ({"top_k": 3, "top_p": 0.7}, [0, 4 / 7, 3 / 7, 0]),
        ({"min_p": 0.6}, [0, 4 / 7, 3 / 7, 0]),
        ({"top_p": 0.0}, [0, 1, 0, 0]),
    ],
)
def test_tokens_come_as_often_as_they_should(options, expected):
    log_probs = torch.tensor([0.1, 0.4, 0.3, 0.2]).log()
    shares = frequencies(replace(CONFIG, **options), log_probs)
    assert shares.tolist() == pytest.approx(expected, abs=4 * math.sqrt(0.25 / 20_000))
    assert (shares > 0).tolist() == [share > 0 for share in expected]


def test_streams_are_uniform_and_independent():
    keys = lane_keys(CONFIG, range(2000))
    draws = torch.stack([uniform(keys, step) for step in range(50)])
    assert draws.min() >= 0
    assert draws.max() < 1
    counts = (draws * 20).long().flatten().bincount(minlength=20)
    chi_square = ((counts - 15_000.0) ** 2 / 15_000).sum()  # 300,000 draws in 20 cells: mean 19, sd 6.2
    assert chi_square < 45
    assert torch.corrcoef(draws)[~torch.eye(50, dtype=torch.bool)].abs().max() < 0.07


def test_splitmix_by_its_published_first_numbers():
    numbers = [uniform(torch.tensor([1234567]), step) for step in range(3)]
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [float(n) for n in numbers] == [(number >> 24) * 2.0**-40 for number in published]


def test_an_impossible_token_is_never_drawn():
    scores = torch.tensor([[-math.inf, 0.0, -math.inf, 0.0, -math.inf]]).expand(4, -1)
    chance = torch.tensor([0.0, 0.4999, 0.5, 1 - 2.0**-40], dtype=torch.float64)
    assert invert(scores, chance).tolist() == [1, 1, 3, 3]


@settings(max_examples=6)
@given(st.permutations(range(6)), st.integers(1, 4), st.integers(0, 1000))
def test_a_rows_samples_do_not_depend_on_the_rest(order, size, seed):
    toy, config = ToyStepper(), replace(CONFIG, seed=seed, top_p=0.9)
    whole = sample(toy, ROWS, 6, config, BOS, EOS)
    cut = [order[i : i + size] for i in range(0, 6, size)]
    parts = {}
    for numbers in cut:
        found = sample(toy, torch.tensor(numbers), len(numbers), config, BOS, EOS, numbers=numbers)
        parts |= dict(zip(numbers, found, strict=True))
    assert whole == [parts[number] for number in range(6)]


def test_fewer_samples_are_the_first_of_more():
    toy = ToyStepper()
    three = sample(toy, ROWS, 6, CONFIG, BOS, EOS)
    assert [found[:1] for found in three] == sample(toy, ROWS, 6, replace(CONFIG, samples=1), BOS, EOS)


def test_seeds_and_samples_differ():
    toy = ToyStepper(ending=-3.0)
    [first] = sample(toy, ROWS[:1], 1, CONFIG, BOS, EOS)
    [second] = sample(toy, ROWS[:1], 1, replace(CONFIG, seed=8), BOS, EOS)
    assert len({tuple(h.tokens) for h in first + second}) == 6


def test_log_prob_is_the_models():
    toy = ToyStepper()
    config = replace(CONFIG, temperature=2.0, top_k=3, length_penalty=1.0)
    for row, found in enumerate(sample(toy, ROWS, 6, config, BOS, EOS)):
        for h in found:
            said = [*h.tokens, EOS] if h.finished else h.tokens
            assert h.log_prob == pytest.approx(toy.log_prob(row, said), abs=1e-5)
            assert h.score == pytest.approx(h.log_prob * 6 / (5 + len(h.tokens)))
            assert len(h.tokens) == 8 or h.finished


@pytest.mark.parametrize("options", [{"top_k": 1}, {"temperature": 0.0}])
def test_without_chance_it_is_greedy(options):
    toy, config = ToyStepper(ties=True), replace(CONFIG, samples=2, **options)
    want = greedy(toy, ROWS, 6, config, BOS, EOS)
    assert sample(toy, ROWS, 6, config, BOS, EOS) == [found * 2 for found in want]


def test_ended_samples_leave_as_far_as_equal_blocks_allow():
    toy = ToyStepper(seed=1)
    found = sample(toy, ROWS, 6, CONFIG, BOS, EOS)
    alive = [[sum(len(h.tokens) >= step for h in row) for row in found] for step in range(len(toy.lanes))]
    assert toy.lanes == [max(counts) * sum(count > 0 for count in counts) for counts in alive]


def test_samples_begin_with_their_prefix():
    prefix = Sequences.pad([torch.tensor([4, 4, 1]), torch.tensor([0])])
    found = sample(ToyStepper(), ROWS[:2], 2, CONFIG, BOS, EOS, prefix=prefix)
    assert all(h.tokens[:3] == [4, 4, 1] for h in found[0])
    assert all(h.tokens[:1] == [0] for h in found[1])
