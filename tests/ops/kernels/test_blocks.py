"""The kernels of residual blocks against the equation in float64: interpreted where there is no GPU."""

import subprocess
import sys
from typing import NamedTuple

import pytest
import torch

from weft.core.sequences import Sequences
from weft.nn.families import families
from weft.ops import NormedKernel, residual_blocks_reference
from weft.ops.blocks import state_rows
from weft.ops.kernels import blocks, blocks_autograd


class Draw(NamedTuple):
    """The sizes of one stack, and what it is given besides x."""

    batch: int
    steps: int
    width: int
    levels: int
    taps: int
    ragged: bool = False
    past: bool = False
    dtype: torch.dtype = torch.float32


DRAWS = [
    Draw(2, 5, 3, 2, 3, ragged=True, past=True),
    Draw(1, 1, 1, 1, 2, past=True),
    Draw(3, 65, 25, 1, 7, ragged=True),
    Draw(2, 9, 33, 2, 2, past=True),
    Draw(2, 40, 70, 1, 3, ragged=True, past=True),
    Draw(2, 7, 32, 3, 5),
    Draw(2, 21, 12, 2, 3, ragged=True, past=True, dtype=torch.float16),
]
USES = [(draw, "both") for draw in DRAWS] + [(DRAWS[0], "outputs"), (DRAWS[0], "state")]
TOLERANCE = {torch.float32: 1e-5, torch.float16: 1e-2}  # the interpreter multiplies no bf16


@pytest.fixture(autouse=True)
def surroundings(monkeypatch):
    """Fill new memory with NaN, so that whatever nobody writes is seen; work on a GPU if there is one."""
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")
    yield
    torch.set_default_device(None)
    torch.use_deterministic_algorithms(False)


def make(d: Draw):
    """Return x, the weights, the past, the lengths; NaN stands in the padding."""

    def leaf(*shape):
        return torch.randn(shape).to(d.dtype).requires_grad_()

    x = leaf(d.batch, d.steps, d.width)
    shapes = (d.width, d.width, d.taps), (d.width, 1, 1), (d.width,)
    weights = [NormedKernel(*(leaf(*shape) for shape in shapes)) for _ in range(2 * d.levels)]
    past = leaf(d.batch, state_rows(2 * d.levels, d.taps), d.width) if d.past else None
    lengths = torch.randint(0, d.steps + 1, (d.batch,)) if d.ragged else None
    if lengths is not None:
        lengths[0] = d.steps
        x.data[torch.arange(d.steps) >= lengths.unsqueeze(1)] = float("nan")
    return x, weights, past, lengths


def leaves(x, weights, past):
    return [x, *(leaf for w in weights for leaf in w), *([] if past is None else [past])]


def fused(x, weights, past, lengths, dropout=0.0, seed=None):
    return blocks_autograd.residual_stack(x, past, lengths, seed, dropout, weights)


def reference(x, weights, past, lengths):
    """Call the equation with zeros in the padding: 0 * NaN is no gradient."""
    x = x if lengths is None else Sequences(x, lengths).fill(0).data
    return residual_blocks_reference(x, weights, 0.0, past, lengths)


def widen(x, weights, past):
    def wide(t):
        return t.detach().double().requires_grad_()

    weights = [NormedKernel(*map(wide, w)) for w in weights]
    return wide(x), weights, None if past is None else wide(past)


def compare(got, want, tolerance):
    for name, one, other in zip(range(len(got)), got, want, strict=True):
        assert one.shape == other.shape
        assert one.isfinite().all(), name
        error = (one.double() - other).norm().item()
        assert error <= tolerance * (other.norm().item() + 1e-2 * other.numel() ** 0.5), (name, error)


@pytest.mark.parametrize(("draw", "use"), USES, ids=str)
def test_outputs_state_and_every_gradient(draw, use):
    x, weights, past, lengths = make(draw)
    got = fused(x, weights, past, lengths)
    wide = widen(x, weights, past)
    want = reference(*wide, lengths)
    compare(got, want, TOLERANCE[draw.dtype])
    picked = {"outputs": [0], "state": [1], "both": [0, 1]}[use]
    slopes = [torch.randn_like(got[i]) for i in picked]
    one = torch.autograd.grad([got[i] for i in picked], leaves(x, weights, past), slopes, allow_unused=True)
    outputs = [want[i] for i in picked]
    other = torch.autograd.grad(
        outputs, leaves(*wide), [s.double() for s in slopes], allow_unused=True, materialize_grads=True
    )
    compare(one, other, TOLERANCE[draw.dtype])


