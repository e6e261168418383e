"""Our layers against torch.nn's with the same weights, and what self-attention can and cannot tell."""

import pytest
import torch
from torch import nn

from weft.core.errors import ConfigError
from weft.core.sequences import Sequences
from weft.core.taps import listen
from weft.nn.families import AttentionSpec, families

TRANSFORMER = families["transformer"]
D, N, F = 8, 2, 12


def config(**options):
    return TRANSFORMER.Config(**{"layers": 2, "heads": N, "feedforward": F, "dropout": 0.0,
                                 "positions": "none", **options})  # fmt: skip


def copy_attention(theirs: nn.MultiheadAttention, ours) -> None:
    parts = [ours.query, ours.key, ours.value]
    theirs.in_proj_weight.data.copy_(torch.cat([part.weight for part in parts]))
    theirs.in_proj_bias.data.copy_(torch.cat([part.bias for part in parts]))
    theirs.out_proj.load_state_dict(ours.out.state_dict())


def copy_layer(theirs, ours) -> None:
    """Give torch's encoder or decoder layer our weights."""
    copy_attention(theirs.self_attn, ours.self_attention)
    theirs.linear1.load_state_dict(ours.feedforward.inner.state_dict())
    theirs.linear2.load_state_dict(ours.feedforward.outer.state_dict())
    branches = [ours.self_branch, ours.feedforward_branch]
    if ours.cross_attention is not None:
        copy_attention(theirs.multihead_attn, ours.cross_attention)
        branches.insert(1, ours.cross_branch)
    for i, branch in enumerate(branches, 1):
        getattr(theirs, f"norm{i}").load_state_dict(branch.norm.state_dict())


def shake(network) -> None:
    """Move biases and norms away from zeros and ones, so that a mix-up shows."""
    for leaf in network.parameters():
        leaf.data += 0.1 * torch.randn_like(leaf)


OPTIONS = {"d_model": D, "nhead": N, "dim_feedforward": F, "dropout": 0.0, "batch_first": True,
           "dtype": torch.float64}  # fmt: skip


