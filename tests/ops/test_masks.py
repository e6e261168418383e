import torch

from weft.ops.masks import combine, position_mask

STEPS = torch.arange(4)


def test_causal_sees_itself_and_the_past():
    assert position_mask(STEPS, STEPS, causal=True).int().tolist() == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [1, 1, 1, 0],
        [1, 1, 1, 1],
    ]


def test_a_neighbourhood_sees_r_steps_to_both_sides():
    assert position_mask(STEPS, STEPS, neighbourhood=1).int().tolist() == [
        [1, 1, 0, 0],
        [1, 1, 1, 0],
        [0, 1, 1, 1],
        [0, 0, 1, 1],
    ]


def test_both_together():
    assert position_mask(STEPS, STEPS, True, 1).int().tolist() == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [0, 1, 1, 0],
        [0, 0, 1, 1],
    ]


def test_neither_keeps_all():
    assert position_mask(STEPS, STEPS).all()


def test_queries_of_each_row_have_their_own_positions():
    mask = position_mask(torch.tensor([[0, 1], [2, 3]]), STEPS, causal=True)
    assert mask.sum(-1).tolist() == [[1, 2], [3, 4]]


def test_combined_masks_keep_what_all_keep():
    a, b = torch.tensor([True, True, False]), torch.tensor([[True], [False]])
    assert combine(None, None) is None
    assert combine(None, a) is a
    assert combine(a, None, b).tolist() == [[True, True, False], [False, False, False]]
