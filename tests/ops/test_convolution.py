import pytest
import torch

from weft.core.errors import ConfigError, InputError
from weft.ops import causal_conv, causal_conv_reference


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def test_by_hand():
    """y_t = 1 + 10 x_{t-2} + x_t, with nothing before the start."""
    x = torch.tensor([[[1.0], [2.0], [3.0], [4.0]]])
    y = causal_conv_reference(x, torch.tensor([[[10.0, 1.0]]]), torch.tensor([1.0]), 2)
    assert y.flatten().tolist() == [2, 3, 14, 25]


@pytest.mark.parametrize("backend", ["reference", "torch"])
@pytest.mark.parametrize(
    ("kernel", "dilation", "size", "bias"), [(1, 1, 4, True), (2, 3, 7, False), (3, 2, 2, True)]
)
def test_it_is_conv1d_of_an_input_padded_in_front(backend, kernel, dilation, size, bias):
    x, weight, b = draw(2, size, 3), draw(4, 3, kernel), draw(4) if bias else None
    front = torch.nn.functional.pad(x.mT, ((kernel - 1) * dilation, 0))
    want = torch.nn.functional.conv1d(front, weight, b, dilation=dilation).mT
    got = causal_conv(x, weight, b, dilation, backend=backend)
    assert torch.allclose(got, want, atol=1e-12)
    inputs, factor = [x, weight, *([b] if bias else [])], torch.randn(want.shape)
    for one, other in zip(
        torch.autograd.grad((got * factor).sum(), inputs),
        torch.autograd.grad((want * factor).sum(), inputs),
        strict=True,
    ):
        assert torch.allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("backend", ["reference", "torch"])
@pytest.mark.parametrize("cut", [1, 3, 6])
def test_a_stream_may_be_cut_anywhere(backend, cut):
    x, weight, bias = draw(2, 7, 3), draw(4, 3, 3), draw(4)
    reach = 4
    whole = causal_conv(x, weight, bias, 2)
    start = x.new_zeros(2, reach, 3)
    past = torch.cat([start, x[:, :cut]], dim=1)[:, -reach:]
    parts = [
        causal_conv(x[:, :cut], weight, bias, 2, start, backend),
        causal_conv(x[:, cut:], weight, bias, 2, past, backend),
    ]
    assert torch.allclose(torch.cat(parts, dim=1), whole, atol=1e-12)


def test_a_backend_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match="There is no backend `cuda`"):
        causal_conv(draw(1, 2, 3), draw(4, 3, 3), backend="cuda")


@pytest.mark.parametrize("size", [0, 4])
def test_a_past_of_another_size_is_refused(size):
    with pytest.raises(InputError, match="`past` must hold the 4 inputs before x, but holds 5"):
        causal_conv(draw(2, size, 3), draw(3, 3, 3), None, 2, past=draw(2, 5, 3))