def test_gradients_of_weights_are_those_of_weights_asked_alone():
    x, weights, _, _ = make(Draw(2, 9, 5, 1, 3))
    y, _ = fused(x.detach(), weights, None, None)
    want, _ = fused(x, weights, None, None)
    slope = torch.randn_like(y)
    for one, other in zip(
        torch.autograd.grad(y, leaves(x, weights, None)[1:], slope),
        torch.autograd.grad(want, leaves(x, weights, None)[1:], slope),
        strict=True,
    ):
        assert torch.equal(one, other)


def test_strided_inputs(monkeypatch):
    monkeypatch.setattr(blocks, "_PROGRAMS", 1)  # many rows a program
    x, weights, past, _ = make(Draw(2, 40, 6, 2, 3, past=True))
    got = fused(x.mT.contiguous().mT, weights, past.mT.contiguous().mT, None)
    want = fused(x, weights, past, None)
    slope = torch.randn(40, 6).expand(2, 40, 6)
    assert torch.equal(got[0], want[0])
    assert torch.equal(got[1], want[1])
    wide = widen(x, weights, past)
    one = torch.autograd.grad(got[0], leaves(x, weights, past), slope)
    other = torch.autograd.grad(reference(*wide, None)[0], leaves(*wide), slope.double())
    compare(one, other, 1e-5)


def test_without_gradients_it_gives_the_same():
    x, weights, past, lengths = make(DRAWS[0])
    want = fused(x, weights, past, lengths)
    with torch.no_grad():
        got = fused(x, weights, past, lengths)
    assert torch.equal(got[0], want[0])
    assert torch.equal(got[1], want[1])


def stack(weights):
    return blocks_autograd._stacked(tuple(leaf.detach() for w in weights for leaf in w))


def test_dropout_keeps_its_share_and_scales_the_rest():
    x, weights, _, _ = make(Draw(4, 90, 20, 1, 2))
    x, stacked, seed = x.detach(), stack(weights), torch.tensor([7])
    plain = blocks.run_forward(x, *stacked, None, None, None, 0.0, True)
    made = blocks.run_forward(x, *stacked, None, None, seed, 0.3, True)
    alive = plain.between[0] > 0
    kept = made.between[0] > 0
    count = int(alive.sum())
    share = (kept & alive).sum().item() / count
    assert abs(share - 0.7) < 4 * (0.3 * 0.7 / count) ** 0.5
    assert not (kept & ~alive).any()
    assert torch.allclose(made.between[0][kept], plain.between[0][kept] / 0.7)
    for axis in (0, 1, 2):  # no stripes: every row, step and channel keeps about its share
        others = [i for i in range(3) if i != axis]
        alive_here, kept_here = alive.sum(others).double(), kept.sum(others).double()
        bound = 6 * (0.3 * 0.7 * alive_here).sqrt() + 1
        assert ((kept_here - 0.7 * alive_here).abs() <= bound).all()


