import math

import pytest
import torch

from weft.core.errors import ConfigError, InputError
from weft.ops import cross_entropy, cross_entropy_reference

BACKENDS = ["reference", "plain", "chunked"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_by_hand(backend):
    """Logits ln(1, 1, 2) give p = (1/4, 1/4, 1/2); target 2; a third of the mass smoothed over all three."""
    hidden, weight = torch.ones(1, 1).double(), torch.tensor([[1.0], [1.0], [2.0]]).double().log()
    total, count = cross_entropy(hidden, weight, None, torch.tensor([2]), backend=backend)
    assert (total.item(), count.item()) == (pytest.approx(math.log(2)), 1)
    smoothed, _ = cross_entropy(hidden, weight, None, torch.tensor([2]), 1 / 3, backend=backend)
    assert smoothed.item() == pytest.approx(2 / 3 * math.log(2) + 1 / 3 * (5 / 3) * math.log(2))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("target", [-100, 5])
def test_a_target_that_is_no_word_is_refused(backend, target):
    with pytest.raises(InputError, match=f"between 0 and 4, or be -1 .ignored., but one is {target}"):
        cross_entropy(torch.randn(2, 3), torch.randn(5, 3), None, torch.tensor([1, target]), backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("bias", [True, False])
def test_it_is_torchs_with_every_gradient(backend, smoothing, bias):
    hidden, weight = torch.randn(6, 4).double().requires_grad_(), torch.randn(5, 4).double().requires_grad_()
    b = torch.randn(5).double().requires_grad_() if bias else None
    target = torch.tensor([0, 4, -1, 2, -1, 1])
    logits = torch.nn.functional.linear(hidden, weight, b)
    want = torch.nn.functional.cross_entropy(
        logits, target, ignore_index=-1, reduction="sum", label_smoothing=smoothing
    )
    got, count = cross_entropy(hidden, weight, b, target, smoothing, backend=backend)
    assert got.item() == pytest.approx(want.item(), abs=1e-12)
    assert count.item() == 4
    inputs = [hidden, weight, *([b] if bias else [])]
    for one, other in zip(torch.autograd.grad(got, inputs), torch.autograd.grad(want, inputs), strict=True):
        assert torch.allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_ignored_target_gives_no_loss_and_no_gradient(backend):
    hidden = torch.randn(3, 4).requires_grad_()
    losses, count = cross_entropy(
        hidden, torch.randn(5, 4), None, torch.tensor([-1, 2, -1]), 0.1, per_token=True, backend=backend
    )
    losses.sum().backward()
    assert hidden.grad is not None
    assert losses[[0, 2]].tolist() == [0, 0]
    assert (hidden.grad[[0, 2]] == 0).all()
    assert count.item() == 1
    none, zero = cross_entropy(hidden, torch.randn(5, 4), None, torch.full((3,), -1), backend=backend)
    assert (none.item(), zero.item()) == (0, 0)


def test_half_precision_is_summed_in_single():
    hidden, weight = torch.randn(4, 8).bfloat16(), torch.randn(50, 8).bfloat16()
    target = torch.tensor([1, 2, 3, 4])
    losses = cross_entropy_reference(hidden, weight, None, target)
    fast, _ = cross_entropy(hidden, weight, None, target, per_token=True)
    assert losses.dtype == fast.dtype == torch.float32
    assert torch.allclose(losses, fast, atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_rows(backend):
    total, count = cross_entropy(
        torch.zeros(0, 4), torch.randn(5, 4), None, torch.zeros(0, dtype=torch.int64), backend=backend
    )
    assert (total.item(), count.item()) == (0, 0)


def test_a_backend_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match=r"There is no backend `plan`. Did you mean `plain`\?"):
        cross_entropy(torch.zeros(1, 2), torch.zeros(3, 2), None, torch.tensor([0]), backend="plan")


@pytest.mark.parametrize("backend", ["reference", "plain", "chunked"])
def test_a_smoothing_that_is_no_share_is_refused(backend):
    hidden, weight, target = torch.ones(2, 3), torch.ones(4, 3), torch.zeros(2, dtype=torch.int64)
    with pytest.raises(InputError, match=r"`smoothing` must lie between 0 and 1, but is 1\.5"):
        cross_entropy(hidden, weight, None, target, 1.5, backend=backend)
