import pytest
import torch

from weft.core.errors import ArtefactError
from weft.decoding.hypothesis import Closed, Hypothesis, collect, length_penalty, refuse_nan


def test_length_penalty_by_hand():
    assert length_penalty(1, 0.6) == 1
    assert length_penalty(7, 1.0) == 2
    assert length_penalty(19, 0.5) == 2
    assert length_penalty(torch.tensor([1, 7]), 0.0).tolist() == [1, 1]


def closed(row, rank, tokens, score) -> Closed:
    count, flags = len(row), torch.ones(len(row), dtype=torch.bool)
    tokens = torch.tensor(tokens, dtype=torch.int64).view(count, -1)
    length = torch.full((count,), tokens.shape[1])
    score = torch.tensor(score)
    return Closed(torch.tensor(row), torch.tensor(rank), tokens, length, score, score, flags)


def test_hypotheses_come_by_row_and_rank():
    parts = [
        closed([1, 0], [1, 0], [[5], [6]], [-1.0, -2.0]),
        closed([1, 1], [0, 2], [[7, 8], [9, 9]], [-3, -torch.inf]),
    ]
    first, second = collect(parts, rows=2, count=5)
    assert first == [Hypothesis([6], -2.0, -2.0, True)]
    assert [hypothesis.tokens for hypothesis in second] == [[7, 8], [5]]  # -inf stands for nothing
    assert len(collect(parts, rows=2, count=1)[1]) == 1


def test_nan_names_row_and_token():
    refuse_nan(torch.tensor([4]), torch.tensor([False]), 0)
    with pytest.raises(ArtefactError, match="NaN for row 5 at token 3"):
        refuse_nan(torch.tensor([0, 4]), torch.tensor([False, True]), 2)
