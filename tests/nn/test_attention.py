import pytest
import torch

from weft.core.errors import ConfigError
from weft.core.sequences import Sequences
from weft.core.taps import listen
from weft.nn import Attention, SourceReader
from weft.nn.attention import KINDS, merge_heads, split_heads
from weft.ops import attend, attention_weights

WIDTH = 8
SOURCE = Sequences(torch.randn(2, 5, WIDTH).double(), torch.tensor([5, 3]))
ASKING = [kind for kind in KINDS if kind != "none"]


def make(kind: str, values: bool = True) -> Attention:
    torch.manual_seed(1)
    return Attention(kind, WIDTH, 2, values).double()


def test_heads_are_cut_and_laid_side_by_side():
    x = torch.arange(12.0).view(1, 2, 6)
    assert split_heads(x, 2)[0, 1, 0].tolist() == [3, 4, 5]
    assert torch.equal(merge_heads(split_heads(x, 3)), x)


@pytest.mark.parametrize("kind", ASKING)
def test_it_is_the_op_on_its_own_parameters(kind):
    layer, q = make(kind), torch.randn(2, 4, WIDTH).double()
    got = layer(q, layer.prepare(SOURCE))
    k = v = SOURCE.data
    if kind == "multihead":
        q, k, v = (split_heads(m(x), 2) for m, x in ((layer.query, q), (layer.key, k), (layer.value, v)))
        want = layer.out(merge_heads(attend(q, k, v, lengths=SOURCE.lengths, backend="reference")))
    else:
        v = v if layer.value is None else layer.value(v)
        want = attend(q, k, v, kind, layer.params(), SOURCE.lengths, backend="reference")
    assert torch.allclose(got, want, atol=1e-10)


@pytest.mark.parametrize("kind", ASKING)
def test_what_is_tapped_are_the_weights_and_listening_changes_nothing(kind):
    layer, q = make(kind, values=False), torch.randn(6, 4, WIDTH).double()  # three lanes a source row
    memory = layer.prepare(SOURCE)
    quiet = layer(q, memory)
    with listen() as trace:
        assert torch.equal(layer(q, memory), quiet)
    [weights] = trace["cross_attention"]
    assert weights.shape == (6, 2 if kind == "multihead" else 1, 4, 5)
    assert torch.allclose(weights.sum(-1), torch.ones(()).double())
    assert (weights[3:, ..., 3:] == 0).all()
    if kind != "multihead":
        assert torch.allclose(weights[4, 0] @ SOURCE.data[1], quiet[4], atol=1e-10)
        want = attention_weights(q[4], SOURCE.data[1, :3], kind, layer.params())
        assert torch.allclose(weights[4, 0, :, :3], want, atol=1e-10)


def test_values_are_learned_when_asked():
    assert make("dot", values=False).value is None
    assert make("dot", values=True).value is not None
    assert not list(make("identity").parameters())


def test_the_reader_joins_output_and_context():
    reader = SourceReader("dot", WIDTH).double()
    memory, y = reader.prepare(SOURCE), torch.randn(2, 3, WIDTH).double()
    context = reader.attention(y, memory)
    want = torch.tanh(torch.cat([y, context], -1) @ reader.readout.weight.T + reader.readout.bias)
    assert torch.allclose(reader(y, memory), want, atol=1e-10)
    assert torch.allclose(reader.ask(y[:, 1], memory), context[:, 1], atol=1e-10)


def test_heads_divide_the_width():
    with pytest.raises(ConfigError, match=r"`heads` must divide the width \(8\), but is 3. Try 2."):
        Attention("multihead", 8, 3)


def test_a_kind_that_does_not_exist_is_refused():
    with pytest.raises(
        ConfigError, match=r"There is no attention score `adition`. Did you mean `additive`\?"
    ):
        Attention("adition", 8)
