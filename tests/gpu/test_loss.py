"""The chunked cross-entropy against the equation, its memory and its replays, on a GPU."""

import random

import pytest
import torch

from weft import ops
from weft.ops.kernels import loss

pytestmark = pytest.mark.gpu

TOLERANCE = {
    torch.bfloat16: 2e-2,
    torch.float16: 4e-3,
    torch.float32: 1e-4,
    torch.float64: 1e-10,
}  # of the norm


def poison():
    """Fill the memory that comes next from torch's store with NaN."""
    held = [torch.full((n,), float("nan"), device="cuda") for n in (10, 1000, 100_000, 30_000_000)]
    del held


def draw(rows, width, words, dtype, bias=True):
    """Return leaves, targets of which some are ignored, and slopes, on the GPU."""
    shapes = [(rows, width), (words, width), *[(words,)] * bias]
    scales = (1.0, 2 * width**-0.5, 0.5)
    leaves = [
        (torch.randn(shape, device="cuda") * scale).to(dtype).requires_grad_()
        for shape, scale in zip(shapes, scales, strict=False)
    ]
    target = torch.randint(-1, words, (rows,), device="cuda")
    target[9::10] = -1
    return leaves, target, torch.randn(rows, device="cuda")


def everything(leaves, target, slopes, smoothing=0.1, backend="chunked"):
    """Return the losses and the gradient of every leaf."""
    hidden, weight, *bias = leaves
    losses, _ = ops.cross_entropy(
        hidden, weight, bias[0] if bias else None, target, smoothing, per_token=True, backend=backend
    )
    return [losses.detach(), *torch.autograd.grad(losses, leaves, slopes.to(losses.dtype))]


def check(rows, width, words, dtype, smoothing=0.1, bias=True):
    leaves, target, slopes = draw(rows, width, words, dtype, bias)
    poison()
    got = everything(leaves, target, slopes, smoothing)
    doubles = [x.detach().double().requires_grad_() for x in leaves]
    want = everything(doubles, target, slopes, smoothing, "reference")
    for name, one, other in zip(("losses", "hidden", "weight", "bias"), got, want, strict=False):
        assert one.isfinite().all(), name
        error = (one.double() - other).norm().item()
        bound = TOLERANCE[dtype] * other.norm().item() + 1e-6 * other.numel() ** 0.5
        assert error <= bound, (name, error, bound)
    assert [x.dtype for x in got[1:]] == [x.dtype for x in leaves]


AWKWARD = [
    (1, 1, 2),
    (2, 3, 3),
    (31, 8, 8),
    (33, 16, 1023),
    (63, 64, 1025),
    (65, 7, 4097),
    (100, 512, 8191),
    (129, 250, 37_001),
]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("rows", "width", "words"), AWKWARD)
def test_it_is_the_equation_at_awkward_sizes(rows, width, words, dtype):
    check(rows, width, words, dtype)
    check(rows, width, words, dtype, 0.0, bias=False)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_it_is_the_equation_in_many_chunks(dtype, monkeypatch):
    for chunk in (1, 5, 64, 128, 300):
        monkeypatch.setitem(loss.CHUNK_BYTES, "cuda", chunk * 3000 * dtype.itemsize)
        check(17 if chunk < 64 else 641, 96, 2999, dtype)


def test_it_is_the_equation_in_60_random_cases(monkeypatch):
    chance = random.Random(4)
    for _ in range(60):
        words = chance.choice([2, 5, 8, 100, 1000, 1024, 4096, 10_001, 32_000])
        dtype = chance.choice([torch.bfloat16, torch.float16, torch.float32])
        monkeypatch.setitem(loss.CHUNK_BYTES, "cuda", chance.choice([2**20, 2**24, 2**29]))
        rows, width = chance.choice([1, 2, 17, 128, 200, 1111]), chance.choice([1, 5, 8, 64, 200, 512])
        check(rows, width, words, dtype, chance.choice([0.0, 0.1]), chance.random() < 0.7)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_it_is_the_equation_at_a_real_size(dtype):
    check(9000, 512, 37_000, dtype)


def test_auto_on_a_gpu_is_the_equation_from_small_to_large():
    for rows in (100, 1000):  # 7 MB and 74 MB of logits
        leaves, target, slopes = draw(rows, 64, 37_000, torch.bfloat16)
        got = everything(leaves, target, slopes, backend="auto")
        want = everything(
            [x.detach().float().requires_grad_() for x in leaves], target, slopes, 0.1, "reference"
        )
        for one, other in zip(got, want, strict=True):
            assert (one - other).norm() <= 2e-2 * other.norm()


