"""The kernels of additive attention against the equation: outputs and every gradient, on a GPU."""

import random
from typing import NamedTuple

import pytest
import torch

from weft import ops
from weft.ops import ScoreParams
from weft.ops.attention import masked_softmax, pool
from weft.ops.scores import pair_score

pytestmark = pytest.mark.gpu

TOLERANCE = {torch.bfloat16: 4e-2, torch.float16: 6e-3, torch.float32: 2e-5}  # of the norm


class Draw(NamedTuple):
    """Projected queries and keys, values, and a mask."""

    dtype: torch.dtype
    batch: int
    queries: int
    keys: int
    width: int
    mask: str = "none"
    values: int = 16


def make(d: Draw):
    """Return q', k', v and w in the draw's type, and the mask."""
    shapes = [
        (d.batch, d.queries, d.width),
        (d.batch, d.keys, d.width),
        (d.batch, d.keys, d.values),
        (d.width,),
    ]
    scales = [1, 1, 1, 2 * d.width**-0.5]
    leaves = [
        (torch.randn(shape, device="cuda") * scale).to(d.dtype).requires_grad_()
        for shape, scale in zip(shapes, scales, strict=True)
    ]
    lengths = torch.randint(0, d.keys + 1, (d.batch, 1, 1), device="cuda")
    mask = {
        "none": None,
        "keys": torch.arange(d.keys, device="cuda") < lengths,
        "pairs": torch.rand(d.batch, d.queries, d.keys, device="cuda") < 0.5,
        "causal": torch.ones(d.queries, d.keys, dtype=torch.bool, device="cuda").tril(),
    }[d.mask]
    return leaves, mask


def poison():
    """Fill the memory that comes next from torch's store with NaN."""
    held = [torch.full((n,), float("nan"), device="cuda") for n in (10, 1000, 100_000, 3_000_000)]
    del held


def fused(q, k, v, w, mask):
    return pool(q, k, v, "additive", w, mask, backend="fused")


def reference(q, k, v, w, mask):
    """The equation, a row of the batch at a time: float64 pairs of the real sizes would not fit at once."""
    rows = []
    for b in range(q.shape[0]):
        kept = None if mask is None else mask if mask.dim() == 2 else mask[b : b + 1]
        scores = pair_score(q[b : b + 1], k[b : b + 1], "additive", w)
        rows.append(masked_softmax(scores, kept) @ v[b : b + 1])
    return torch.cat(rows)


def everything(run, leaves, mask, slopes):
    out = run(*leaves, mask)
    return [out.detach(), *torch.autograd.grad(out, leaves, slopes.to(out.dtype))]


def slopes_like(leaves):
    (batch, queries, _), values = leaves[0].shape, leaves[2].shape[2]
    return torch.randn(batch, queries, values, device="cuda").to(leaves[0].dtype)


def check(d: Draw):
    leaves, mask = make(d)
    slopes = slopes_like(leaves)
    wide = torch.float64 if d.batch * d.queries * d.keys * d.width < 2**27 else torch.float32
    poison()
    got = everything(fused, leaves, mask, slopes)
    want = everything(reference, [x.detach().to(wide).requires_grad_() for x in leaves], mask, slopes)
    for name, one, other in zip(("out", "q", "k", "v", "w"), got, want, strict=True):
        assert one.isfinite().all(), (d, name)
        error, norm = (one.to(wide) - other).norm().item(), other.norm().item()
        bound = TOLERANCE[d.dtype] * norm + 1e-5 * other.numel() ** 0.5
        assert error <= bound, (d, name, error, norm)


SIZES = [
    (1, 1, 1, 1),
    (3, 1, 100, 512),
    (2, 2, 65, 33),
    (5, 4, 64, 130),
    (2, 5, 63, 65),
    (3, 8, 7, 32),
    (2, 9, 1, 100),
    (2, 33, 129, 31),
    (1, 64, 64, 64),
    (7, 65, 100, 48),
    (2, 130, 257, 96),
]


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("mask", ["none", "keys", "pairs", "causal"])
def test_it_is_the_equation_at_awkward_sizes(dtype, mask):
    for size in SIZES:
        check(Draw(dtype, *size, mask))


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("mask", ["none", "keys"])
@pytest.mark.parametrize(
    "size", [(64, 64, 64, 512), (64, 256, 256, 512), (4, 1024, 1024, 256), (64, 1, 256, 512)]
)
def test_it_is_the_equation_at_real_sizes(dtype, mask, size):
    check(Draw(dtype, *size, mask, 64))


def test_it_is_the_equation_in_100_random_cases():
    chance = random.Random(3)
    for _ in range(100):
        check(
            Draw(
                chance.choice([*TOLERANCE]),
                chance.choice([1, 2, 3, 8, 17]),
                chance.choice([1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 64, 100, 200]),
                chance.choice([1, 2, 3, 7, 16, 31, 32, 33, 64, 100, 128, 129, 300]),
                chance.choice([1, 2, 8, 31, 32, 33, 64, 100, 200]),
                chance.choice(["none", "keys", "pairs", "causal"]),
            )
        )


def test_rows_without_keys_give_zeros_and_zero_gradients():
    leaves, _ = make(Draw(torch.bfloat16, 3, 20, 30, 40))
    mask = torch.ones(3, 1, 30, dtype=torch.bool, device="cuda")
    mask[1] = False
    out, dq, dk, dv, _ = everything(fused, leaves, mask, slopes_like(leaves))
    assert all((x[1] == 0).all() and x[0].any() for x in (out, dq, dk, dv))


