import pytest
import torch

from weft.core.errors import ConfigError, InputError
from weft.core.sequences import Sequences
from weft.decoding.config import DecodingConfig
from weft.decoding.limits import Limits, length_limits, row_limits, row_rules


def test_limits_grow_with_the_source():
    limits = length_limits(torch.tensor([0, 3, 10]), DecodingConfig(max_ratio=1.5, max_extra=2, min_length=4))
    assert limits.most.tolist() == [2, 6, 17]
    assert limits.least.tolist() == [2, 4, 4], "the fewest never exceed the most"


def test_max_length_replaces_the_ratio():
    assert length_limits(torch.tensor([3, 10]), DecodingConfig(max_length=7)).most.tolist() == [7, 7]


def test_a_callers_limits_stay_under_max_length():
    config = DecodingConfig(max_length=5, min_length=2)
    assert row_limits(torch.tensor([3, 9]), 2, config).most.tolist() == [3, 5]
    assert row_limits(None, 2, config) is not None
    given = row_limits(Limits(torch.tensor([1, 8]), torch.tensor([3, 9])), 2, config)
    assert given.least.tolist() == [1, 5]


def test_no_limit_at_all_is_refused():
    with pytest.raises(ConfigError, match=r"`decoding.max_length` must be set .* Try 200"):
        row_limits(None, 1, DecodingConfig())


def test_limits_of_another_batch_are_refused():
    with pytest.raises(InputError, match=r"one entry a row \(3\), but has 2"):
        row_limits(torch.tensor([3, 9]), 3, DecodingConfig())


def rules(prefix: Sequences, most: int = 3):
    return row_rules(Limits(torch.zeros(2, dtype=torch.int64), torch.full((2,), most)), prefix, eos=3)


def test_prefixes_are_checked():
    ragged = Sequences.pad([torch.tensor([4, 1]), torch.tensor([1])], value=3)  # eos as padding is no harm
    assert rules(ragged).forced.tolist() == [2, 1]
    with pytest.raises(InputError, match=r"`prefix` of row 1 must fit its limit of 1 tokens, but has 2"):
        rules(ragged, most=1)
    with pytest.raises(InputError, match=r"must not hold the end token \(3\)"):
        rules(Sequences.full(torch.tensor([[1, 3], [1, 1]])))
    with pytest.raises(InputError, match=r"`prefix` must have one entry a row \(2\), but has 1"):
        rules(Sequences.full(torch.tensor([[1]])))
