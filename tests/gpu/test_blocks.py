"""The fused residual blocks against the equation: outputs, new past and every gradient, on a GPU."""

import random
import subprocess
import sys
from typing import NamedTuple

import pytest
import torch

from weft.core.errors import ConfigError
from weft.core.sequences import Sequences
from weft.nn.families import families
from weft.ops import NormedKernel, residual_blocks, residual_blocks_reference
from weft.ops.blocks import state_rows

pytestmark = pytest.mark.gpu

TOLERANCE = {torch.bfloat16: 3e-2, torch.float16: 4e-3, torch.float32: 4e-3}  # of the norm; fp32 as tf32


class Draw(NamedTuple):
    """The sizes of one stack, and what it is given besides x."""

    dtype: torch.dtype
    batch: int
    steps: int
    width: int
    levels: int
    taps: int
    ragged: bool = False
    past: bool = False


def make(d: Draw, held: bool = False):
    """Return x, weights, past and lengths on the GPU in the draw's type; NaN stands in the padding.

    held: every sum is far from zero, above it or below, and x is above zero. A relu's slope jumps: where
    rounding puts a sum on the other side of zero, gradients differ by more than rounding.
    """

    def leaf(*shape, scale=1.0, shift=0.0, random=torch.randn):
        return (random(shape, device="cuda") * scale + shift).to(d.dtype).requires_grad_()

    def bias():
        return (leaf(d.width).sign() * 2 if held else leaf(d.width, scale=0.1)).detach().requires_grad_()

    def inputs(*shape):
        return leaf(*shape, random=torch.rand if held else torch.randn)

    x = inputs(d.batch, d.steps, d.width)
    v, g = (d.width, d.width, d.taps), (d.width, 1, 1)
    gain = 0.1 if held else 1.0
    weights = [
        NormedKernel(leaf(*v), leaf(*g, scale=0.1 * gain, shift=gain), bias()) for _ in range(2 * d.levels)
    ]
    past = inputs(d.batch, state_rows(2 * d.levels, d.taps), d.width) if d.past else None
    lengths = torch.randint(0, d.steps + 1, (d.batch,), device="cuda") if d.ragged else None
    if lengths is not None:
        x.data[torch.arange(d.steps, device="cuda") >= lengths.unsqueeze(1)] = float("nan")
    return x, weights, past, lengths


def poison():
    """Fill the memory that comes next from torch's store with NaN."""
    held = [torch.full((n,), float("nan"), device="cuda") for n in (10, 1000, 100_000, 3_000_000, 30_000_000)]
    del held


def leaves(x, weights, past):
    return [x, *(leaf for w in weights for leaf in w), *([] if past is None else [past])]


def widen(x, weights, past):
    def wide(t):
        return t.detach().double().requires_grad_()

    return wide(x), [NormedKernel(*map(wide, w)) for w in weights], None if past is None else wide(past)


def reference(x, weights, past, lengths):
    """Call the equation with zeros in the padding: 0 * NaN is no gradient."""
    x = x if lengths is None else Sequences(x, lengths).fill(0).data
    return residual_blocks_reference(x, weights, 0.0, past, lengths)


def close(got, want, tolerance, what):
    for name, one, other in zip(range(len(got)), got, want, strict=True):
        assert one.isfinite().all(), (what, name)
        error, norm = (one.double() - other).norm().item(), other.norm().item()
        assert error <= tolerance * norm + 1e-6 * other.numel() ** 0.5, (what, name, error, norm)


def check(d: Draw, tolerance: float | None = None):
    """Hold the kernels against the equation."""
    x, weights, past, lengths = make(d, held=True)
    tolerance = TOLERANCE[d.dtype] if tolerance is None else tolerance
    poison()
    got = residual_blocks(x, weights, 0.0, past, lengths, backend="fused")
    wide = widen(x, weights, past)
    want = reference(*wide, lengths)
    close(got, want, tolerance, d)
    slopes = [torch.randn_like(out) for out in got]
    ours = torch.autograd.grad(got, leaves(x, weights, past), slopes)
    theirs = torch.autograd.grad(want, leaves(*wide), [s.double() for s in slopes])
    close(ours, theirs, 2 * tolerance, (d, "gradients"))


BF16, FP16, FP32 = TOLERANCE
AWKWARD = [  # every width is compiled anew: few of them
    Draw(FP32, 1, 1, 1, 1, 2, False, True),
    Draw(BF16, 3, 65, 25, 2, 7, True, False),
    Draw(FP32, 3, 65, 25, 2, 7, True, True),
    Draw(FP16, 2, 9, 33, 3, 3, True, True),
    Draw(FP32, 5, 64, 32, 1, 4, False, True),
    Draw(BF16, 2, 100, 70, 2, 3, True, True),
    Draw(FP32, 2, 100, 70, 2, 3, False, False),
    Draw(FP16, 4, 63, 128, 3, 5, False, False),
]
BENCH = [(64, 784, 25, 8, 7), (16, 80, 600, 4, 3)]
REAL = [Draw(dtype, *sizes) for dtype in (BF16, FP32) for sizes in BENCH]
REAL += [Draw(FP16, 32, 400, 150, 4, 5, True, True)]


