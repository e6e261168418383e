"""The kernels of additive attention, interpreted, against the equation in float64."""

import jaxtyping
import pytest
import torch

from weft.core.errors import ConfigError
from weft.ops import attention, attention_weights, trust
from weft.ops.attention import attend, masked_softmax
from weft.ops.kernels import additive_weights as kernels
from weft.ops.scores import ScoreParams, pair_score

TOLERANCE = {torch.float32: 5e-6, torch.float16: 3e-3, torch.bfloat16: 2e-2}  # of the norm


@pytest.fixture(autouse=True)
def poisoned_memory(monkeypatch):
    """Fill every new buffer with NaN: what is read must have been written."""

    def poisoned(make):
        def made(*args, **options):
            out = make(*args, **options)
            return out.fill_(torch.nan) if out.is_floating_point() else out

        return made

    monkeypatch.setattr(torch.Tensor, "new_empty", poisoned(torch.Tensor.new_empty))
    monkeypatch.setattr(torch, "empty_like", poisoned(torch.empty_like))


def draw(shapes, dtype=torch.float32):
    """Return q, k and w; w a little larger than usual so that the weights are far from even."""
    q, k, w = (torch.randn(shape) for shape in shapes)
    return [x.to(dtype).requires_grad_() for x in (q, k, 2 * w)]


def reference(q, k, w, mask):
    return masked_softmax(pair_score(q, k, "additive", w), mask)


def check(leaves, mask):
    """Compare the weights and every gradient with the equation of the same numbers in float64."""
    wide = [x.detach().double().requires_grad_() for x in leaves]
    got, want = kernels.additive_weights(*leaves, mask), reference(*wide, mask)
    assert got.shape == want.shape
    assert got.dtype == leaves[0].dtype
    slopes = torch.randn(want.shape).to(got.dtype)
    made = [got, *torch.autograd.grad(got, leaves, slopes)]
    wanted = [want, *torch.autograd.grad(want, wide, slopes.double())]
    for name, one, other in zip(("weights", "q", "k", "w"), made, wanted, strict=True):
        bound = TOLERANCE[got.dtype] * other.norm() + 5e-6
        assert (one.double() - other).norm() <= bound, name
    return made


SIZES = [
    # batch, queries, keys, width
    (1, 1, 1, 1),
    (3, 1, 7, 5),
    (2, 3, 65, 33),
    (1, 4, 2, 130),
    (2, 5, 1, 7),
    (2, 9, 33, 40),
    (1, 33, 17, 31),
    (1, 17, 130, 6),
    (1, 40, 3, 66),
]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kind", ["none", "keys", "pairs", "causal"])
def test_it_is_the_equation_at_awkward_sizes(size, kind):
    b, t, s, h = size
    mask = {
        "none": None,
        "keys": torch.rand(b, 1, s) < 0.6,
        "pairs": torch.rand(b, t, s) < 0.5,
        "causal": torch.ones(t, s, dtype=torch.bool).tril(),
    }[kind]
    check(draw([(b, t, h), (b, s, h), (h,)]), mask)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("queries", [2, 11])
def test_half_precision(dtype, queries):
    check(draw([(2, queries, 24), (2, 19, 24), (24,)], dtype), torch.rand(2, queries, 19) < 0.7)


@pytest.mark.parametrize("queries", [1, 12])
def test_a_query_without_keys_gets_zeros_and_gives_zero_gradients(queries):
    mask = torch.ones(3, queries, 9, dtype=torch.bool)
    mask[1] = mask[2, 0] = False
    weights, dq, dk, _ = check(draw([(3, queries, 6), (3, 9, 6), (6,)]), mask)
    for left_out in (weights[1], weights[2, 0], dq[1], dq[2, 0], dk[1]):
        assert (left_out == 0).all()
    assert weights[0].any()


@pytest.mark.parametrize("queries", [2, 70])
def test_what_stands_at_masked_pairs_does_not_matter(queries):
    q, k, w = draw([(1, queries, 5), (1, 140, 5), (5,)])
    mask = torch.ones(1, 1, 140, dtype=torch.bool)
    mask[..., 3:] = False  # leaves a tile without any pair
    noisy = k.detach().clone()
    noisy[:, 3:] = torch.nan
    want = reference(q, k[:, :3], w, None)
    got = kernels.additive_weights(q, noisy, w, mask)
    assert torch.allclose(got[..., :3], want, atol=1e-6)
    assert (got[..., 3:] == 0).all()


def test_leading_axes_and_masks_that_broadcast():
    for leading, mask_shape in [
        ((2, 3), (2, 1, 1, 6)),
        ((2, 1), (2, 1, 1, 6)),
        ((2, 3), (1, 3, 5, 6)),
        ((), (6,)),
        ((2,), (5, 1)),
    ]:
        check(draw([(*leading, 5, 4), (*leading, 6, 4), (4,)]), torch.rand(mask_shape) < 0.7)


def test_inputs_that_do_not_lie_in_rows():
    q = torch.randn(2, 6, 5).mT.requires_grad_()
    k, w = torch.randn(2, 7, 12)[..., ::2].requires_grad_(), torch.randn(12)[::2].requires_grad_()
    check([q, k, w], (torch.rand(2, 7, 5) < 0.6).mT)


