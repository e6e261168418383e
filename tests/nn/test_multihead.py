import pytest
import torch
from torch import nn

from weft.nn import MultiheadAttention

D, N = 8, 2


def make(**options):
    options = {"dtype": torch.float64, "batch_first": True, **options}
    ours, theirs = MultiheadAttention(D, N, **options), nn.MultiheadAttention(D, N, **options)
    for name, leaf in ours.named_parameters():
        leaf.data.normal_(std=0.3) if "bias" in name else None
    assert list(ours.state_dict()) == list(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


def inputs(batch_first: bool = True, kdim: int = D, vdim: int = D):
    drawn = [torch.randn(3, size, width).double() for size, width in ((4, D), (5, kdim), (5, vdim))]
    return drawn if batch_first else [x.transpose(0, 1) for x in drawn]


def hold(got, want) -> None:
    for one, other in zip(got, want, strict=True):
        assert one is other is None or torch.allclose(one, other, atol=1e-10)


@pytest.mark.parametrize("options", [
    {}, {"bias": False}, {"batch_first": False}, {"kdim": 6, "vdim": 5}, {"add_bias_kv": True},
    {"add_zero_attn": True, "batch_first": False},
])  # fmt: skip
@pytest.mark.parametrize("call", [
    {}, {"need_weights": False}, {"average_attn_weights": False},
    {"attn_mask": torch.ones(4, 5, dtype=torch.bool).triu(2)},
])  # fmt: skip
def test_it_is_torchs(options, call):
    ours, theirs = make(**options)
    x = inputs(options.get("batch_first", True), options.get("kdim", D), options.get("vdim", D))
    hold(ours(*x, **call), theirs(*x, **call))


@pytest.mark.parametrize("first", [True, False])
def test_lengths_are_a_padding_mask_with_gradients(first):
    ours, theirs = make(batch_first=first)
    x, lengths = inputs(first), torch.tensor([2, 5, 3])
    padding = torch.arange(5) >= lengths.unsqueeze(1)
    got, want = ours(*x, lengths=lengths), theirs(*x, padding)
    hold(got, want)
    got[0].square().sum().backward()
    want[0].square().sum().backward()
    hold([p.grad for p in ours.parameters()], [p.grad for p in theirs.parameters()])


def test_lengths_join_a_given_padding_mask():
    ours, theirs = make()
    x, given = inputs(), torch.zeros(3, 5, dtype=torch.bool)
    given[:, 0] = True
    padding = given | (torch.arange(5) >= torch.tensor([[2], [5], [3]]))
    hold(ours(*x, given, lengths=torch.tensor([2, 5, 3])), theirs(*x, padding))


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("average", [True, False])
def test_an_empty_row_gives_the_output_bias_and_no_nan(first, bias, average):
    ours, theirs = make(batch_first=first, bias=bias)
    x, lengths = inputs(first), torch.tensor([0, 5, 3])
    y, weights = ours(*x, lengths=lengths, average_attn_weights=average)
    rows = y if first else y.transpose(0, 1)
    nothing = ours.out_proj.bias if bias else torch.zeros(D).double()
    assert torch.equal(rows[0], nothing.expand(4, D))
    assert (weights[0] == 0).all()
    want, _ = theirs(*x, torch.arange(5) >= lengths.unsqueeze(1))
    want = want if first else want.transpose(0, 1)
    assert torch.allclose(rows[1:], want[1:])
    y.square().sum().backward()
    assert all(p.grad.isfinite().all() for p in ours.parameters())


@pytest.mark.parametrize("options", [{"add_bias_kv": True}, {"add_zero_attn": True}])
def test_a_row_with_a_key_of_its_own_is_never_empty(options):
    ours, theirs = make(**options)
    x, lengths = inputs(), torch.tensor([0, 5, 3])
    hold(ours(*x, lengths=lengths), theirs(*x, torch.arange(5) >= lengths.unsqueeze(1)))


def test_evaluation_takes_torchs_short_cut_with_the_same_numbers():
    ours, theirs = make()
    x = torch.randn(3, 5, D).double()
    with torch.no_grad():
        slow = ours(x, x, x, lengths=torch.tensor([0, 2, 5]))[0]
        fast = ours.eval()(x, x, x, lengths=torch.tensor([0, 2, 5]))[0]
        assert torch.allclose(fast, slow, atol=1e-10)
        assert torch.allclose(
            fast[1:], theirs.eval()(x, x, x, torch.arange(5) >= torch.tensor([[0], [2], [5]]))[0][1:]
        )


def test_lengths_join_masks_that_are_added():
    ours, theirs = make()
    x, lengths = inputs(), torch.tensor([2, 5, 3])
    padding = torch.zeros(3, 5).double().masked_fill(torch.arange(5) >= lengths.unsqueeze(1), float("-inf"))
    given, pairs = torch.randn(3, 5).double(), torch.randn(4, 5).double()
    hold(ours(*x, given, lengths=lengths), theirs(*x, given + padding))
    hold(ours(*x, attn_mask=pairs, lengths=lengths), theirs(*x, padding, attn_mask=pairs))


@pytest.mark.parametrize("first", [True, False])
def test_lengths_of_one_row_without_a_batch(first):
    ours, theirs = make(batch_first=first)
    q, k, v = (x[0] for x in inputs())
    hold(ours(q, k, v, lengths=torch.tensor([2])), theirs(q, k, v, torch.arange(5) >= 2))
    y, weights = ours(q, k, v, lengths=torch.tensor([0]))
    assert torch.equal(y, ours.out_proj.bias.expand(4, D))
    assert (weights == 0).all()


def test_an_empty_row_may_be_masked_too():
    ours = make()[0]
    given = torch.tensor([[True] * 5, [False] * 5, [False] * 5])
    ours(*inputs(), given, lengths=torch.tensor([0, 5, 3]))[0].square().sum().backward()
    assert all(p.grad.isfinite().all() for p in ours.parameters())


def test_lengths_are_not_read_back():
    """On the meta device there is nothing to read; a compiler and a GPU need not wait either."""
    ours = MultiheadAttention(D, N, batch_first=True, device="meta")
    x = torch.randn(3, 5, D, device="meta")
    assert ours(x, x, x, lengths=torch.tensor([0, 5, 3], device="meta"))[0].shape == (3, 5, D)