@pytest.mark.parametrize("draw", AWKWARD + REAL, ids=str)
def test_outputs_state_and_every_gradient(draw):
    check(draw)


@pytest.mark.parametrize("seed", range(6))
def test_random_sizes(seed):
    chance = random.Random(seed)
    dtype = chance.choice(list(TOLERANCE))
    sizes = (chance.randint(1, 9), chance.randint(1, 130), chance.randint(1, 200))
    check(Draw(dtype, *sizes, chance.randint(1, 4), chance.randint(2, 8), seed % 2 == 0, seed % 3 == 0))


def test_without_tf32_products_are_exact():
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        check(Draw(torch.float32, 3, 65, 25, 2, 7, True, True), 2e-5)
        check(Draw(torch.float32, 2, 70, 130, 1, 3), 2e-5)
    finally:
        torch.backends.cudnn.allow_tf32 = before


def run_seeded(made, dropout=0.3):
    x, weights, past, lengths = made
    torch.manual_seed(3)
    y, state = residual_blocks(x, weights, dropout, past, lengths, backend="fused")
    return [y, state, *torch.autograd.grad(y.square().sum(), leaves(x, weights, None))]


@pytest.mark.parametrize("dtype", [BF16, FP32], ids=str)
@pytest.mark.parametrize("sizes", BENCH, ids=str)
def test_one_seed_gives_the_same_bits(dtype, sizes):
    made = make(Draw(dtype, *sizes))
    one, other = run_seeded(made), run_seeded(made)
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    y, _ = residual_blocks(*made[:2], 0.3, backend="fused")  # the stream has gone on
    assert not torch.equal(y, one[0])


def test_dropout_keeps_its_share():
    x, weights, _, _ = make(Draw(torch.float32, 32, 200, 25, 1, 3))
    weights = [w._replace(bias=torch.full_like(w.bias, 50.0)) for w in weights]  # every relu is open
    plain = residual_blocks(x, weights, backend="fused")[0] - x
    weights[0] = weights[0]._replace(g=torch.zeros_like(weights[0].g))
    weights[1] = weights[1]._replace(g=torch.zeros_like(weights[1].g))
    y = residual_blocks(x, weights, 0.1, backend="fused")[0]
    part = (y - torch.relu(x)).detach()  # relu(x) where dropped, x + 50 / 0.9 where kept
    kept = part > 25
    assert plain.isfinite().all()
    assert abs(kept.double().mean().item() - 0.9) < 4 * (0.09 / kept.numel()) ** 0.5
    for axes in ((0, 1), (0, 2), (1, 2)):
        share = kept.double().mean(axes)
        assert (share - 0.9).abs().max() < 6 * (0.09 * share.numel() / kept.numel()) ** 0.5


MASKED = [Draw(dtype, *sizes) for dtype in (BF16, FP32) for sizes in BENCH]
MASKED += [Draw(FP16, 8, 65, 25, 3, 7), Draw(FP16, 4, 80, 200, 2, 3)]


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("draw", MASKED, ids=str)
def test_gradients_are_those_of_the_masks_and_slopes_that_forward_left(draw, dropout):
    from weft.ops.kernels import blocks, blocks_autograd

    x, weights, _, _ = make(draw)
    stacked = blocks_autograd._stacked(tuple(leaf.detach() for w in weights for leaf in w))
    seed = torch.tensor([12345], device="cuda") if dropout else None
    made = blocks.run_forward(x.detach(), *stacked, None, None, seed, dropout, True)
    y, _ = blocks_autograd.residual_stack(x, None, None, seed, dropout, weights)
    assert torch.equal(y, made.y)
    outs = [*made.between, made.y]
    wide, wide_weights, _ = widen(x, weights, None)
    want = wide
    for level in range(draw.levels):
        inner = want
        masks = (outs[2 * level] > 0, made.kept[level] != 0)  # they hold relu's slopes too
        for w, mask in zip(wide_weights[2 * level : 2 * level + 2], masks, strict=True):
            front = torch.nn.functional.pad(inner.mT, ((draw.taps - 1) * 2**level, 0))
            inner = torch.nn.functional.conv1d(front, w.kernel(), w.bias, dilation=2**level).mT
            inner = inner * mask / (1 - dropout)
        want = (want + inner) * (outs[2 * level + 1] > 0)
    tolerance = TOLERANCE[draw.dtype]
    close([y], [want], tolerance, draw)
    slope = torch.randn_like(y) * 0.05  # sums over all rows stay in fp16's range
    got = torch.autograd.grad(y, leaves(x, weights, None), slope)
    wanted = torch.autograd.grad(want, leaves(wide, wide_weights, None), slope.double())
    close(got, wanted, 2 * tolerance, (draw, "gradients"))


