"""The recurrence's CUDA source, run on the CPU, against the equation: outputs, states, every gradient."""

import random

import pytest
import torch
from cuda_on_cpu import play_gpu
from recurrent_draws import (
    EXACT,
    REFERENCES,
    TOLERANCE,
    Draw,
    check,
    check_nan,
    everything,
    fused,
    make,
    reference,
)
from torch._subclasses import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from weft.ops.kernels import autograd, plan, recurrence
from weft.ops.kernels.plan import Tiles, padded
from weft.ops.kernels.products import WAYS

BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32


def cut_as(monkeypatch, uc: int, nt: int, chunks: int, mw: int, kw: int, kreg: int, window: int) -> None:
    """Let every layer be cut into blocks of `uc` units (0: one block of all) and so on."""

    def choose(problem):
        units = uc or padded(problem.units)
        return Tiles(units, -(-padded(problem.units) // units), nt, chunks, mw, kw, kreg, window)

    monkeypatch.setattr(plan, "choose", choose)


ALONE = (0, 1, 1, 2, 2, 1, 1)
CASES = [
    # layer, then units a block, tiles of rows, chunks, warps over rows and inner, k-blocks held, window
    (Draw("tanh", BF16, 1, 1, 3, 5, "forward", bias=False), ALONE),
    (Draw("relu", FP16, 3, 2, 3, 16, "backward", ragged=True, starts=True), (8, 1, 1, 1, 4, 1, 1)),
    (Draw("lstm", FP32, 3, 63, 3, 33, "forward", ragged=True, starts=True), (24, 1, 1, 2, 2, 0, 1)),
    (Draw("gru_after", BF16, 3, 64, 3, 16, "backward", ragged=True), ALONE),
    (Draw("gru_before", FP16, 1, 65, 3, 5, "forward", starts=True), ALONE),
    (Draw("gru_before", FP32, 3, 2, 1, 33, "both", ragged=True, starts=True), (16, 1, 1, 1, 4, 1, 1)),
    (Draw("lstm", FP16, 17, 3, 1, 33, "both", ragged=True, starts=True), (16, 1, 2, 1, 2, 1, 2)),
    (Draw("lstm", BF16, 9, 2, 3, 33, "both", ragged=True, starts=True), (0, 2, 1, 4, 1, 2, 2)),
    (Draw("gru_after", FP32, 9, 5, 1, 33, "backward", starts=True), (8, 1, 2, 1, 2, 2, 2)),
    (Draw("tanh", FP32, 3, 64, 1, 33, "both", bias=False, ragged=True), (24, 1, 1, 1, 2, 0, 2)),
    (Draw("gru_after", FP16, 40, 2, 3, 16, "both", ragged=True), (8, 2, 2, 1, 2, 1, 1)),
]


@pytest.mark.parametrize(("layer", "cut"), CASES, ids=str)
def test_it_is_the_equation(monkeypatch, layer, cut):
    play_gpu(monkeypatch)
    cut_as(monkeypatch, *cut)
    check(layer, "cpu", EXACT)


def test_groups_take_new_rows_when_the_gpu_is_small(monkeypatch):
    layer = Draw("lstm", BF16, 33, 2, 3, 16, "forward", ragged=True, starts=True)
    play_gpu(monkeypatch, multiprocessors=4)  # two blocks a group: two groups, three times
    cut_as(monkeypatch, 8, 1, 1, 1, 2, 1, 1)
    check(layer, "cpu", EXACT)


@pytest.mark.parametrize("cell", REFERENCES)
def test_nan_of_every_bit_is_not_waited_for(monkeypatch, cell):
    """Half precision alone: on a CPU, unlike on a GPU, fp32 arithmetic hands on the bits of a NaN."""
    play_gpu(monkeypatch)
    cut_as(monkeypatch, 8, 1, 1, 1, 2, 1, 1)
    check_nan(Draw(cell, FP16, 4, 3, 2, 16, "forward", starts=True), "cpu")


LATE = [
    (Draw("lstm", BF16, 17, 3, 1, 16, "both", ragged=True, starts=True), (8, 1, 1, 2, 2, 1, 1)),
    (Draw("gru_after", FP32, 17, 2, 1, 16, "forward", starts=True), (8, 1, 2, 1, 2, 1, 1)),
    (Draw("gru_before", FP16, 17, 3, 1, 16, "backward", starts=True), (8, 1, 1, 1, 2, 1, 1)),
    (Draw("tanh", FP16, 17, 3, 1, 33, "forward", starts=True), ALONE),
    (Draw("gru_before", BF16, 9, 3, 1, 33, "forward", starts=True), ALONE),
]


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize(("layer", "cut"), LATE, ids=str)
def test_a_warp_that_lags_finds_what_it_must(monkeypatch, layer, cut, late):
    play_gpu(monkeypatch, multiprocessors=4, late=late)  # groups take new rows, too
    cut_as(monkeypatch, *cut)
    check(layer, "cpu", EXACT)


@pytest.mark.parametrize("cell", REFERENCES)
def test_it_is_the_equation_as_it_is_planned(monkeypatch, cell):
    play_gpu(monkeypatch)
    check(Draw(cell, BF16, 2, 3, 3, 40, "forward", ragged=True, starts=True), "cpu", EXACT)


@pytest.mark.parametrize("absent", ["b_ih", "b_hh"])
def test_one_bias_may_be_absent(monkeypatch, absent):
    play_gpu(monkeypatch)
    cut_as(monkeypatch, *ALONE)
    layer = Draw("gru_after", FP32, 3, 4, 2, 16, "both")
    x, weights, states, lengths = make(layer, "cpu")
    weights = [w._replace(**{absent: None}) for w in weights]
    slopes: list[torch.Tensor] = []
    got = everything(fused, layer, x, weights, states, lengths, slopes)
    want = everything(reference, layer, x, weights, states, lengths, slopes)
    for one, other in zip(got, want, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_without_gradients_nothing_is_kept(monkeypatch):
    play_gpu(monkeypatch)
    cut_as(monkeypatch, *ALONE)
    layer = Draw("gru_after", FP32, 3, 4, 2, 16, "both", ragged=True)
    made = make(layer, "cpu")
    want = fused(layer, *made)[0]
    with torch.no_grad():
        assert torch.equal(fused(layer, *made)[0], want)


def test_blocks_that_wait_for_ever_are_noticed(monkeypatch, tmp_path):
    text, said = recurrence.SOURCE.read_text(encoding="utf-8"), "tell(side.y + place_t, pack(out));"
    assert text.count(said) == 1
    broken = tmp_path / "recurrence.cu"
    broken.write_text(text.replace(said, ""), encoding="utf-8")
    play_gpu(monkeypatch, source=broken)
    cut_as(monkeypatch, 8, 1, 1, 1, 2, 1, 1)
    layer = Draw("tanh", BF16, 1, 3, 1, 16, "forward")
    with pytest.raises(RuntimeError, match="waits for what never comes"):
        fused(layer, *make(layer, "cpu"))


@pytest.mark.parametrize("cell", REFERENCES)
def test_torch_compile_is_told_the_shapes_that_come(monkeypatch, cell):
    play_gpu(monkeypatch)
    cut_as(monkeypatch, *ALONE)
    layer = Draw(cell, FP16, 3, 2, 3, 5, "both", ragged=True, starts=True)
    x, weights, states, lengths = make(layer, "cpu")
    flat = [leaf for w in weights for leaf in w if leaf is not None]
    starts = [torch.stack(leaves) for leaves in zip(*states, strict=True)]
    given = (x, flat, starts[0], starts[1] if cell == "lstm" else None, lengths)
    checks = ("test_schema", "test_faketensor")
    with torch.no_grad():
        for save in (False, True):
            torch.library.opcheck(autograd._forward, (*given, cell, "both", save), test_utils=checks)
        y, *saved, _, _ = autograd._forward(*given, cell, "both", True)
        told = (torch.ones_like(y), None, None, *given, y, *saved, cell, "both")
        for need_x in (False, True):
            torch.library.opcheck(autograd._backward, (*told, need_x), test_utils=checks)


class Operations(TorchDispatchMode):
    """Keeps the names of weft's operations that torch meets."""

    def __init__(self):
        super().__init__()
        self.met: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.met += [func.name()] * func.name().startswith("weft::")
        return func(*args, **(kwargs or {}))


def test_a_pass_is_an_operation_only_for_those_who_must_meet_one(monkeypatch):
    play_gpu(monkeypatch)
    cut_as(monkeypatch, *ALONE)
    layer = Draw("lstm", FP16, 3, 2, 3, 5, "forward")
    made = make(layer, "cpu")
    with Operations() as torch_sees:
        y = fused(layer, *made)[0]
        torch.autograd.grad(y.sum(), made[0], retain_graph=True)
    assert torch_sees.met == []
    with Operations() as torch_sees:
        (dx,) = torch.autograd.grad(y.sum(), made[0], create_graph=True)
    assert torch_sees.met == ["weft::recurrence_backward"]
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        dx.sum().backward()
    with FakeTensorMode(allow_non_fake_inputs=True) as fake:
        assert fused(layer, fake.from_tensor(made[0].detach()), *made[1:])[0].shape == y.shape


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_equation_in_random_cases(monkeypatch, seed):
    """Ten layers, each cut in a way drawn from all that fit."""
    chance = random.Random(seed)
    play_gpu(monkeypatch)

    def choose(problem):
        made = [t for t in plan.candidates(problem) if t.blocks <= 6 and t.threads <= 256]
        several = [t for t in made if t.blocks > 1]
        return chance.choice(several if several and chance.random() < 0.8 else made)

    drawn: dict[plan.Problem, Tiles] = {}
    monkeypatch.setattr(plan, "choose", lambda problem: drawn.setdefault(problem, choose(problem)))
    for _ in range(10):
        layer = Draw(
            chance.choice([*REFERENCES]),
            chance.choice([*TOLERANCE]),
            chance.choice([1, 3, 9, 17]),
            chance.choice([1, 2, 5]),
            chance.choice([1, 3]),
            chance.choice([5, 16, 33, 40]),
            chance.choice([*WAYS]),
            chance.random() < 0.8,
            chance.random() < 0.6,
            chance.random() < 0.5,
        )
        check(layer, "cpu", EXACT)
