import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from weft.core.sequences import Sequences, length_mask

X = Sequences(torch.tensor([[1, 2, 3], [4, 9, 9], [9, 9, 9]]), torch.tensor([3, 1, 0]))


@st.composite
def ragged(draw) -> Sequences:
    """Draw a ragged batch (B, T, 2) with NaN in every padded place; T may exceed the longest row."""
    lengths = draw(st.lists(st.integers(0, 6), min_size=1, max_size=5))
    size = max(lengths) + draw(st.integers(0, 2))
    data = torch.randn(len(lengths), size, 2)
    return Sequences(data, torch.tensor(lengths)).fill(torch.nan)


def same(left: Sequences, right: Sequences) -> bool:
    return torch.equal(left.lengths, right.lengths) and all(map(torch.equal, left.unpad(), right.unpad()))


def test_the_mask_is_true_before_each_length():
    assert length_mask(torch.tensor([0, 2, 3]), 3).tolist() == [
        [False, False, False],
        [True, True, False],
        [True, True, True],
    ]
    assert torch.equal(X.mask(), length_mask(X.lengths, 3))


def test_full_has_no_padding():
    x = Sequences.full(torch.zeros(2, 3, 4))
    assert x.lengths.tolist() == [3, 3]
    assert x.lengths.dtype == torch.int64


def test_pad_and_unpad_are_inverse():
    rows = [torch.tensor([1.0, 2.0]), torch.tensor([]), torch.tensor([3.0])]
    x = Sequences.pad(rows, -1)
    assert x.data.tolist() == [[1, 2], [-1, -1], [3, -1]]
    assert x.lengths.tolist() == [2, 0, 1]
    assert [row.tolist() for row in x.unpad()] == [[1, 2], [], [3]]


def test_shape_says_rows_and_padded_length():
    assert (X.batch_size, X.max_length, X.device.type) == (3, 3, "cpu")


def test_reverse_turns_the_valid_part_and_leaves_padding():
    assert X.reverse().data.tolist() == [[3, 2, 1], [4, 9, 9], [9, 9, 9]]


def test_last_is_the_last_valid_and_zero_for_an_empty_row():
    assert X.last().tolist() == [3, 4, 0]


def test_at_takes_one_element_a_row_and_zero_where_negative():
    assert X.at(torch.tensor([1, 0, -1])).tolist() == [2, 4, 0]


def test_mean_counts_valid_elements_only():
    x = Sequences(X.data.double().unsqueeze(2), X.lengths)
    assert x.mean().tolist() == [[2.0], [4.0], [0.0]]


def test_fill_writes_padding_only():
    assert X.fill(7).data.tolist() == [[1, 2, 3], [4, 7, 7], [7, 7, 7]]


def test_rows_may_be_reordered_repeated_and_dropped():
    picked = X.rows(torch.tensor([2, 0, 0]))
    assert picked.lengths.tolist() == [0, 3, 3]
    assert picked.data[1].tolist() == [1, 2, 3]


def test_to_moves_both_tensors():
    moved = X.to("meta")
    assert {moved.data.device.type, moved.lengths.device.type} == {"meta"}


def test_a_batch_of_nothing_but_empty_rows():
    x = Sequences(torch.zeros(2, 0, 3), torch.tensor([0, 0]))
    for pooled in (x.last(), x.mean()):
        assert torch.equal(pooled, torch.zeros(2, 3))
    assert x.reverse().data.shape == x.fill(1).data.shape == (2, 0, 3)
    assert [len(row) for row in x.unpad()] == [0, 0]


@given(ragged())
def test_reverse_twice_is_the_same(x):
    assert torch.equal(x.reverse().reverse().data.nan_to_num(5), x.data.nan_to_num(5))
    assert all(torch.equal(a.flip(0), b) for a, b in zip(x.unpad(), x.reverse().unpad(), strict=True))


@given(ragged())
def test_padding_never_shows(x):
    for value in (x.last(), x.mean(), x.fill(0).data, x.reverse().fill(0).data):
        assert torch.isfinite(value).all()
    for row, mean, last in zip(x.unpad(), x.mean(), x.last(), strict=True):
        assert torch.allclose(mean, row.mean(0) if len(row) else torch.zeros(2), atol=1e-6)
        assert torch.equal(last, row[-1] if len(row) else torch.zeros(2))


@given(ragged(), st.integers(0, 8))
def test_the_two_halves_of_a_split_are_the_whole(x, step):
    head, tail = x.split(min(step, x.max_length))
    assert int(head.lengths.sum() + tail.lengths.sum()) == int(x.lengths.sum())
    for whole, first, second in zip(x.unpad(), head.unpad(), tail.unpad(), strict=True):
        assert torch.equal(torch.cat([first, second]), whole)


@given(ragged())
def test_pad_of_unpad_is_the_same_rows(x):
    assert same(Sequences.pad(x.unpad()), x)


@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_any_number_of_trailing_axes(shape):
    x = Sequences(torch.randn(3, 4, *shape), torch.tensor([4, 2, 0]))
    assert x.last().shape == x.mean().shape == (3, *shape)
    assert x.reverse().data.shape == x.fill(0).data.shape == x.data.shape
    assert torch.equal(x.last()[1], x.data[1, 1])
