import torch
from hypothesis import given
from hypothesis import strategies as st

from weft.core.rng import derive, numpy_stream, torch_stream


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
    first, again, other = (torch.rand(3, generator=torch_stream(3, name)) for name in "aab")
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_streams_leave_the_common_one_alone():
    torch.manual_seed(0)
    want = torch.rand(1)
    torch.manual_seed(0)
    torch.rand(5, generator=torch_stream(1))
    assert torch.equal(torch.rand(1), want)
