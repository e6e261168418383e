import pytest
import torch

from weft.core.errors import ConfigError, InputError
from weft.ops import (
    SCORES,
    ScoreParams,
    attend,
    attend_reference,
    attention,
    attention_weights,
    masked_softmax,
)

WIDTH = 6


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def params(kind: str) -> ScoreParams:
    if kind in ("dot", "scaled_dot", "gaussian", "additive"):
        w = draw(WIDTH) if kind == "additive" else None
        return ScoreParams(draw(WIDTH, WIDTH), draw(WIDTH, WIDTH), w)
    if kind == "bilinear":
        return ScoreParams(m=draw(WIDTH, WIDTH))
    return ScoreParams(w_qk=draw(WIDTH, 2 * WIDTH), w=draw(WIDTH)) if kind == "concat" else ScoreParams()


def test_masked_softmax_by_hand():
    scores = torch.tensor([[0.0, 1.0986122886681098, 7.0]], dtype=torch.float64)  # e^0 = 1, e^ln 3 = 3
    got = masked_softmax(scores, torch.tensor([True, True, False]))
    assert got.tolist() == [pytest.approx([0.25, 0.75, 0.0])]
    assert torch.equal(masked_softmax(scores), torch.softmax(scores, -1))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_query_without_keys_gets_zeros_and_gives_zero_gradients(dtype):
    scores = torch.randn(3, 4).to(dtype).requires_grad_()
    mask = torch.tensor([[True] * 4, [False] * 4, [True, False, False, False]])
    weights = masked_softmax(scores, mask)
    weights.square().sum().backward()
    assert scores.grad is not None
    assert weights[1].tolist() == scores.grad[1].tolist() == [0, 0, 0, 0]
    assert weights[2].tolist() == [1, 0, 0, 0]
    assert scores.grad.isfinite().all()
    assert scores.grad[0].any()


@pytest.mark.parametrize("low", [-1e30, -3e38])
def test_kept_keys_with_very_low_scores_still_share_one(low):
    weights = masked_softmax(torch.full((1, 3), low), torch.tensor([True, True, False]))
    assert weights.tolist() == [[0.5, 0.5, 0]]


CASES = [
    # leading axes, lengths, causal, neighbourhood
    ((3,), None, False, None),
    ((3,), (4, 0, 1), False, None),
    ((3, 2), (5, 2, 0), False, None),
    ((3, 2), None, True, None),
    ((3,), (5, 3, 0), True, 1),
    ((3, 2), (5, 1, 3), False, 0),
]


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize(("leading", "lengths", "causal", "near"), CASES)
def test_the_fused_path_is_the_reference(kind, leading, lengths, causal, near):
    p = params(kind)
    q, k, v = draw(*leading, 4, WIDTH), draw(*leading, 5, WIDTH), draw(*leading, 5, 3)
    options = {"lengths": lengths and torch.tensor(lengths), "causal": causal, "neighbourhood": near}
    want = attend(q, k, v, kind, p, **options, backend="reference")
    got = attend(q, k, v, kind, p, **options, backend="torch")
    assert torch.allclose(got, want, atol=1e-12)
    if lengths and 0 in lengths:
        assert (got[lengths.index(0)] == 0).all()
    inputs, factor = [q, k, v, *(leaf for leaf in p if leaf is not None)], torch.randn(want.shape)
    for one, other in zip(
        torch.autograd.grad((got * factor).sum(), inputs),
        torch.autograd.grad((want * factor).sum(), inputs),
        strict=True,
    ):
        assert torch.allclose(one, other, atol=1e-11)


def test_the_reference_is_the_weights_times_the_values():
    q, k, v, p = draw(2, 3, WIDTH), draw(2, 4, WIDTH), draw(2, 4, 2), params("additive")
    weights = attention_weights(q, k, "additive", p)
    assert torch.allclose(weights.sum(-1), torch.ones(2, 3).double())
    want = torch.stack([(weights[b, :, :, None] * v[b]).sum(1) for b in range(2)])
    assert torch.allclose(attend_reference(q, k, v, "additive", p), want, atol=1e-12)


