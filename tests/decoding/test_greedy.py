import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_stepper import BOS, EOS, ToyStepper, plain_greedy

from weft.core.errors import ArtefactError
from weft.core.sequences import Sequences
from weft.decoding import DecodingConfig, Limits, greedy

ROWS = torch.arange(6)
MOST = torch.tensor([0, 1, 4, 9, 9, 12])


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.booleans())
def test_greedy_takes_the_likeliest_each_time(seed, ties):
    toy = ToyStepper(seed=seed, ties=ties)
    for row, [found] in enumerate(greedy(toy, ROWS, 6, DecodingConfig(), BOS, EOS, MOST)):
        assert (found.tokens, found.finished) == plain_greedy(toy, row, int(MOST[row]))
        said = [*found.tokens, EOS] if found.finished else found.tokens
        assert found.log_prob == pytest.approx(toy.log_prob(row, said), abs=1e-5)


def test_score_carries_the_length_penalty():
    [[found]] = greedy(ToyStepper(), ROWS[:1], 1, DecodingConfig(length_penalty=0.6), BOS, EOS, MOST[4:5])
    assert found.score == pytest.approx(found.log_prob / ((5 + len(found.tokens)) / 6) ** 0.6)


def test_many_is_one_by_one():
    toy, config = ToyStepper(seed=3), DecodingConfig(no_repeat_ngram=2, min_length=3)
    together = greedy(toy, ROWS, 6, config, BOS, EOS, MOST)
    assert together == [
        greedy(toy, ROWS[i : i + 1], 1, config, BOS, EOS, MOST[i : i + 1])[0] for i in range(6)
    ]


def test_finished_rows_leave_the_batch():
    toy = ToyStepper(seed=1, ending=1.0)
    found = greedy(toy, ROWS, 6, DecodingConfig(max_length=12), BOS, EOS)
    lengths = [len(hypothesis.tokens) for [hypothesis] in found]
    assert toy.lanes == [sum(length >= step for length in lengths) for step in range(max(lengths) + 1)]
    assert len(set(lengths)) > 2


def test_fewest_tokens_of_each_row():
    least = torch.tensor([0, 1, 2, 3, 4, 5])
    toy = ToyStepper(ending=9.0)
    found = greedy(toy, ROWS, 6, DecodingConfig(), BOS, EOS, Limits(least, least + 3))
    assert [len(hypothesis.tokens) for [hypothesis] in found] == least.tolist()


def test_each_row_begins_with_its_prefix():
    prefix = Sequences.pad([torch.tensor(p, dtype=torch.int64) for p in ([], [4], [0, 0, 0], [1, 4])])
    config = DecodingConfig(max_length=6, no_repeat_ngram=1)
    found = greedy(ToyStepper(), ROWS[:4], 4, config, BOS, EOS, prefix=prefix)
    for want, [hypothesis] in zip(prefix.unpad(), found, strict=True):
        assert hypothesis.tokens[: len(want)] == want.tolist()  # even though 0 comes thrice
    assert found[0] == greedy(ToyStepper(), ROWS[:1], 1, config, BOS, EOS)[0]


def test_a_row_with_nothing_left_to_say_is_cut():
    config = DecodingConfig(max_length=9, min_length=9, no_repeat_ngram=1)
    [[found]] = greedy(ToyStepper(), ROWS[:1], 1, config, BOS, EOS)
    assert sorted(found.tokens) == [0, 1, 2, 4]
    assert not found.finished


def test_nan_is_refused():
    toy = ToyStepper()
    toy.table[1] = torch.nan
    with pytest.raises(ArtefactError, match="NaN for row 2 at token 1"):
        greedy(toy, ROWS, 6, DecodingConfig(max_length=4), BOS, EOS)


def test_no_rows_give_no_hypotheses():
    assert greedy(ToyStepper(), ROWS[:0], 0, DecodingConfig(), BOS, EOS) == []
