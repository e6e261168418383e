import torch
from torch import nn

from weft.core.sequences import Sequences
from weft.explain import Work, observe
from weft.explain.observe import work_of


def test_vectors_are_counted_and_who_wants_their_gradient():
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
    works = observe(model, lambda: model(torch.zeros(3, 5, 4)))
    assert works == {"0": Work(15, 0), "1": Work(15, 15)}


def test_convolutions_have_their_channels_second():
    model = nn.Sequential(nn.Conv1d(4, 6, 3))
    assert observe(model, lambda: model(torch.zeros(2, 4, 10)))["0"].positions == 2 * 8


def test_a_module_not_called_has_the_work_of_the_one_around_it():
    works = {"a": Work(7), "a.b.c": Work(3)}
    assert work_of("a.b.c.d", works).positions == 3
    assert work_of("a.b", works).positions == 7
    assert work_of("z", works) == Work()


def test_sequences_count_with_their_padding():
    class Same(nn.Module):
        def forward(self, x):
            return x

    model = nn.Sequential(Same())
    x = Sequences(torch.zeros(2, 6, 4), torch.tensor([6, 1]))
    assert observe(model, lambda: model(x))["0"] == Work(12, 0, 72, 6)