def test_what_stands_at_masked_keys_does_not_matter():
    leaves, _ = make(Draw(torch.bfloat16, 2, 70, 300, 64))
    mask = (torch.arange(300, device="cuda") < 100).expand(2, 1, 300)
    want = fused(*leaves, mask)
    leaves[1].data[:, 100:] = float("nan")
    assert torch.equal(fused(*leaves, mask), want)


@pytest.mark.parametrize("queries", [1, 50])
def test_two_runs_give_the_same_bits(queries):
    leaves, mask = make(Draw(torch.bfloat16, 16, queries, 200, 256, "keys", 64))
    slopes = slopes_like(leaves)
    first, second = (everything(fused, leaves, mask, slopes) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize("queries", [1, 50])
def test_a_graph_of_it_can_be_replayed(queries):
    leaves, mask = make(Draw(torch.bfloat16, 16, queries, 100, 128, "keys", 64))
    slopes, stream = slopes_like(leaves), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        everything(fused, leaves, mask, slopes)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = everything(fused, leaves, mask, slopes)
    for _ in range(3):
        leaves[0].data.copy_(torch.randn_like(leaves[0]))
        graph.replay()
        want = everything(fused, leaves, mask, slopes)
        assert all(torch.equal(one, other) for one, other in zip(kept, want, strict=True))


@pytest.mark.parametrize("score", ["additive", "concat"])
@pytest.mark.parametrize("queries", [1, 40])
@pytest.mark.usefixtures("traceable")
def test_torch_compile_sees_through_it(score, queries):
    q, k, v = (torch.randn(8, n, 64, device="cuda").requires_grad_() for n in (queries, 50, 50))
    weights = [torch.randn(shape, device="cuda") * 0.1 for shape in ((64, 64), (64, 64), (64, 128))]
    w_q, w_k, w_qk = (x.requires_grad_() for x in weights)
    w = torch.randn(64, device="cuda").requires_grad_()
    p = ScoreParams(w_q, w_k, w) if score == "additive" else ScoreParams(w=w, w_qk=w_qk)
    lengths = torch.randint(1, 51, (8,), device="cuda")

    def run(q, k, v):
        return torch.tanh(ops.attend(q, k, v, score, p, lengths)).square().sum()

    inputs = [q, k, v, *(x for x in p if x is not None)]
    want = torch.autograd.grad(run(q, k, v), inputs)
    got = torch.autograd.grad(torch.compile(run, fullgraph=True)(q, k, v), inputs)
    for one, other in zip(got, want, strict=True):
        assert (one - other).norm() <= 1e-3 * other.norm()


def test_attend_is_its_reference():
    q, k, v = (torch.randn(8, n, 96, device="cuda", dtype=torch.bfloat16) for n in (40, 130, 130))
    weights = [torch.randn(shape, device="cuda") * 0.1 for shape in ((96, 96), (96, 96), (96,), (96, 192))]
    w_q, w_k, w, w_qk = (x.bfloat16() for x in weights)
    lengths = torch.randint(0, 131, (8,), device="cuda")
    for score, p in (("additive", ScoreParams(w_q, w_k, w)), ("concat", ScoreParams(w=w, w_qk=w_qk))):
        got = ops.attend(q, k, v, score, p, lengths, causal=True)
        wide = ScoreParams(*(None if x is None else x.double() for x in p))
        inputs = (x.double() for x in (q, k, v))
        want = ops.attend(*inputs, score, wide, lengths, causal=True, backend="reference")
        assert (got.double() - want).norm() <= 2e-2 * want.norm()


def test_autocast_is_followed():
    q, k, v = (torch.randn(4, n, 32, device="cuda").requires_grad_() for n in (10, 20, 20))
    w_q, w_k, w = (torch.randn(s, device="cuda").requires_grad_() for s in ((32, 32), (32, 32), (32,)))
    with torch.autocast("cuda", torch.bfloat16):
        out = ops.attend(q, k, v, "additive", ScoreParams(w_q, w_k, w))
    assert out.dtype == torch.bfloat16
    gradients = torch.autograd.grad(out.float().sum(), [q, k, v, w_q, w_k, w])
    assert all(x.dtype == torch.float32 and x.isfinite().all() for x in gradients)


def test_backward_needs_little_memory():
    """Nothing of queries x keys x width: that alone would be 1,024 MiB here, in each of several copies."""
    leaves, mask = make(Draw(torch.bfloat16, 16, 256, 256, 512))
    slopes = slopes_like(leaves)
    everything(fused, leaves, mask, slopes)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    everything(fused, leaves, mask, slopes)
    assert torch.cuda.max_memory_allocated() - before < 100 * 2**20


@pytest.mark.parametrize("score", ["identity", "dot", "scaled_dot", "bilinear", "gaussian"])
@pytest.mark.parametrize("way", ["plain", "lengths", "causal"])
def test_dots_need_no_matrix_of_queries_and_keys(score, way):
    """A matrix would be 2,048 MiB or more."""
    q, k, v = (torch.randn(64, 4096, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    lengths = torch.randint(1, 4097, (64,), device="cuda") if way == "lengths" else None
    ops.attend(q[:, :8], k[:, :8], v[:, :8], score)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    ops.attend(q, k, v, score, lengths=lengths, causal=way == "causal")
    assert torch.cuda.max_memory_allocated() - before < 700 * 2**20