def plain(leaves, target):
    """Return the sum of losses as torch has it, logits whole."""
    logits = torch.nn.functional.linear(*leaves).float()
    return torch.nn.functional.cross_entropy(
        logits, target, ignore_index=-1, reduction="sum", label_smoothing=0.1
    )


def peak(call):
    """Return the bytes a call needs beyond what is there."""
    call()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    kept = call()
    torch.cuda.synchronize()
    assert kept is not None
    return torch.cuda.max_memory_allocated() - before


def test_it_needs_a_quarter_of_the_memory_of_logits_held_whole():
    leaves, target, _ = draw(25_600, 512, 37_000, torch.bfloat16)
    whole = peak(lambda: torch.autograd.grad(plain(leaves, target), leaves))
    ours = peak(lambda: torch.autograd.grad(ops.cross_entropy(*leaves, target, 0.1)[0], leaves))
    assert ours <= 0.25 * whole, (ours, whole)


def test_whatever_stands_in_an_ignored_row_does_not_matter():
    leaves, target, slopes = draw(300, 64, 4001, torch.bfloat16)
    want = everything(leaves, target, slopes)
    ignored = target == -1
    with torch.no_grad():
        leaves[0][ignored] = float("nan")
    slopes[ignored] = float("inf")
    got = everything(leaves, target, slopes)
    assert (got[0][ignored] == 0).all()
    assert (got[1][ignored] == 0).all()
    assert all(torch.equal(one, other) for one, other in zip(got, want, strict=True))


def test_a_target_that_is_no_word_spoils_its_loss():
    leaves, target, _ = draw(4, 8, 9, torch.bfloat16)
    target[:] = torch.tensor([3, 9, -1, 8])
    losses, _ = ops.cross_entropy(*leaves, target, per_token=True, backend="chunked")
    assert losses.isnan().tolist() == [False, True, False, False]


def test_two_runs_are_equal():
    leaves, target, slopes = draw(5000, 256, 10_001, torch.bfloat16)
    first, second = (everything(leaves, target, slopes) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize("wide", [True, False])
def test_totals_take_products_unrounded_with_and_without_the_one_call(wide, monkeypatch):
    if not wide:
        monkeypatch.setattr(loss, "_adds_wide", lambda: False)
    left, right = (torch.randn(shape, device="cuda").bfloat16() for shape in ((5000, 40), (5000, 24)))
    total = torch.ones(40, 24, device="cuda")
    loss.add_product(total, left.mT, right)
    assert torch.allclose(total.double(), 1 + left.double().mT @ right.double(), atol=2e-3)


def test_autocast_is_followed_and_parameters_get_gradients_of_their_type():
    leaves, target, slopes = draw(600, 128, 33_333, torch.float32)
    with torch.autocast("cuda", torch.bfloat16):
        losses, _ = ops.cross_entropy(*leaves, target, 0.1, per_token=True)
    assert losses.dtype == torch.float32
    grads = torch.autograd.grad(losses, leaves, slopes)
    rounded = [x.detach().bfloat16().double().requires_grad_() for x in leaves]
    for one, other in zip(grads, everything(rounded, target, slopes, 0.1, "reference")[1:], strict=True):
        assert one.dtype == torch.float32
        assert (one - other).norm() <= 2e-2 * other.norm()


def test_a_graph_of_it_can_be_replayed():
    leaves, target, slopes = draw(2000, 128, 20_001, torch.bfloat16)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        everything(leaves, target, slopes)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = everything(leaves, target, slopes)
    for _ in range(3):
        leaves[0].data.copy_(torch.randn_like(leaves[0]))
        target.copy_(torch.randint(-1, 20_001, target.shape, device="cuda"))
        graph.replay()
        want = everything(leaves, target, slopes)
        for one, other in zip(kept, want, strict=True):
            assert (one - other).norm() <= 1e-2 * other.norm()


@pytest.mark.usefixtures("traceable")
def test_torch_compile_sees_through_it():
    leaves, target, _ = draw(1000, 128, 20_001, torch.bfloat16)

    def run(hidden, weight, bias):
        return ops.cross_entropy(torch.relu(hidden), weight, bias, target, 0.1)[0]

    want = torch.autograd.grad(run(*leaves), leaves)
    got = torch.autograd.grad(torch.compile(run, fullgraph=True)(*leaves), leaves)
    for one, other in zip(got, want, strict=True):
        assert (one - other).norm() <= 1e-2 * other.norm()
