from typing import NamedTuple

import torch

from weft.core.shapes import Tensor
from weft.core.state import detach, leaves, map_state, rebuild, select_rows, where_rows


class Pair(NamedTuple):
    h: Tensor
    c: Tensor


def make(value: float, requires_grad: bool = False):
    """Return layers of pairs, a plain tuple and a hole, each leaf (3, ...) with its row number added."""
    rows = torch.arange(3.0)
    h, c = (rows + value).unsqueeze(1), (rows * 10 + value).view(3, 1, 1)
    return (Pair(h.requires_grad_(requires_grad), c), (rows + 5 * value,), None)


def test_leaves_come_in_a_fixed_order():
    assert [leaf.flatten().tolist() for leaf in leaves(make(1))] == [[1, 2, 3], [1, 11, 21], [5, 6, 7]]
    assert list(leaves(None)) == []


def test_map_keeps_the_nesting_and_its_names():
    doubled = map_state(lambda leaf: leaf * 2, make(0))
    assert isinstance(doubled[0], Pair)
    assert doubled[2] is None
    assert doubled[0].c.flatten().tolist() == [0, 20, 40]


def test_rebuild_is_the_inverse_of_leaves():
    again = rebuild(make(0), leaves(make(4)))
    assert isinstance(again[0], Pair)
    assert all(map(torch.equal, leaves(again), leaves(make(4))))


def test_rows_may_be_reordered_repeated_and_dropped():
    picked = select_rows(make(0), torch.tensor([2, 2, 0]))
    assert picked[0].h.tolist() == [[2], [2], [0]]
    assert picked[1][0].tolist() == [2, 2, 0]


def test_detach_cuts_the_graph():
    state = make(1, requires_grad=True)
    assert state[0].h.requires_grad
    assert not any(leaf.requires_grad for leaf in leaves(detach(state)))


def test_where_keeps_whole_rows():
    kept = where_rows(torch.tensor([True, False, True]), make(100), make(0))
    assert kept[0].h.flatten().tolist() == [100, 1, 102]
    assert kept[0].c.flatten().tolist() == [100, 10, 120]
    assert kept[1][0].tolist() == [500, 1, 502]