def test_a_mask_of_ones_own():
    q, k, v = draw(2, 3, WIDTH), draw(2, 4, WIDTH), draw(2, 4, 2)
    mask = torch.tensor([True, False, True, False])
    want = attend(q, k[:, ::2], v[:, ::2])
    for backend in ("reference", "torch"):
        assert torch.allclose(attend(q, k, v, mask=mask, backend=backend), want, atol=1e-12)


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("noise", [1e4, torch.nan])
def test_what_stands_in_the_padding_does_not_matter(kind, noise):
    p, q, k, v = params(kind), draw(2, 3, WIDTH), draw(2, 5, WIDTH), draw(2, 5, 2)
    lengths = torch.tensor([3, 5])
    noisy_k, noisy_v = k.detach().clone(), v.detach().clone()
    noisy_k[0, 3:] = noisy_v[0, 3:] = noise
    want = attend(q, k, v, kind, p, lengths)
    assert torch.allclose(attend(q, noisy_k, noisy_v, kind, p, lengths), want, atol=1e-10)
    assert torch.allclose(want[0], attend(q[:1], k[:1, :3], v[:1, :3], kind, p)[0], atol=1e-10)


@pytest.mark.parametrize("kind", ["additive", "concat"])
@pytest.mark.parametrize("mask", [None, "row", "full"])
def test_chunks_of_queries_give_the_same_numbers(monkeypatch, kind, mask):
    p, q, k, v = params(kind), draw(2, 7, WIDTH), draw(2, 5, WIDTH), draw(2, 5, 2)
    options = {
        None: {},
        "row": {"lengths": torch.tensor([5, 0])},
        "full": {"causal": True, "lengths": torch.tensor([2, 5])},
    }[mask]
    whole = attend(q, k, v, kind, p, **options)
    gradients = torch.autograd.grad(whole.square().sum(), [q, k, v])
    calls = []
    score = attention.pair_score
    monkeypatch.setattr(attention, "_CHUNK", 2 * k.numel())  # two queries at a time
    monkeypatch.setattr(attention, "pair_score", lambda *a: calls.append(a[0].shape[-2]) or score(*a))
    parts = attend(q, k, v, kind, p, **options)
    assert calls == [2, 2, 2, 1]
    assert torch.allclose(parts, whole, atol=1e-14)
    for one, other in zip(torch.autograd.grad(parts.square().sum(), [q, k, v]), gradients, strict=True):
        assert torch.allclose(one, other, atol=1e-13)


@pytest.mark.parametrize(("dtype", "offset", "tolerance"), [
    (torch.float32, 0.0, 1e-5), (torch.float32, 30.0, 1e-2),
    (torch.bfloat16, 0.0, 3e-2), (torch.bfloat16, 4.0, 0.1),
])  # fmt: skip
def test_the_gaussian_as_a_dot_keeps_its_digits(dtype, offset, tolerance):
    """Large norms cancel in ||q - k||^2; the norm is carried in two columns, high and low part."""
    q, k, v = ((torch.randn(2, 4, 8) + shift).to(dtype) for shift in (offset, offset, 0.0))
    want = attend_reference(q.double(), k.double(), v.double(), "gaussian")
    got = attend(q, k, v, "gaussian", backend="torch")
    assert (got.double() - want).abs().max() <= tolerance


def test_errors_name_what_is_wrong():
    q = torch.zeros(1, 2, 3)
    with pytest.raises(ConfigError, match=r"There is no attention score `dto`. Did you mean `dot`\?"):
        attend(q, q, q, "dto")
    with pytest.raises(ConfigError, match=r"There is no backend `fusd`. Did you mean `fused`\?"):
        attend(q, q, q, backend="fusd")


def test_what_torch_would_take_amiss_is_refused():
    q = torch.zeros(1, 2, 3)
    with pytest.raises(InputError, match=r"`mask` must be of bool, True keeps, but is of torch.float32"):
        attend(q, q, q, mask=torch.zeros(2, 2))
    with pytest.raises(InputError, match="`v` must have a value for each of the 2 keys, but has 1"):
        attention._check_pairs(q, q[:, :1], None)


@pytest.mark.parametrize(("score", "name"), [("additive", "w"), ("concat", "w_qk")])
def test_a_score_without_its_parameters_is_refused(score, name):
    q = torch.zeros(1, 2, 3)
    with pytest.raises(InputError, match=rf"The score `{score}` needs `{name}`, but has none."):
        attend(q, q, q, score, ScoreParams(w=torch.ones(3)) if name == "w_qk" else None)