def masked_reference(x, weights, made, dropout):
    """Call the equation with the masks that a run left behind."""
    for level in range(len(weights) // 2):
        first, second = weights[2 * level], weights[2 * level + 1]
        masks = (made.between[2 * level] > 0), made.kept[level] != 0
        y = x
        for w, mask in zip((first, second), masks, strict=True):
            reach = (w.v.shape[2] - 1) * 2**level
            front = torch.nn.functional.pad(y.mT, (reach, 0))
            y = torch.nn.functional.conv1d(front, w.kernel(), w.bias, dilation=2**level).mT
            y = torch.relu(y) * mask / (1 - dropout)
        x = torch.relu(x + y)
    return x


def test_gradients_with_dropout_are_those_of_its_masks():
    draw = Draw(2, 33, 9, 2, 3)
    x, weights, _, _ = make(draw)
    seed = torch.tensor([2**61 + 11])
    made = blocks.run_forward(x.detach(), *stack(weights), None, None, seed, 0.4, True)
    y, _ = fused(x, weights, None, None, 0.4, seed)
    assert torch.equal(y, made.y)
    wide = widen(x, weights, None)
    want = masked_reference(wide[0], wide[1], made, 0.4)
    compare([y], [want], 1e-5)
    slope = torch.randn_like(y)
    got = torch.autograd.grad(y, leaves(x, weights, None), slope)
    compare(got, torch.autograd.grad(want, leaves(*wide), slope.double()), 1e-5)


def test_one_seed_is_one_draw():
    x, weights, _, _ = make(Draw(2, 33, 9, 2, 3))
    runs = [fused(x, weights, None, None, 0.2, torch.tensor([seed])) for seed in (3, 3, 4)]
    assert torch.equal(runs[0][0], runs[1][0])
    assert not torch.equal(runs[0][0], runs[2][0])
    grads = [torch.autograd.grad(y.square().sum(), leaves(x, weights, None)) for y, _ in runs[:2]]
    assert all(torch.equal(one, other) for one, other in zip(*grads, strict=True))


def test_each_convolution_draws_for_itself():
    x, weights, _, _ = make(Draw(2, 33, 25, 2, 2))
    small, high = torch.full((25, 1, 1), 1e-3), torch.full((25,), 9.0)
    weights = [w._replace(g=small, bias=high) for w in weights]  # every relu is open
    made = blocks.run_forward(x.detach().abs(), *stack(weights), None, None, torch.tensor([5]), 0.5, True)
    masks = [made.between[0] > 0, made.kept[0] != 0, made.between[2] > 0, made.kept[1] != 0]
    for i, one in enumerate(masks):
        assert abs(one.double().mean() - 0.5) < 0.06
        for other in masks[:i]:
            assert abs((one == other).double().mean() - 0.5) < 0.06


@pytest.mark.parametrize("draw", [DRAWS[0], Draw(2, 3, 2, 1, 2)], ids=str)
def test_the_operations_say_what_they_return(draw):
    x, weights, past, lengths = make(draw)
    x, past, stacked = x.detach(), None if past is None else past.detach(), stack(weights)
    told = (x, *stacked, past, lengths, torch.tensor([3]), 0.1, True)
    checks = ("test_schema", "test_faketensor")
    torch.library.opcheck(blocks_autograd._forward, told, test_utils=checks)
    y, state, *saved = blocks_autograd._forward(*told)
    given = (x, *stacked, past, lengths, y, *saved, torch.randn_like(y), torch.randn_like(state), 1.1)
    torch.library.opcheck(blocks_autograd._backward, (*given, past is not None), test_utils=checks)


COMPILED = """
import torch
from weft.ops import NormedKernel
from weft.ops.kernels.blocks_autograd import residual_stack

torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")

def leaf(*shape):
    return torch.randn(shape, requires_grad=True)

x, past, lengths = leaf(2, 5, 3), leaf(2, 4, 3), torch.tensor([5, 2])
weights = [NormedKernel(leaf(3, 3, 3), leaf(3, 1, 1), leaf(3)) for _ in range(2)]
leaves = [x, past, *weights[0], *weights[1]]

def run(x):
    seed = torch.ones(1, dtype=torch.int64)
    y, state = residual_stack(x, past, lengths, seed, 0.1, weights)
    return torch.relu(y).sum() + state.sin().sum()

want = torch.autograd.grad(run(x), leaves)
got = torch.autograd.grad(torch.compile(run, fullgraph=True, backend="aot_eager")(x), leaves)
assert all(torch.allclose(one, other, atol=1e-6) for one, other in zip(got, want, strict=True))
"""


def test_torch_compile_sees_through_it():
    """In a process of its own: the checks that tests hang on every function stop torch.compile."""
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_family_runs_on_it(monkeypatch):
    """A tcn forced onto the kernels: whole, cut, step by step, and its weights' gradients."""
    tcn = families["tcn"]
    network = tcn.backbone(6, tcn.Config(layers=2, kernel=2, dropout=0.3), None).eval()
    x = Sequences(torch.randn(3, 5, 6), torch.tensor([5, 0, 3]))
    slope = torch.randn(3, 5, 6)
    want, want_state = network(x)
    want_grads = torch.autograd.grad(want.data, list(network.parameters()), slope)
    calls = []
    run = blocks_autograd.residual_stack
    monkeypatch.setattr("weft.ops.blocks._refusal", lambda x, weights: None)
    monkeypatch.setattr("weft.ops.trust.TRUSTED", frozenset({"blocks"}))
    monkeypatch.setattr(blocks_autograd, "residual_stack", lambda *a: calls.append(a) or run(*a))
    got, state = network(x)
    compare([got.data, state.past], [want.data, want_state.past], 1e-5)
    compare(torch.autograd.grad(got.data, list(network.parameters()), slope), want_grads, 1e-5)
    head, tail = x.split(2)
    first, middle = network(head)
    second, end = network(tail, middle)
    compare([torch.cat([first.data, second.data], 1), end.past], [want.data, want_state.past], 1e-5)
    y, _ = network.step(x.data[:, 0], network.init_state(3))
    compare([y], [network(Sequences.full(x.data))[0].data[:, 0]], 1e-5)
    assert len(calls) == 5
    torch.manual_seed(1)
    one = network.train()(x)[0].data
    torch.manual_seed(1)
    assert torch.equal(network(x)[0].data, one)
    assert not torch.equal(network(x)[0].data, one)
