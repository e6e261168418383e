from hypothesis import given
from hypothesis import strategies as st

from weft.core.rng import derive, numpy_stream


def test_the_same_names_give_the_same_seed_for_ever():
    assert derive(1, "weights") == 3568524988930653125
    assert derive(1, "epoch", 2) == derive(1, "epoch", 2)


@given(st.integers(0, 2**40), st.lists(st.integers() | st.text(), max_size=3))
def test_a_seed_has_63_bits(seed, names):
    assert 0 <= derive(seed, *names) < 2**63


def test_seed_and_every_name_count():
    seeds = {derive(1), derive(2), derive(1, "a"), derive(1, "a", "b"), derive(1, "ab"), derive(1, "b", "a")}
    assert len(seeds) == 6


def test_streams_follow_their_names():
    assert numpy_stream(3, "x").random() == numpy_stream(3, "x").random()
    assert numpy_stream(3, "x").random() != numpy_stream(3, "y").random()
