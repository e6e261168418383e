"""The fused recurrence against the equation: outputs, final states and every gradient, on a GPU."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from recurrent_draws import REFERENCES, TOLERANCE, Draw, check, check_nan, everything, fused, make

from weft import ops
from weft.ops.kernels import cuda, plan, recurrence
from weft.ops.kernels.products import WAYS

pytestmark = pytest.mark.gpu


def compile_all(draws):
    """Compile what the draws need, side by side, into the cache on disk."""
    source = recurrence.SOURCE.read_text(encoding="utf-8")
    capability = torch.cuda.get_device_capability(0)
    made = set()
    for d in draws:
        for backward in (False, True):
            directions = len(WAYS[d.ways])
            problem = recurrence._problem(d.cell, backward, d.dtype, d.units, d.batch, directions, 0)
            made.add(plan.constants(problem, plan.choose(problem)))
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda constants: cuda.cubin(source, constants, capability), made))


AWKWARD = [
    Draw(cell, dtype, batch, steps, 3, units, ways, ragged=ragged, starts=ragged)
    for cell in REFERENCES
    for dtype, batch, steps, units, ways, ragged in [
        (torch.bfloat16, 1, 1, 5, "forward", False),
        (torch.bfloat16, 3, 2, 16, "backward", True),
        (torch.float16, 3, 63, 33, "both", True),
        (torch.float32, 1, 64, 33, "forward", True),
        (torch.float32, 3, 65, 5, "both", False),
        (torch.float16, 17, 65, 130, "backward", False),
        (torch.bfloat16, 40, 9, 650, "both", True),
        (torch.bfloat16, 70, 5, 1024, "forward", True),
        (torch.float32, 20, 5, 514, "forward", True),
    ]
]


@pytest.fixture(scope="module", autouse=True)
def compiled():
    compile_all(AWKWARD)


@pytest.mark.parametrize("d", AWKWARD, ids=str)
def test_it_is_the_equation_at_awkward_sizes(d):
    check(d, "cuda")


def test_it_is_the_equation_in_200_random_cases():
    chance = random.Random(4)
    draws = [
        Draw(
            chance.choice([*REFERENCES]),
            chance.choice([*TOLERANCE]),
            chance.choice([1, 2, 3, 7, 8, 9, 16, 31, 64, 100]),
            chance.choice([1, 2, 3, 10, 31, 63, 64, 65]),
            chance.choice([1, 2, 5, 8, 33]),
            chance.choice([1, 2, 5, 8, 16, 33, 64, 100, 129, 200, 257, 384]),
            chance.choice([*WAYS]),
            chance.random() < 0.8,
            chance.random() < 0.6,
            chance.random() < 0.5,
        )
        for _ in range(200)
    ]
    compile_all(draws)
    for d in draws:
        check(d, "cuda")


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("cell", REFERENCES)
def test_nan_of_every_bit_is_not_waited_for(cell, dtype):
    check_nan(Draw(cell, dtype, 4, 5, 3, 520, "forward", starts=True), "cuda")


def test_the_largest_layers_fit():
    for cell in ("lstm", "gru_before"):
        d = Draw(cell, torch.bfloat16, 5, 3, 8, 2048, "forward", ragged=True, starts=True)
        compile_all([d])
        check(d, "cuda")


@pytest.mark.parametrize("cell", ["lstm", "gru_before"])
def test_a_graph_of_it_can_be_replayed(cell):
    d = Draw(cell, torch.bfloat16, 24, 20, 32, 256, "both")
    x, weights, states, lengths = make(d, "cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        everything(fused, d, x, weights, states, lengths, slopes := [])
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = everything(fused, d, x, weights, states, lengths, slopes)
    for _ in range(3):
        x.data.copy_(torch.randn_like(x))
        graph.replay()
        want = everything(fused, d, x, weights, states, lengths, slopes)
        assert all(torch.equal(one, other) for one, other in zip(kept, want, strict=True))


def test_launches_on_two_streams_finish():
    d = Draw("lstm", torch.bfloat16, 64, 50, 64, 1024, "forward")
    made = make(d, "cuda")
    want = fused(d, *made)[0]
    streams = [torch.cuda.Stream() for _ in range(2)]
    torch.cuda.synchronize()
    told = []
    for _ in range(5):
        for stream in streams:
            with torch.cuda.stream(stream):
                told.append(fused(d, *made)[0])
    torch.cuda.synchronize()
    assert all(torch.equal(one, want) for one in told)


def test_it_runs_beside_another_kernel():
    d = Draw("gru_after", torch.bfloat16, 64, 50, 64, 1024, "forward")
    made, a = make(d, "cuda"), torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    want, other = fused(d, *made)[0], torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(other):
        for _ in range(5):
            a @ a
    got = fused(d, *made)[0]
    torch.cuda.synchronize()
    assert torch.equal(got, want)


@pytest.mark.usefixtures("traceable")
def test_torch_compile_sees_through_it():
    layer = ops.recurrent_layer
    x, weights, _, _ = make(Draw("lstm", torch.bfloat16, 8, 10, 16, 64, "forward"), "cuda")

    def run(x):
        return torch.relu(layer("lstm", x, weights)[0]).sum()

    compiled = torch.compile(run, fullgraph=True)
    want = torch.autograd.grad(run(x), [x, *weights[0]])
    got = torch.autograd.grad(compiled(x), [x, *weights[0]])
    for one, other in zip(got, want, strict=True):
        assert (one - other).norm() <= 1e-2 * other.norm()


def test_autocast_is_followed():
    x, weights, _, _ = make(Draw("gru_after", torch.float32, 8, 10, 16, 64, "forward"), "cuda")
    with torch.autocast("cuda", torch.bfloat16):
        y, _ = ops.recurrent_layer("gru_after", x, weights)
    assert y.dtype == torch.bfloat16
    (dx,) = torch.autograd.grad(y.float().sum(), x)
    assert dx.dtype == torch.float32


def test_layers_of_torch_agree():
    import weft.nn

    for name in ("RNN", "LSTM", "GRU"):
        theirs = getattr(torch.nn, name)(40, 48, num_layers=2, bidirectional=True).cuda()
        ours = getattr(weft.nn, name)(40, 48, num_layers=2, bidirectional=True).cuda()
        ours.load_state_dict(theirs.state_dict())
        x = torch.randn(30, 4, 40, device="cuda", requires_grad=True)
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor([30, 20, 7, 1]))
        for inputs in (x, packed):
            want, got = theirs(inputs)[0], ours(inputs)[0]
            want, got = (y if inputs is x else y.data for y in (want, got))
            assert (got - want).norm() <= 2e-3 * want.norm()
            left, right = (torch.autograd.grad(y.square().sum(), x)[0] for y in (got, want))
            assert (left - right).norm() <= 5e-3 * right.norm()
