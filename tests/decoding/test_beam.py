import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_stepper import BOS, EOS, ToyStepper, brute_force, plain_beam

from weft.core.errors import ArtefactError
from weft.core.sequences import Sequences
from weft.decoding import DecodingConfig, Limits, beam, greedy
from weft.decoding.beam import search
from weft.decoding.hypothesis import collect
from weft.decoding.plan import begin

ROWS = torch.arange(6)
WIDE = 5**4  # more than all continuations of three tokens


def config(width: int, **others) -> DecodingConfig:
    return DecodingConfig(method="beam", beam=width, **others)


@settings(max_examples=6)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.6, 1.5]), st.sampled_from([0, 1, 2]), st.integers(0, 2))
def test_a_wide_beam_finds_the_very_best(seed, alpha, ngram, least):
    toy = ToyStepper(seed=seed)
    choice = config(WIDE, nbest=7, length_penalty=alpha, no_repeat_ngram=ngram, min_length=least)
    found = beam(toy, ROWS[:3], 3, choice, BOS, EOS, torch.tensor([3, 2, 3]))
    for row, most in enumerate([3, 2, 3]):
        exact = brute_force(toy, row, most, least=least, alpha=alpha, ngram=ngram)[:7]
        assert [h.tokens for h in found[row]] == [tokens for _, tokens in exact]
        assert [h.score for h in found[row]] == pytest.approx([score for score, _ in exact], abs=1e-5)
        assert all(h.finished for h in found[row])


@settings(max_examples=12)
@given(
    st.integers(0, 10**6),
    st.integers(2, 4),
    st.sampled_from([0.0, 0.6, 2.0]),
    st.sampled_from([-2.0, 0.0, 1.0]),
)
def test_a_narrow_beam_keeps_what_a_plain_one_keeps(seed, width, alpha, ending):
    toy = ToyStepper(vocabulary=6, seed=seed, ending=ending)
    most = torch.tensor([0, 1, 5, 7, 3, 6])
    found = beam(toy, ROWS, 6, config(width, nbest=width, length_penalty=alpha), BOS, EOS, most)
    for row in range(6):
        plain = plain_beam(toy, row, int(most[row]), width, width, alpha)
        assert [(h.tokens, h.finished) for h in found[row]] == [(tokens, ended) for _, tokens, ended in plain]
        assert [h.score for h in found[row]] == pytest.approx([score for score, _, _ in plain], abs=1e-5)


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.booleans())
def test_a_beam_of_one_is_greedy(seed, ties):
    toy, choice, most = ToyStepper(seed=seed, ties=ties), config(1), torch.tensor([0, 1, 4, 9, 9, 12])
    plan, rules, state = begin(toy, ROWS, 6, choice, BOS, EOS, most, None)
    one = collect(search(plan, rules, state), 6, 1)  # the search itself, not its short cut
    assert one == greedy(toy, ROWS, 6, choice, BOS, EOS, most)
    assert one == beam(toy, ROWS, 6, choice, BOS, EOS, most)


@settings(max_examples=8)
@given(st.integers(0, 10**6), st.booleans(), st.permutations(range(6)))
def test_many_is_one_by_one_in_any_order(seed, ties, order):
    toy, rows = ToyStepper(seed=seed, ties=ties), torch.tensor(order)
    choice = config(3, nbest=2, length_penalty=0.6, no_repeat_ngram=2)
    together = beam(toy, rows, 6, choice, BOS, EOS, rows + 3)
    alone = [beam(toy, rows[i : i + 1], 1, choice, BOS, EOS, rows[i : i + 1] + 3)[0] for i in range(6)]
    assert together == alone


def test_equal_hypotheses_come_in_the_order_of_their_tokens():
    toy = ToyStepper(vocabulary=400)
    toy.table = torch.full_like(toy.table, 1 / 400).log()
    [found] = beam(
        toy, ROWS[:1], 1, config(3, nbest=3), BOS, EOS, Limits(torch.tensor([1]), torch.tensor([1]))
    )
    assert [h.tokens for h in found] == [[0], [1], [2]]


def test_rows_that_reach_their_limit_return_unfinished():
    toy = ToyStepper(ending=-50.0)
    found = beam(toy, ROWS, 6, config(3, nbest=3), BOS, EOS, torch.tensor([0, 1, 2, 3, 4, 5]))
    for row, hypotheses in enumerate(found):
        assert len(hypotheses) == (1 if row == 0 else 3)
        assert not any(h.finished for h in hypotheses)
        assert {len(h.tokens) for h in hypotheses} == {row}
        assert [h.log_prob for h in hypotheses] == pytest.approx(
            [toy.log_prob(row, h.tokens) for h in hypotheses]
        )
        assert sorted([h.score for h in hypotheses], reverse=True) == [h.score for h in hypotheses]


def test_each_row_keeps_its_prefix_and_its_limits():
    prefix = Sequences.pad([torch.tensor(p, dtype=torch.int64) for p in ([], [4], [0, 0, 0], [1, 4])])
    limits = Limits(torch.tensor([2, 0, 0, 5]), torch.tensor([4, 3, 5, 6]))
    found = beam(ToyStepper(ending=3.0), ROWS[:4], 4, config(4, nbest=4), BOS, EOS, limits, prefix)
    for row, want in enumerate(prefix.unpad()):
        for h in found[row]:
            assert h.tokens[: len(want)] == want.tolist()
            assert limits.least[row] <= len(h.tokens) <= limits.most[row]


def test_a_wide_beam_finds_the_best_after_a_prefix():
    toy, prefix = ToyStepper(seed=5), Sequences.full(torch.tensor([[4]]))
    [[found]] = beam(toy, ROWS[:1], 1, config(WIDE), BOS, EOS, torch.tensor([3]), prefix)
    assert found.tokens == next(tokens for _, tokens in brute_force(toy, 0, 3) if tokens[:1] == [4])


def test_a_row_ends_as_soon_as_nothing_can_beat_it():
    toy = ToyStepper(ending=20.0)
    beam(toy, ROWS, 6, config(4), BOS, EOS, torch.full((6,), 50))
    assert toy.lanes == [6]


def test_finished_rows_leave_the_batch():
    toy = ToyStepper(seed=2, ending=1.0)
    beam(toy, ROWS, 6, config(3), BOS, EOS, torch.tensor([2, 2, 30, 30, 30, 30]))
    assert toy.lanes[0] == 6
    assert toy.lanes[1:] == sorted(toy.lanes[1:], reverse=True)
    assert min(toy.lanes[1:]) < max(toy.lanes[1:]) <= 18


def test_a_length_penalty_favours_longer_outputs():
    toy = ToyStepper(seed=4, ending=1.0)
    lengths = [
        sum(len(h.tokens) for [h] in beam(toy, ROWS, 6, config(30, length_penalty=alpha), BOS, EOS, ROWS + 6))
        for alpha in (0.0, 1.0, 4.0)
    ]
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[2]


def test_a_row_with_nothing_left_to_say_is_cut():
    choice = config(3, nbest=3, max_length=9, min_length=9, no_repeat_ngram=1)
    [found] = beam(ToyStepper(), ROWS[:1], 1, choice, BOS, EOS)
    assert [sorted(h.tokens) for h in found] == [[0, 1, 2, 4]] * 3
    assert not any(h.finished for h in found)


def test_nan_is_refused():
    toy = ToyStepper()
    toy.table[1] = torch.nan
    with pytest.raises(ArtefactError, match="NaN for row 2 at token 1"):
        beam(toy, ROWS, 6, config(3, max_length=4), BOS, EOS)