def gradients(y: torch.Tensor, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    torch.manual_seed(5)
    return list(torch.autograd.grad((y * torch.randn(y.shape, dtype=y.dtype)).sum(), inputs))


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_encoder_is_torchs(norm, activation):
    ours = TRANSFORMER.encoder(D, config(norm=norm, activation=activation), True).double()
    shake(ours)
    layers = [
        nn.TransformerEncoderLayer(**OPTIONS, activation=activation, norm_first=norm == "pre") for _ in "ab"
    ]
    for theirs, layer in zip(layers, ours.layers, strict=True):
        copy_layer(theirs, layer)
    x = torch.randn(3, 5, D).double().requires_grad_()
    lengths = torch.tensor([5, 2, 4])
    got, want = ours(Sequences(x, lengths)), x
    for layer in layers:
        want = layer(want, src_key_padding_mask=~got.mask())
    want = got.with_data(ours.norm(want)).fill(0).data
    assert torch.allclose(got.data, want, atol=1e-10)
    mine = [x, *(ours.layers[0].feedforward.inner.parameters()), ours.layers[1].self_branch.norm.weight]
    their = [x, *(layers[0].linear1.parameters()), layers[1].norm1.weight]
    for one, other in zip(gradients(got.data, mine), gradients(want, their), strict=True):
        assert torch.allclose(one, other, atol=1e-9)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_decoder_is_torchs(norm):
    ours = TRANSFORMER.backbone(D, config(norm=norm), AttentionSpec("multihead", N)).double()
    shake(ours)
    layers = [nn.TransformerDecoderLayer(**OPTIONS, norm_first=norm == "pre") for _ in "ab"]
    for theirs, layer in zip(layers, ours.layers, strict=True):
        copy_layer(theirs, layer)
    x = torch.randn(2, 4, D).double().requires_grad_()
    source = Sequences(torch.randn(2, 5, D).double().requires_grad_(), torch.tensor([5, 3]))
    got = ours(Sequences.full(x), None, ours.prepare(source, source.mean()))[0].data
    want, later = x, torch.ones(4, 4, dtype=torch.bool).triu(1)
    for layer in layers:
        want = layer(want, source.data, tgt_mask=later, memory_key_padding_mask=~source.mask())
    want = ours.norm(want)
    assert torch.allclose(got, want, atol=1e-10)
    mine = [
        x,
        source.data,
        *(ours.layers[0].feedforward.outer.parameters()),
        ours.layers[1].cross_branch.norm.bias,
    ]
    their = [x, source.data, *(layers[0].linear2.parameters()), layers[1].norm2.bias]
    for one, other in zip(gradients(got, mine), gradients(want, their), strict=True):
        assert torch.allclose(one, other, atol=1e-9)


def read_words(network, table: dict[str, torch.Tensor], sentence: str) -> torch.Tensor:
    return network(Sequences.full(torch.stack([table[word] for word in sentence.split()]).unsqueeze(0))).data[
        0
    ]


@pytest.mark.parametrize("positions", ["none", "sinusoidal", "rotary", "learned", "index"])
def test_without_positions_order_is_unseen(positions):
    """ "he hit me with a pie" and "me hit he with a pie": every word has the same vector in both."""
    network = TRANSFORMER.encoder(D, config(positions=positions), True).double().eval()
    said, turned = ["he", "hit", "me", "with", "a", "pie"], ["me", "hit", "he", "with", "a", "pie"]
    table = {word: torch.randn(D).double() for word in said}
    first, second = (read_words(network, table, " ".join(words)) for words in (said, turned))
    order = [turned.index(word) for word in said]
    assert torch.allclose(first, second[order], atol=1e-12) is (positions == "none")


def test_a_causal_network_sees_order_even_so():
    network = TRANSFORMER.encoder(D, config(), False).double().eval()
    table = {word: torch.randn(D).double() for word in "abc"}
    assert not torch.allclose(read_words(network, table, "a b c")[2], read_words(network, table, "b a c")[1])


def test_the_neighbourhood_bounds_what_is_seen():
    network = TRANSFORMER.encoder(D, config(layers=1, neighbourhood=1), True).double()
    x = torch.randn(1, 6, D).double().requires_grad_()
    (gradient,) = torch.autograd.grad(network(Sequences.full(x)).data[0, 3].square().sum(), x)
    assert (gradient[0].abs().sum(1) > 0).tolist() == [False, False, True, True, True, False]


@pytest.mark.parametrize("capacity", [None, 2, 100])
def test_a_cache_of_any_capacity_gives_the_same(capacity):
    network = TRANSFORMER.backbone(D, config(positions="rotary"), None).double()
    x = Sequences.full(torch.randn(2, 5, D).double())
    want, state = network(x)[0].data, network.init_state(2, capacity)
    for t in range(5):
        y, state = network.step(x.data[:, t], state)
        assert torch.allclose(y, want[:, t], atol=1e-10)
    assert state.position.tolist() == [5, 5]
    assert state.layers[0].keys.shape[2] == (100 if capacity == 100 else 16 if capacity is None else 18)


def test_what_is_tapped():
    network = TRANSFORMER.backbone(D, config(), AttentionSpec("multihead", N)).double()
    source, x = Sequences.full(torch.randn(2, 5, D).double()), Sequences.full(torch.randn(2, 3, D).double())
    with listen() as trace:
        network(x, None, network.prepare(source, source.mean()))
    kinds = ("self_attention", "cross_attention")
    assert sorted(trace.names()) == sorted(f"layer{i}/{kind}" for i in (0, 1) for kind in kinds)
    [weights] = trace["layer1/self_attention"]
    assert weights.shape == (2, N, 3, 3)
    assert torch.equal(weights, weights.tril())
    assert torch.allclose(weights.sum(-1), torch.ones(()).double())


def test_heads_divide_the_width():
    with pytest.raises(ConfigError, match=r"`heads` must divide the width \(10\), but is 4. Try 2."):
        TRANSFORMER.backbone(10, config(heads=4), None)


def test_rotary_positions_need_heads_of_even_width():
    with pytest.raises(ConfigError, match=r"Rotary positions need heads of even width, but 12 / 4 is 3."):
        TRANSFORMER.backbone(12, config(heads=4, positions="rotary"), None)
