import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_stepper import repeats

from weft.decoding.filters import forbid_end, forbid_repeats, force_prefix, min_p, top_k, top_p
from weft.decoding.limits import Rules

INF = torch.inf


def test_the_end_is_forbidden_on_early_lanes_only():
    scores = torch.tensor([[-1.0, -2.0], [-1.0, -2.0]])
    allowed = forbid_end(scores, torch.tensor([True, False]), eos=1)
    assert allowed.tolist() == [[-1, -INF], [-1, -2]]
    assert scores[0, 1] == -2, "the stepper's own tensor stays as it was"


def test_a_bigram_does_not_come_twice():
    history = torch.tensor([[4, 0, 4, 1, 4], [0, 1, 2, 3, 4]])
    allowed = forbid_repeats(torch.zeros(2, 5), history, 2)
    assert (allowed == -INF).nonzero().tolist() == [[0, 0], [0, 1]]  # 4 0 and 4 1 stand there already


@settings(max_examples=30)
@given(st.lists(st.integers(0, 2), max_size=9), st.integers(1, 4))
def test_forbidden_is_exactly_what_would_repeat(history, size):
    if repeats(history, size):
        return
    allowed = forbid_repeats(torch.zeros(1, 3), torch.tensor([history], dtype=torch.int64).view(1, -1), size)
    assert (allowed[0] == -INF).tolist() == [repeats([*history, token], size) for token in range(3)]


def test_a_prefix_wins_over_what_else_is_forbidden():
    rules = Rules(torch.zeros(2), torch.zeros(2), torch.tensor([[1, 2], [0, 0]]), torch.tensor([2, 1]))
    scores = torch.tensor([[-1.0, -2.0, -3.0], [-1.0, -2.0, -3.0]])
    allowed = torch.tensor([[-1.0, -2.0, -INF], [-1.0, -2.0, -INF]])
    assert force_prefix(allowed, scores, rules, 1).tolist() == [[-INF, -INF, -3], [-1, -2, -INF]]


def test_top_k_by_hand():
    scores, tokens = top_k(torch.tensor([[-3.0, -1.0, -2.0, -1.0]]), 3)
    assert scores.tolist() == [[-1, -1, -2]]
    assert tokens.tolist() == [[1, 3, 2]]
    assert top_k(torch.tensor([[-1.0, -2.0]]), 9)[1].tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("share", "kept"), [(0.0, 1), (0.4, 1), (0.5, 1), (0.51, 2), (0.8, 2), (0.81, 3), (1.0, 3)]
)
def test_top_p_keeps_the_fewest_that_suffice(share, kept):
    ranked = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64).log()
    assert int((top_p(ranked, share) > -INF).sum()) == kept


@pytest.mark.parametrize(("ratio", "kept"), [(0.0, 3), (0.3, 3), (0.5, 2), (0.7, 1), (1.0, 1)])
def test_min_p_is_relative_to_the_likeliest(ratio, kept):
    scores = torch.tensor([[0.2, 0.5, 0.3]]).log()
    filtered = min_p(scores, ratio)
    assert int((filtered > -INF).sum()) == kept
    assert filtered[0, 1] == pytest.approx(math.log(0.5))
