import pytest
import torch
from toy_stepper import BOS, EOS, ToyStepper

from weft.core.errors import InputError
from weft.decoding import DecodingConfig, Ensemble, beam, sample

ROWS = torch.arange(6)


def test_probabilities_are_averaged():
    one, two = ToyStepper(seed=1), ToyStepper(seed=2)
    both = Ensemble([one, two])
    tokens = torch.full((6,), BOS)
    log_probs, _ = both.step(tokens, both.start(ROWS))
    alone = [member.step(tokens, member.start(ROWS))[0].exp() for member in (one, two)]
    torch.testing.assert_close(log_probs.exp(), (alone[0] + alone[1]) / 2)


def test_twice_the_same_is_the_same():
    toy, config = ToyStepper(), DecodingConfig(beam=3, nbest=3, max_length=7)
    twice = beam(Ensemble([toy, toy]), ROWS, 6, config, BOS, EOS)
    once = beam(toy, ROWS, 6, config, BOS, EOS)
    assert [[h.tokens for h in row] for row in twice] == [[h.tokens for h in row] for row in once]


def test_every_member_follows_the_lanes():
    both = Ensemble([ToyStepper(seed=1), ToyStepper(seed=2)])
    found = beam(both, ROWS, 6, DecodingConfig(beam=4, max_length=6), BOS, EOS)
    for row, [h] in enumerate(found):
        assert h.log_prob == pytest.approx(follow(both, row, h.tokens, h.finished), abs=1e-5)
    assert len(sample(both, ROWS, 6, DecodingConfig(samples=2, max_length=5), BOS, EOS)[0]) == 2


def follow(both: Ensemble, row: int, tokens: list[int], finished: bool) -> float:
    """Sum what the ensemble says of one output, step by step."""
    state, total = both.start(torch.tensor([row])), 0.0
    said = [*tokens, EOS] if finished else tokens
    for given, token in zip([BOS, *tokens], said, strict=False):
        log_probs, state = both.step(torch.tensor([given]), state)
        total += float(log_probs[0, token])
    return total


def test_members_must_agree():
    with pytest.raises(InputError, match="at least one member"):
        Ensemble([])
    both = Ensemble([ToyStepper(5), ToyStepper(6)])
    with pytest.raises(InputError, match=r"one vocabulary, but theirs have \[5, 6\] entries"):
        both.step(torch.full((6,), BOS), both.start(ROWS))