def test_a_graph_replays_with_new_masks():
    x, weights, _, _ = make(Draw(torch.bfloat16, 8, 70, 40, 2, 3))
    inputs = leaves(x, weights, None)

    def run(dropout):
        y, _ = residual_blocks(x, weights, dropout, backend="fused")
        return y, torch.autograd.grad(y.float().sum(), inputs)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run(0.5)
            run(0.0)
    torch.cuda.current_stream().wait_stream(side)
    graph, plain = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y, _ = run(0.5)
    with torch.cuda.graph(plain):
        exact = run(0.0)
    drawn = []
    for _ in range(2):
        graph.replay()
        drawn.append(y.clone())
    assert not torch.equal(*drawn)
    x.data.copy_(torch.randn_like(x))
    plain.replay()
    want = run(0.0)
    assert torch.equal(exact[0], want[0])
    assert all(torch.equal(one, other) for one, other in zip(exact[1], want[1], strict=True))


COMPILED = """
import torch
from weft.ops import NormedKernel, residual_blocks

def leaf(*shape):
    return torch.randn(shape, device="cuda").requires_grad_()

x, lengths = leaf(4, 50, 25), torch.tensor([50, 0, 7, 33], device="cuda")
weights = [NormedKernel(leaf(25, 25, 3), leaf(25, 1, 1), leaf(25)) for _ in range(4)]
leaves = [x, *(part for w in weights for part in w)]
assert residual_blocks(x, weights)[0].grad_fn.name().startswith("_Stack")

def run(x, dropout=0.0):
    y, state = residual_blocks(x, weights, dropout, None, lengths)
    return torch.relu(y).sum() + state.sin().sum()

compiled = torch.compile(run, fullgraph=True)
want, got = (torch.autograd.grad(f(x), leaves) for f in (run, compiled))
for one, other in zip(got, want, strict=True):
    assert (one - other).norm() <= 1e-3 * other.norm()
torch.compile(lambda x: run(x, 0.5), fullgraph=True)(x).backward()
assert all(leaf.grad.isfinite().all() for leaf in leaves)
"""


def test_torch_compile_sees_through_it():
    """In a process of its own: the checks that tests hang on every function stop torch.compile."""
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_family_takes_it_and_streams():
    tcn = families["tcn"]
    network = tcn.backbone(25, tcn.Config(layers=3, kernel=3, dropout=0.1), None).cuda().eval()
    twin = tcn.backbone(25, tcn.Config(layers=3, kernel=3, dropout=0.1), None).double().eval()
    twin.load_state_dict(network.state_dict())
    x = Sequences(torch.randn(4, 40, 25), torch.tensor([40, 0, 17, 1]))
    want, want_state = twin(x.with_data(x.data.double()))
    there = x.to("cuda")
    got, state = network(there)
    close([got.data.cpu(), state.past.cpu()], [want.data, want_state.past], 4e-3, "whole")
    head, tail = there.split(13)
    first, middle = network(head)
    second, end = network(tail, middle)
    whole = torch.cat([first.data, second.data], dim=1)
    close([whole, end.past], [got.data.double(), state.past.double()], 4e-3, "cut")
    full, state = Sequences.full(there.data), network.init_state(4)
    outputs = network(full)[0].data
    for t in range(12):
        y, state = network.step(there.data[:, t], state)
        close([y], [outputs[:, t].double()], 4e-3, t)


def test_autocast_is_followed():
    x, weights, past, lengths = make(Draw(torch.float32, 4, 30, 40, 2, 3, past=True))
    with torch.autocast("cuda", torch.bfloat16):
        y, state = residual_blocks(x, weights, 0.1, past, lengths)
    assert y.dtype == state.dtype == torch.bfloat16
    grads = torch.autograd.grad(y.float().sum(), leaves(x, weights, past))
    assert all(grad.dtype == torch.float32 for grad in grads)


def test_what_it_cannot_run_goes_elsewhere_or_is_refused():
    x, weights, past, _ = make(Draw(torch.float32, 2, 9, 5, 1, 3, past=True))
    wide = widen(x, weights, past)
    assert residual_blocks(wide[0], wide[1])[0].dtype == torch.float64
    with pytest.raises(ConfigError, match="it works in bf16, fp16 and fp32, not in float64"):
        residual_blocks(wide[0], wide[1], backend="fused")
    y, kept = residual_blocks(x[:, :0], weights, 0.0, past)
    assert y.shape == (2, 0, 5)
    assert torch.equal(kept, past)
