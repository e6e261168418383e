import pytest
import torch
from toy_stepper import BOS, EOS, ToyStepper

from weft.core.sequences import Sequences
from weft.decoding import DecodingConfig, beam, score

TARGETS = [[4, 0, 1], [], [1], [4, 4, 4, 4, 0]]


def test_every_token_and_the_end_are_scored():
    toy = ToyStepper()
    targets = Sequences.pad([torch.tensor(t, dtype=torch.int64) for t in TARGETS])
    scores = score(toy, torch.arange(4), targets, BOS, EOS)
    assert scores.lengths.tolist() == [4, 1, 2, 6]
    for row, tokens in enumerate(TARGETS):
        said = [*tokens, EOS]
        sums = scores.data[row].cumsum(0)[: len(said)].tolist()
        assert sums == pytest.approx([toy.log_prob(row, said[: i + 1]) for i in range(len(said))], abs=1e-5)
        assert scores.data[row, len(said) :].tolist() == [0] * (6 - len(said))


def test_rows_leave_at_their_end():
    toy = ToyStepper()
    targets = Sequences.pad([torch.tensor(t, dtype=torch.int64) for t in TARGETS])
    score(toy, torch.arange(4), targets, BOS, EOS)
    assert toy.lanes == [4, 3, 2, 2, 1, 1]


def test_a_hypothesis_scores_what_the_search_said():
    toy, rows = ToyStepper(ending=1.0), torch.arange(6)
    found = beam(toy, rows, 6, DecodingConfig(max_length=12), BOS, EOS)
    assert all(h.finished for [h] in found)
    targets = Sequences.pad([torch.tensor(h.tokens, dtype=torch.int64) for [h] in found])
    sums = score(toy, rows, targets, BOS, EOS).data.sum(1)
    assert sums.tolist() == pytest.approx([h.log_prob for [h] in found], abs=1e-5)


def test_no_rows():
    empty = Sequences(torch.zeros(0, 3, dtype=torch.int64), torch.zeros(0, dtype=torch.int64))
    assert score(ToyStepper(), torch.arange(0), empty, BOS, EOS).data.shape == (0, 4)
