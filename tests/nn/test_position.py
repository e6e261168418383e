import pytest
import torch

from weft.core.errors import ConfigError
from weft.nn import PositionEncoding
from weft.ops import plain_index, sinusoid

X, AT = torch.randn(2, 3, 4), torch.tensor([[0, 1, 2], [5, 6, 7]])


@pytest.mark.parametrize("kind", ["none", "rotary"])
@pytest.mark.parametrize("mode", ["add", "concat"])
def test_some_kinds_do_nothing_here(kind, mode):
    layer = PositionEncoding(kind, mode, 4, 10)
    assert layer(X, AT) is X
    assert not list(layer.parameters())


def test_kinds_are_added():
    assert torch.equal(PositionEncoding("sinusoidal", "add", 4, 10)(X, AT), X + sinusoid(AT, 4))
    assert torch.equal(PositionEncoding("index", "add", 4, 10)(X, AT), X + plain_index(AT, 4))
    learned = PositionEncoding("learned", "add", 4, 10)
    assert torch.equal(learned(X, AT), X + learned.table[AT])


def test_kinds_are_concatenated_and_mapped():
    layer = PositionEncoding("sinusoidal", "concat", 4, 10)
    want = torch.cat([X, sinusoid(AT, 4)], dim=-1) @ layer.join.weight.T + layer.join.bias
    assert torch.allclose(layer(X, AT), want, atol=1e-6)


def test_the_input_keeps_its_precision():
    assert PositionEncoding("sinusoidal", "add", 4, 10)(X.bfloat16(), AT).dtype == torch.bfloat16


def test_learned_positions_end_somewhere():
    layer = PositionEncoding("learned", "add", 4, 7)
    message = r"Learned positions reach `max_positions` \(7\), but a sequence has 8 elements. Raise it, cut"
    with pytest.raises(ConfigError, match=message):
        layer(X, AT)
    assert layer(X[:, :0], AT[:, :0]).shape == (2, 0, 4)
