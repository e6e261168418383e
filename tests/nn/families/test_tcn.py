import pytest
import torch

from weft.core.errors import ConfigError
from weft.core.sequences import Sequences
from weft.nn.families import families
from weft.nn.families.tcn import WeightNormConv, receptive_field

TCN = families["tcn"]


def make(layers: int, kernel: int):
    """Build blocks whose kernels and inputs are positive, so that no relu hides a connection."""
    network = TCN.backbone(3, TCN.Config(layers=layers, kernel=kernel, dropout=0.0), None).double()
    for block in network.blocks:
        block.first.v.data.abs_()
        block.second.v.data.abs_()
    return network


@pytest.mark.parametrize(("layers", "kernel"), [(1, 2), (1, 3), (2, 3), (3, 2), (4, 3)])
def test_the_receptive_field_measured_by_gradients(layers, kernel):
    network, field = make(layers, kernel), receptive_field(layers, kernel)
    x = torch.rand(1, field + 5, 3).double().requires_grad_()
    y = network(Sequences.full(x))[0].data
    (gradient,) = torch.autograd.grad(y[0, -1].sum(), x)
    seen = gradient[0].abs().sum(1) > 0
    assert seen.tolist() == [False] * 5 + [True] * field


def test_the_receptive_field_by_hand():
    """Two convolutions of 3 taps a block, dilated by 1 and 2: 1 + 2 * 2 * (1 + 2) = 13."""
    assert receptive_field(2, 3) == 13


def test_weight_norm_is_torchs():
    ours = WeightNormConv(4, 3, 2).double()
    theirs = torch.nn.Conv1d(4, 4, 3, dilation=2, dtype=torch.float64)
    theirs.weight.data.copy_(ours.v)
    theirs.bias.data.copy_(ours.bias)
    theirs = torch.nn.utils.parametrizations.weight_norm(theirs)
    ours.g.data.mul_(1.5)
    theirs.parametrizations.weight.original0.data.mul_(1.5)
    x = torch.randn(2, 6, 4).double()
    want = theirs(torch.nn.functional.pad(x.mT, (4, 0))).mT
    got = ours(x, None)
    assert torch.allclose(got, want, atol=1e-12)
    got.square().sum().backward()
    want.square().sum().backward()
    assert torch.allclose(ours.g.grad, theirs.parametrizations.weight.original0.grad, atol=1e-10)
    assert torch.allclose(ours.v.grad, theirs.parametrizations.weight.original1.grad, atol=1e-10)


def test_weight_norm_begins_as_the_plain_kernel():
    conv = WeightNormConv(4, 3, 1)
    assert torch.allclose(conv.weight(), conv.v, atol=1e-6)


def test_looking_both_ways_is_centred():
    network = TCN.encoder(3, TCN.Config(layers=1, kernel=3, dropout=0.0), True).double()
    for conv in (network.blocks[0].first, network.blocks[0].second):
        conv.v.data.abs_()
    x = torch.rand(1, 9, 3).double().requires_grad_()
    (gradient,) = torch.autograd.grad(network(Sequences.full(x)).data[0, 4].sum(), x)
    seen = gradient[0].abs().sum(1) > 0
    assert seen.tolist() == [False] * 2 + [True] * 5 + [False] * 2


def test_looking_both_ways_needs_an_odd_kernel():
    with pytest.raises(
        ConfigError, match=r"`kernel` must be odd for a tcn that looks both ways, but is 4\. Try 5\."
    ):
        TCN.encoder(3, TCN.Config(kernel=4), True)


def test_lengths_are_not_asked_of_an_exporter_or_a_map():
    network = make(2, 3)
    x, lengths = torch.randn(2, 3, 5, 3).double(), torch.tensor([5, 2, 3])

    class Padded(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, x, lengths):
            return self.network(Sequences(x, lengths))[0].data

    want = torch.stack([Padded()(row, lengths) for row in x])
    exported = torch.export.export(Padded(), (x[0], lengths)).module()
    assert torch.allclose(exported(x[1], lengths), want[1])
    assert torch.allclose(torch.func.vmap(Padded())(x, lengths.expand(2, 3)), want)
