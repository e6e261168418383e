"""Where training stands, and the state carried along."""

import torch
from toy_training import ToyFeed, ToyState

from weft.training.cursor import Cursor


def walk(cursor, steps):
    seen = []
    for _ in range(steps):
        group = cursor.group()
        seen.append((group.epoch, group.position, len(group.batches)))
        cursor.finish(group, cursor.carry(ToyState(torch.ones(3, 2, requires_grad=True) * (cursor.step + 1))))
    return seen


def test_a_group_ends_with_its_epoch_and_so_does_the_carried_state():
    cursor = Cursor(ToyFeed(batches=3), accumulate=2)
    assert walk(cursor, 1) == [(0, 0, 2)]
    assert cursor.state.hidden[0, 0].item() == 1.0
    assert not cursor.state.hidden.requires_grad
    assert walk(cursor, 2) == [(0, 2, 1), (1, 0, 2)]
    assert (cursor.step, cursor.epoch, cursor.position, cursor.epoch_of_step) == (3, 1, 2, 2)
    walk(cursor, 1)
    assert cursor.state is None
    assert cursor.epoch_of_step == 2
    assert cursor.tokens == 2 * (15 + 14 + 13)


def test_it_comes_back_from_a_save_with_its_nesting():
    cursor, again = Cursor(ToyFeed(), 2), Cursor(ToyFeed(), 2)
    walk(cursor, 2)
    again.load(cursor.save(), lambda batch: ToyState(torch.zeros(3, 2)))
    assert isinstance(again.state, ToyState)
    assert torch.equal(again.state.hidden, cursor.state.hidden)
    assert walk(again, 2) == walk(cursor, 2)


def test_a_feed_that_carries_nothing_keeps_nothing():
    cursor = Cursor(ToyFeed(carries=False), 1)
    walk(cursor, 1)
    assert cursor.state is None
