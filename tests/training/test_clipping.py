"""Clipping against torch's own, on the mean's gradient."""

import pytest
import torch

from weft.training.clipping import Clipper


def parameters(scale=1.0):
    torch.manual_seed(3)
    made = [
        torch.zeros(4, 2, requires_grad=True),
        torch.zeros(3, requires_grad=True),
        torch.zeros(1, requires_grad=True),
    ]
    for parameter in made[:2]:
        parameter.grad = torch.randn(parameter.shape) * scale
    return made


@pytest.mark.parametrize("limit", [0.01, 1.0, 100.0])
def test_it_is_torchs_clipping_of_the_divided_gradient(limit):
    ours, theirs = parameters(), parameters()
    for parameter in theirs[:2]:
        parameter.grad /= 5
    norm = torch.nn.utils.clip_grad_norm_(theirs, limit)
    reading = Clipper(limit).clip(ours, torch.tensor(10.0), torch.tensor(5))
    assert reading.norm == pytest.approx(float(norm), rel=1e-6)
    assert (reading.loss, reading.count, reading.clipped) == (10.0, 5.0, bool(norm > limit))
    for mine, other in zip(ours[:2], theirs[:2], strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=1e-4, atol=1e-7)


def test_a_limit_of_zero_leaves_the_gradient_alone():
    ours = parameters(1e6)
    before = [p.grad.clone() for p in ours[:2]]
    reading = Clipper(0.0).clip(ours, torch.tensor(1.0), torch.tensor(1))
    assert not reading.clipped
    assert all(torch.equal(p.grad, old) for p, old in zip(ours[:2], before, strict=True))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_finite_is_read_as_such(value):
    ours = parameters()
    ours[0].grad[0, 0] = value
    assert not torch.tensor(Clipper(1.0).clip(ours, torch.tensor(1.0), torch.tensor(1)).norm).isfinite()


def test_without_gradients_or_counts_nothing_breaks():
    assert Clipper(1.0).clip([], torch.tensor(0.0), torch.tensor(0)).norm == 0.0
