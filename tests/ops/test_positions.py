import math

import pytest
import torch

from weft.ops import plain_index, rotate, sinusoid


def test_sinusoid_by_hand():
    """Width 4: wave lengths 1 and 10000^(1/2) = 100."""
    got = sinusoid(torch.tensor([0, 1, 50]), 4)
    want = [[0, 1, 0, 1]] + [
        [math.sin(i), math.cos(i), math.sin(i / 100), math.cos(i / 100)] for i in (1, 50)
    ]
    assert torch.allclose(got, torch.tensor(want), atol=1e-5)


def test_sinusoid_of_an_odd_width_drops_the_last_cosine():
    assert torch.equal(sinusoid(torch.arange(5), 3)[:, :3], sinusoid(torch.arange(5), 3))
    assert sinusoid(torch.arange(5), 5).shape == (5, 5)
    assert torch.allclose(sinusoid(torch.tensor([2]), 3)[0, 2], torch.tensor(2 / 10000 ** (2 / 3)).sin())


def test_a_shift_of_the_sinusoid_is_a_rotation():
    """p(i + k) is a matrix of k alone times p(i): why the wave was chosen."""
    here, there = sinusoid(torch.arange(0, 9), 2).double(), sinusoid(torch.arange(3, 12), 2).double()
    c, s = math.cos(3), math.sin(3)
    turn = torch.tensor([[c, s], [-s, c]], dtype=torch.float64)
    assert torch.allclose(here @ turn.T, there, atol=1e-5)


def test_plain_index_is_the_number_where_layer_norm_sees_it():
    assert plain_index(torch.tensor([[0, 7]]), 3, 0.5).tolist() == [[[0, 0, 0], [3.5, 0, 3.5]]]
    assert torch.nn.functional.layer_norm(plain_index(torch.tensor([7]), 4), (4,)).any()


def positions(*steps: int) -> torch.Tensor:
    return torch.tensor([steps])


def test_rotation_by_hand():
    """At position 2, width 4: the first pair turns by 2, the second by 2 / 100."""
    got = rotate(torch.tensor([[[[1.0, 0.0, 0.0, 1.0]]]]), positions(2))
    want = torch.tensor([math.cos(2), math.sin(2), -math.sin(0.02), math.cos(0.02)])
    assert torch.allclose(got.flatten(), want, atol=1e-6)


@pytest.mark.parametrize("shift", [0, 1, 40])
def test_a_rotated_product_sees_the_difference_only(shift):
    q, k = torch.randn(1, 2, 4, 6).double(), torch.randn(1, 2, 4, 6).double()
    at = torch.tensor([[0, 1, 5, 9]])
    want = rotate(q, at) @ rotate(k, at).mT
    got = rotate(q, at + shift) @ rotate(k, at + shift).mT
    assert torch.allclose(got, want, atol=1e-4)
    other = rotate(q, at + shift + 1) @ rotate(k, at + shift).mT
    assert not torch.allclose(other, want, atol=1e-2)


def test_rotation_keeps_the_norm_and_position_zero_as_it_is():
    x = torch.randn(2, 3, 4, 6)
    turned = rotate(x, torch.arange(4).expand(2, -1))
    assert torch.allclose(turned.norm(dim=-1), x.norm(dim=-1), atol=1e-5)
    assert torch.equal(turned[:, :, 0], x[:, :, 0])
