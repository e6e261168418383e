import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.decoding.ranking import CHUNK, best


def by_sorting(row: list[float], count: int) -> list[int]:
    return sorted(range(len(row)), key=lambda place: (-row[place], place))[:count]


@settings(max_examples=40)
@given(
    st.integers(0, 10**6), st.sampled_from([3, 127, 128, 129, 400, 1000]), st.integers(1, 3), st.booleans()
)
def test_best_is_a_stable_sort(seed, size, count, ties):
    chance = torch.Generator().manual_seed(seed)
    scores = -torch.rand(3, size, generator=chance) * 8
    if ties:
        scores = scores.round()  # among them -0.0, which must equal 0.0
        scores[scores < -6] = -torch.inf
    values, places = best(scores, count)
    for row, value, place in zip(scores.tolist(), values.tolist(), places.tolist(), strict=True):
        assert place == by_sorting(row, count)
        assert value == [row[p] for p in place]


def test_equal_scores_far_apart_keep_their_order():
    scores = torch.full((1, 10 * CHUNK), -1.0)
    scores[0, 700] = -0.5
    assert best(scores, 4)[1].tolist() == [[700, 0, 1, 2]]


def test_a_short_row_is_filled_with_nothing():
    values, places = best(torch.tensor([[-2.0, -1.0]]), 3)
    assert values.tolist() == [[-1.0, -2.0, -torch.inf]]
    assert places.tolist() == [[1, 0, 2]]


def test_scores_a_rounding_error_above_zero_do_not_fall_behind():
    assert best(torch.tensor([[-1e-6, 1e-7, -3.0]]), 2)[1].tolist() == [[1, 0]]