@pytest.mark.parametrize("multiprocessors", [1, 2, 7, 132])
def test_every_split_gives_the_same_sums(monkeypatch, multiprocessors):
    monkeypatch.setattr(kernels, "_multiprocessors", lambda x: multiprocessors)
    check(draw([(1, 50, 34), (1, 37, 34), (34,)]), torch.rand(50, 37) < 0.5)


def test_splits_cover_everything_once():
    for programs, queries, keys in [
        (1, 50, 37),
        (1024, 256, 256),
        (128, 1024, 1024),
        (3, 1, 1),
        (1, 1, 5000),
    ]:
        parts = kernels.split(programs, queries, keys, 132)
        tiles = -(-queries // parts.block_q)
        assert (parts.q_parts - 1) * parts.tiles_each < tiles <= parts.q_parts * parts.tiles_each
        assert (parts.k_parts - 1) * parts.keys_each < keys <= parts.k_parts * parts.keys_each


def test_rows_longer_than_a_block_of_the_softmax(monkeypatch):
    monkeypatch.setattr(kernels, "ROW", 4)
    check(draw([(2, 6, 3), (2, 11, 3), (3,)]), torch.rand(2, 6, 11) < 0.5)


def test_large_scores_stay_finite():
    q, k = 300 * torch.randn(1, 6, 4), 300 * torch.randn(1, 5, 4)
    w = torch.full((4,), 1e4)
    check([x.requires_grad_() for x in (q, k, w)], None)


@pytest.mark.parametrize("score", ["additive", "concat"])
def test_attend_runs_through_the_kernels(monkeypatch, score):
    """The kernels refuse a CPU outside this test, so it lets them in."""
    monkeypatch.setattr(attention, "_refusal", lambda score, *tensors: None)
    q, k, v = (torch.randn(2, n, 6, requires_grad=True) for n in (7, 5, 5))
    leaves = [torch.randn(4, 6), torch.randn(4, 6), torch.randn(4), torch.randn(4, 12)]
    w_q, w_k, w, w_qk = (x.requires_grad_() for x in leaves)
    p = ScoreParams(w_q, w_k, w) if score == "additive" else ScoreParams(w=w, w_qk=w_qk)
    lengths = torch.tensor([3, 0])
    inputs = [q, k, v, *(x for x in p if x is not None)]
    results = []
    for backend in ("fused", "reference"):
        out = attend(q, k, v, score, p, lengths, causal=True, backend=backend)
        results.append([out, *torch.autograd.grad(out.square().sum(), inputs)])
    for one, other in zip(*results, strict=True):
        assert torch.allclose(one, other, atol=1e-5)
    assert torch.equal(results[0][0][1], torch.zeros(7, 6))
    assert attention_weights(q, k, score, p).shape == (2, 7, 5)


def test_what_the_kernels_cannot_do_is_refused_by_reason():
    x, p = torch.zeros(1, 2, 3), ScoreParams(w=torch.zeros(3))
    with pytest.raises(ConfigError, match=r"cannot attend here: its input is not on a CUDA device. Try"):
        attend(x, x, x, "additive", p, backend="fused")
    with pytest.raises(ConfigError, match="the score `dot` goes through torch's own attention"):
        attend(x, x, x, "dot", backend="fused")


@pytest.mark.parametrize("trusted", [False, True])
def test_auto_takes_them_only_when_they_are_trusted(monkeypatch, trusted):
    took = []
    monkeypatch.setattr(attention, "_refusal", lambda score, *tensors: None)
    monkeypatch.setattr(attention, "_pool_by_kernels", lambda *given: took.append(given) or given[2])
    monkeypatch.setattr(trust, "TRUSTED", frozenset({"additive"} if trusted else {"loss"}))
    x = torch.zeros(1, 2, 3)
    attention.pool(x, x, x, "additive", torch.zeros(3), None)
    assert bool(took) == trusted


def test_the_operation_is_well_formed():
    leaves = draw([(2, 5, 3), (2, 4, 3), (3,)])
    mask = torch.rand(2, 1, 4) < 0.7
    torch.library.opcheck(kernels._weights, (*leaves, mask), test_utils=("test_schema", "test_faketensor"))


def test_torch_compile_sees_through_it(monkeypatch):
    """Traced whole, forward and backward; the kernels themselves stay interpreted."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # torch cannot trace the checks
    q, k, v = (torch.randn(2, n, 6, requires_grad=True) for n in (7, 5, 5))
    w = torch.randn(6, requires_grad=True)

    def run(q, k, v, lengths):
        mask = lengths[:, None, None] > torch.arange(5)
        return attention.pool(q, k, v, "additive", w, mask, backend="fused").square().sum()

    lengths = torch.tensor([3, 0])
    want = torch.autograd.grad(run(q, k, v, lengths), [q, k, v, w])
    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    got = torch.autograd.grad(compiled(q, k, v, lengths), [q, k, v, w])
    assert all(torch.allclose(one, other, atol=1e-6) for one, other in zip(got, want, strict=True))
