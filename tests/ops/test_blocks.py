import pytest
import torch

from weft.core.errors import ConfigError
from weft.core.sequences import Sequences
from weft.ops import NormedKernel, residual_blocks, residual_blocks_reference
from weft.ops.blocks import keep_past, split_past, state_rows


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def kernels(width: int, levels: int, taps: int) -> list[NormedKernel]:
    return [NormedKernel(draw(width, width, taps), draw(width, 1, 1), draw(width)) for _ in range(2 * levels)]


def torch_blocks(x: torch.Tensor, weights: list[NormedKernel]) -> torch.Tensor:
    """Build the blocks from torch's own layers, channels first."""
    width, taps, y = x.shape[2], weights[0].v.shape[2], x.mT
    for c, w in enumerate(weights):
        if c % 2 == 0:
            before = y
        conv = torch.nn.Conv1d(width, width, taps, dilation=2 ** (c // 2), dtype=x.dtype)
        conv = torch.nn.utils.parametrizations.weight_norm(conv)
        parts = {"parametrizations.weight.original0": w.g, "parametrizations.weight.original1": w.v}
        front = torch.nn.functional.pad(y, ((taps - 1) * 2 ** (c // 2), 0))
        y = torch.func.functional_call(conv, {**parts, "bias": w.bias}, front).relu()
        if c % 2 == 1:
            y = (before + y).relu()
    return y.mT


@pytest.mark.parametrize("backend", ["reference", "torch"])
@pytest.mark.parametrize(("levels", "taps", "size"), [(1, 2, 1), (2, 3, 9), (3, 2, 4)])
def test_they_are_torchs_layers(backend, levels, taps, size):
    x, weights = draw(2, size, 3), kernels(3, levels, taps)
    want = torch_blocks(x, weights)
    got, past = residual_blocks(x, weights, backend=backend)
    assert torch.allclose(got, want, atol=1e-12)
    assert past.shape == (2, state_rows(2 * levels, taps), 3)
    leaves, slope = [x, *(leaf for w in weights for leaf in w)], torch.randn_like(want)
    for one, other in zip(
        torch.autograd.grad(got, leaves, slope), torch.autograd.grad(want, leaves, slope), strict=True
    ):
        assert torch.allclose(one, other, atol=1e-10)


def test_the_past_by_hand():
    """One block of two taps keeps, of each convolution, the last input before the row's end."""
    one = NormedKernel(torch.tensor([[[0.0, 1.0]]]), torch.ones(1, 1, 1), torch.zeros(1))
    x = torch.tensor([[[1.0], [2.0], [3.0]], [[4.0], [5.0], [6.0]]])
    past = torch.tensor([[[7.0], [8.0]], [[9.0], [10.0]]])
    y, new = residual_blocks_reference(x, [one, one], 0.0, past, torch.tensor([2, 0]))
    assert y.flatten().tolist() == [2, 4, 0, 0, 0, 0]
    assert new.flatten().tolist() == [2, 2, 9, 10]


@pytest.mark.parametrize("cut", [0, 1, 3, 6])
def test_a_ragged_stream_may_be_cut_anywhere(cut):
    x, weights = Sequences(draw(3, 6, 2), torch.tensor([6, 0, 4])), kernels(2, 2, 3)
    want, end = residual_blocks(x.data, weights, lengths=x.lengths)
    past, parts = None, []
    for part in x.split(cut):
        y, past = residual_blocks(part.data, weights, past=past, lengths=part.lengths)
        parts.append(y)
    assert torch.allclose(torch.cat(parts, dim=1), want, atol=1e-12)
    assert torch.allclose(past, end, atol=1e-12)


def test_pasts_stand_one_behind_the_other():
    pasts = split_past(torch.zeros(2, state_rows(6, 4), 5), 6)
    assert [past.shape[1] for past in pasts] == [3, 3, 6, 6, 12, 12]


def test_dropout_follows_the_seed():
    x, weights = draw(2, 9, 3), kernels(3, 2, 2)
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(residual_blocks(x, weights, 0.5)[0])
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_what_cannot_run_is_refused():
    x, weights = draw(1, 2, 3), kernels(3, 1, 2)
    with pytest.raises(
        ConfigError, match=r'backend="fused" cannot run these blocks: their input is not on a CUDA device'
    ):
        residual_blocks(x, weights, backend="fused")
    with pytest.raises(ConfigError, match="There is no backend `cuda`"):
        residual_blocks(x, weights, backend="cuda")
    with pytest.raises(
        ConfigError, match=r"`dropout` must be at least 0 and below 1, but is 1\.0\. Try 0\.1\."
    ):
        residual_blocks(x, weights, 1.0)


@pytest.mark.parametrize("size", [0, 1, 3, 4, 7])
@pytest.mark.parametrize("reach", [0, 1, 4])
def test_the_past_of_whole_rows_needs_no_index(size, reach):
    x, past = Sequences.full(torch.randn(2, size, 3)), torch.randn(2, reach, 3)
    assert torch.equal(keep_past(x, past, whole=True), keep_past(x, past))
