"""Cross-entropy in chunks against the equation: by torch in float64, and by Triton, interpreted on a CPU."""

import itertools
import weakref

import jaxtyping
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from weft import ops
from weft.ops.kernels import loss, loss_torch, loss_triton

TOLERANCE = {
    torch.float64: 1e-10,
    torch.float32: 2e-5,
    torch.float16: 2e-3,
    torch.bfloat16: 1.5e-2,
}  # of the norm
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def poison():
    """Let memory that nobody has written hold NaN."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture
def of_rows(monkeypatch):
    """Return a function that sets how many rows a chunk has, and what works on them."""

    def choose(rows, words, dtype, functions):
        padded = words + -words % functions.ALIGN
        monkeypatch.setitem(loss.CHUNK_BYTES, "cpu", rows * padded * max(4, dtype.itemsize))
        monkeypatch.setattr(loss, "row_functions", lambda hidden, dtype: functions)

    return choose


def draw(rows, width, words, dtype=torch.float64, bias=True):
    """Return hidden, weight, bias and targets, some ignored, with a slope for every row."""
    hidden, weight, b = (torch.randn(shape).to(dtype) for shape in ((rows, width), (words, width), (words,)))
    target = torch.randint(-1, words, (rows,))
    leaves = [x.requires_grad_() for x in ([hidden, weight, b] if bias else [hidden, weight])]
    return leaves, target, torch.randn(rows)


def everything(leaves, target, slopes, smoothing, backend):
    """Return the losses and the gradient of every leaf."""
    hidden, weight, *bias = leaves
    losses, _ = ops.cross_entropy(
        hidden, weight, bias[0] if bias else None, target, smoothing, per_token=True, backend=backend
    )
    return [losses.detach(), *torch.autograd.grad(losses, leaves, slopes.to(losses.dtype))]


def check(leaves, target, slopes, smoothing):
    got = everything(leaves, target, slopes, smoothing, "chunked")
    doubles = [x.detach().double().requires_grad_() for x in leaves]
    want = everything(doubles, target, slopes, smoothing, "reference")
    tolerance = TOLERANCE[leaves[0].dtype]
    for one, other in zip(got, want, strict=True):
        assert one.isfinite().all()
        assert (one.double() - other).norm() <= tolerance * (1 + other.norm())
    assert [x.dtype for x in got[1:]] == [x.dtype for x in leaves]


@pytest.mark.parametrize("rows", [1, 3, 4, 7, 100])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("bias", [True, False])
def test_by_torch_it_is_the_equation_in_any_chunks(rows, smoothing, bias, of_rows):
    of_rows(rows, 9, torch.float64, loss_torch)
    check(*draw(7, 5, 9, bias=bias), smoothing)


AWKWARD = [(1, 1, 2), (3, 2, 3), (31, 4, 8), (32, 3, 37), (33, 5, 1023), (65, 2, 1025), (5, 3, 4099)]


@pytest.mark.parametrize(("rows", "width", "words"), AWKWARD)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_by_triton_it_is_the_equation_at_awkward_sizes(rows, width, words, dtype, of_rows):
    for chunk, (smoothing, bias) in zip((rows, 3, 32), ((0.1, True), (0.0, True), (0.3, False)), strict=True):
        if rows // chunk > 3:
            continue  # the interpreter is slow
        of_rows(chunk, words, dtype, loss_triton)
        check(*draw(rows, width, words, dtype, bias), smoothing)


def test_words_behind_the_last_are_not_read_and_get_zero():
    logits = torch.randn(5, 16)
    logits[:, 13:] = float("nan")
    target, slopes, norms, losses = torch.randint(13, (5,)), torch.ones(5), torch.empty(5), torch.empty(5)
    loss_triton.write_losses(logits, 13, target, 0.1, losses, norms)
    assert torch.allclose(norms, logits[:, :13].logsumexp(1))
    sums = torch.zeros(16)
    d = loss_triton.take_gradients(logits, 13, target, slopes, norms, 0.1, sums)
    assert (d[:, 13:] == 0).all()
    assert (sums[13:] == 0).all()
    assert torch.allclose(d.sum(1), torch.zeros(5), atol=1e-6)  # the gradient of a row sums to 0


@pytest.mark.parametrize("functions", [loss_torch, loss_triton])
def test_large_logits_and_words_that_cannot_be(functions):
    logits = torch.randn(4, 16) + torch.tensor([[1e4], [-1e4], [300.0], [0.0]])
    logits[:, 3] = -float("inf")
    logits[0, 7] = 2e4
    target, losses, norms = torch.tensor([7, 5, 6, 2]), torch.empty(4), torch.empty(4)
    want = torch.nn.functional.cross_entropy(logits.double(), target, reduction="none")
    functions.write_losses(logits.clone(), 16, target, 0.0, losses, norms)
    assert losses[0] == 0
    assert torch.allclose(losses.double(), want, atol=2e-3)  # what is left of a float32 near 1e4
    d = functions.take_gradients(logits, 16, target, torch.ones(4), norms, 0.0, None)
    assert d.isfinite().all()


def test_a_loss_near_zero_keeps_its_digits():
    logits = torch.full((1, 8), -80.0)
    logits[0, 0], logits[0, 1] = 90.0, 78.0
    for functions in (loss_torch, loss_triton):
        losses, norms = torch.empty(1), torch.empty(1)
        functions.write_losses(logits.clone(), 8, torch.tensor([0]), 0.0, losses, norms)
        assert losses.item() == pytest.approx(6.1442e-06, rel=0.02)  # ln(1 + e^-12)


def test_a_target_that_is_no_word_spoils_its_loss():
    losses, norms = torch.empty(2), torch.empty(2)
    loss_triton.write_losses(torch.randn(2, 8), 8, torch.tensor([8, 7]), 0.1, losses, norms)
    assert losses.isnan().tolist() == [True, False]


@pytest.mark.parametrize("functions", [loss_torch, loss_triton])
@pytest.mark.parametrize("backend", ["reference", "plain", "chunked"])
def test_whatever_stands_in_an_ignored_row_does_not_matter(backend, functions, of_rows):
    of_rows(2, 9, torch.float32, functions)
    leaves, target, slopes = draw(6, 4, 9, torch.float32)
    target[:] = torch.tensor([3, -1, 0, -1, 8, -1])
    with torch.no_grad():
        leaves[0][1], leaves[0][3] = float("nan"), float("inf")
    slopes[1] = float("inf")
    losses, d_hidden, *rest = everything(leaves, target, slopes, 0.1, backend)
    ignored = target == -1
    assert (losses[ignored] == 0).all()
    assert (d_hidden[ignored] == 0).all()
    blank = [leaves[0].detach().masked_fill(ignored.unsqueeze(1), 7.0).requires_grad_(), *leaves[1:]]
    want = everything(blank, target, slopes.masked_fill(ignored, 0), 0.1, "reference")
    for one, other in zip((losses, d_hidden, *rest), want, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("functions", [loss_torch, loss_triton])
def test_autocast_is_followed_and_parameters_get_unrounded_gradients(functions, of_rows):
    of_rows(5, 33, torch.bfloat16, functions)
    leaves, target, slopes = draw(16, 8, 33, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        losses, _ = ops.cross_entropy(*leaves, target, 0.1, per_token=True, backend="chunked")
    assert losses.dtype == torch.float32
    grads = torch.autograd.grad(losses, leaves, slopes)
    doubles = [x.detach().bfloat16().double().requires_grad_() for x in leaves]
    want = everything(doubles, target, slopes, 0.1, "reference")[1:]
    for one, other in zip(grads, want, strict=True):
        assert one.dtype == torch.float32
        assert (one - other).norm() <= 1e-2 * other.norm()
    assert not torch.equal(grads[1], grads[1].bfloat16().float())


def test_a_table_that_is_shared_gets_both_gradients(of_rows):
    of_rows(2, 7, torch.float64, loss_torch)
    table = torch.randn(7, 4).double().requires_grad_()
    words, target = torch.tensor([1, 6, 6, 0, 2]), torch.tensor([6, 2, -1, 0, 1])
    grads = [
        torch.autograd.grad(
            ops.cross_entropy(table[words], table, None, target, 0.1, False, backend)[0], table
        )[0]
        for backend in ("chunked", "reference")
    ]
    assert torch.allclose(*grads, atol=1e-12)


@pytest.mark.parametrize("functions", [loss_torch, loss_triton])
def test_rows_by_any_strides_and_none_at_all(functions, of_rows):
    of_rows(2, 9, torch.float32, functions)
    leaves, target, slopes = draw(5, 4, 9, torch.float32)
    turned = leaves[0].detach().t().contiguous().t().requires_grad_()
    assert not turned.is_contiguous()
    check([turned, *leaves[1:]], target.repeat_interleave(2)[::2], slopes, 0.1)
    check([torch.zeros(0, 4, requires_grad=True), *leaves[1:]], target[:0], slopes[:0], 0.1)


def test_only_gradients_somebody_wants_are_made(of_rows):
    of_rows(2, 9, torch.float64, loss_torch)
    leaves, target, slopes = draw(5, 4, 9)
    want = everything(leaves, target, slopes, 0.1, "reference")[1:]
    for needs in itertools.product((True, False), repeat=3):
        inputs = [x.detach().requires_grad_(need) for x, need in zip(leaves, needs, strict=True)]
        losses, _ = ops.cross_entropy(*inputs, target, 0.1, per_token=True, backend="chunked")
        if any(needs):
            losses.backward(slopes.double())
        for x, need, other in zip(inputs, needs, want, strict=True):
            assert x.grad is None if not need else torch.allclose(x.grad, other, atol=1e-12)


@pytest.mark.parametrize("rows", [0, 1, 127, 128, 129, 1000, 25_600])
@pytest.mark.parametrize("words", [2, 37_000, 40_000_000])
@pytest.mark.parametrize("device", [CPU, torch.device("cuda")])
def test_chunks_are_all_rows_once_and_keep_to_their_size(rows, words, device):
    parts = list(loss.chunks(rows, words, device, torch.bfloat16))
    sizes = [part.stop - part.start for part in parts]
    assert [i for part in parts for i in range(rows)[part]] == list(range(rows))
    assert all(size > 0 for size in sizes)
    itemsize = 2 if device.type == "cuda" else 4
    assert all(size == 1 or size * words * itemsize <= loss.CHUNK_BYTES[device.type] for size in sizes)


class Peak(TorchDispatchMode):
    """Follow how many bytes live at once, and how many the largest storage has."""

    def __init__(self):
        super().__init__()
        self.living, self.peak, self.largest, self.known = 0, 0, 0, set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for x in tree_leaves(out):
            if isinstance(x, torch.Tensor):
                self.note(x.untyped_storage())
        return out

    def note(self, storage):
        place, size = storage.data_ptr(), storage.nbytes()
        if place and place not in self.known:
            self.known.add(place)
            self.living += size
            self.peak, self.largest = max(self.peak, self.living), max(self.largest, size)
            weakref.finalize(storage, self.forget, place, size)

    def forget(self, place, size):
        self.known.discard(place)
        self.living -= size


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_memory_does_not_grow_with_the_logits(dtype, of_rows):
    rows, width, words = 1024, 8, 2000
    of_rows(128, words, dtype, loss_torch)
    chunk, whole = loss.CHUNK_BYTES["cpu"], rows * words * 4
    leaves, target, slopes = draw(rows, width, words, dtype)
    hidden, weight, bias = (x.detach() for x in leaves)
    rest = 4 * 4 * words * (width + 1) + 4 * 4 * rows * (width + 4)
    for smoothing in (0.0, 0.1):
        with Peak() as forward:
            _, norms = loss.run_forward(hidden, weight, bias, target, smoothing, dtype)
        with Peak() as backward:
            loss.run_backward(slopes, hidden, weight, bias, target, norms, smoothing, dtype, [True] * 3)
        for seen in (forward, backward):
            assert chunk / 2 <= seen.largest <= chunk  # the measure sees logits, and they are a chunk
            assert seen.peak <= 3 * chunk + rest < whole


def test_plain_holds_what_chunks_do_not():
    leaves, target, _ = draw(1024, 8, 2000, torch.float32)
    with Peak() as seen:
        ops.cross_entropy(*leaves, target, 0.1, backend="plain")[0].backward()
    assert seen.largest >= 1024 * 2000 * 4


def test_auto_makes_chunks_of_large_logits(monkeypatch):
    from weft.ops import loss as public

    leaves, target, _ = draw(8, 3, 4, torch.float32)
    made = []
    monkeypatch.setattr(loss, "chunked_losses", lambda *a: made.append(a) or torch.zeros(8))
    for large, chunked in ((8 * 4 * 4, 0), (8 * 4 * 4 - 1, 1)):
        monkeypatch.setattr(public, "LARGE", large)
        ops.cross_entropy(*leaves, target)
        assert len(made) == chunked


def test_torch_accepts_the_operations():
    leaves, target, slopes = draw(5, 4, 9, torch.float32)
    inputs = [x.detach() for x in leaves]
    torch.library.opcheck(loss._forward, (*inputs, target, 0.1, torch.float32))
    _, norms = loss._forward(*inputs, target, 0.1, torch.float32)
    for needs in ([True, True, True], [True, False, False]):
        arguments = (slopes, *inputs, target, norms, 0.1, torch.float32, needs)
        torch.library.opcheck(loss._backward, arguments)
    without = (slopes, *inputs[:2], None, target, norms, 0.1, torch.float32, [False, True, False])
    torch.library.opcheck(loss._backward, without)


def test_it_is_traced_whole_by_torch_compile(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # torch cannot trace the checks
    leaves, target, slopes = draw(5, 4, 9, torch.float32)

    def run(*leaves):
        with torch.autocast("cpu", torch.bfloat16, enabled=False):
            return ops.cross_entropy(*leaves, target, 0.1, per_token=True, backend="chunked")[0]

    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    want = torch.autograd.grad(run(*leaves), leaves, slopes)
    got = torch.autograd.grad(compiled(*leaves), leaves, slopes)
    assert all(torch.equal(one, other) for one, other in zip(got, want, strict=True))


def test_a_total_takes_products_unrounded():
    left, right = torch.randn(6, 300).bfloat16(), torch.randn(300, 5).bfloat16()
    total = torch.ones(6, 5)
    loss.add_product(total, left, right)
    assert torch.allclose(total, 1 + left.float() @ right.float(), atol=1e-4)
