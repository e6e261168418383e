import pytest
import torch

from weft.nn import Dropout
from weft.nn.dropout import apply_mask, mask_at


def test_a_locked_mask_is_one_draw_for_all_steps():
    layer = Dropout(0.5, locked=True).train()
    y = layer(torch.ones(4, 7, 50))
    assert torch.equal(y, y[:, :1].expand_as(y))
    assert set(y.unique().tolist()) == {0.0, 2.0}
    assert not torch.equal(y[0], y[1])


def test_an_unlocked_mask_changes_with_every_step():
    y = Dropout(0.5).train()(torch.ones(4, 7, 50))
    assert not torch.equal(y[:, 0], y[:, 1])
    assert y.mean().item() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("locked", [False, True])
def test_evaluation_and_p_zero_change_nothing(locked):
    x = torch.randn(2, 3, 4)
    assert torch.equal(Dropout(0.5, locked).eval()(x), x)
    assert torch.equal(Dropout(0.0, locked).train()(x), x)
    assert Dropout(0.5, locked).eval().draw(x) is None


@pytest.mark.parametrize(("locked", "steps"), [(True, 1), (False, 3)])
def test_a_draw_is_used_step_by_step(locked, steps):
    mask = Dropout(0.5, locked).train().draw(torch.ones(2, 3, 40))
    assert mask.shape == (2, steps, 40)
    for t in range(3):
        assert torch.equal(mask_at(mask, t), mask[:, t if steps > 1 else 0])
    assert torch.equal(apply_mask(torch.full((2, 3, 40), 3.0), mask), 3 * mask.expand(2, 3, 40))
    assert mask_at(None, 1) is None
    x = torch.ones(1)
    assert apply_mask(x, None) is x


def test_it_says_what_it_is():
    assert repr(Dropout(0.25, True)) == "Dropout(p=0.25, locked=True)"
