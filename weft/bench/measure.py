"""Measure one case: first the gate, then all sides alternately."""

from __future__ import annotations

import gc
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch

from weft.bench.case import TOLERANCE, Case, Side, tf32, wide
from weft.core.errors import WeftError
from weft.core.shapes import Tensor

PASSES = ("forward", "forward+backward")
_SAMPLE = 0.01  # seconds that one sample takes at least
_MOST_COPIES = 1024


@dataclass
class Timing:
    """What one side took for a call: median and quartiles in ms, extra peak memory in MiB on a GPU."""

    median_ms: float | None = None
    quartiles_ms: tuple[float, float] | None = None
    times_slower: float | None = None  # the median over rounds of its time by weft's
    samples: int = 0
    peak_mib: float | None = None
    failed: str | None = None


@dataclass
class Row:
    """One pass of one case: the gate's error, and every side's timing when the gate is green."""

    case: str
    dtype: str
    run: str
    error: float | None  # None until the gate has spoken
    tolerance: float
    steps: int
    headline: bool
    sides: dict[str, Timing] = field(default_factory=dict)
    failed: str | None = None  # why there is no error, or no timing behind a green gate

    @property
    def green(self) -> bool:
        return self.failed is None and self.error is not None and self.error <= self.tolerance


def measure(case: Case, device: torch.device, seconds: float) -> list[Row]:
    """Return a row for each pass; behind a red gate, or one that failed, the rows hold no timing."""
    about = (None, TOLERANCE[case.dtype], case.steps, case.headline)
    rows = [Row(case.name, case.dtype, run, *about) for run in PASSES]
    try:
        with tf32(case.dtype == "tf32"):
            _fill_rows(rows, case, device, seconds)
    except Exception as error:  # the cases after this one shall have their numbers
        for row in rows:
            row.failed = None if row.sides else _in_words(error)
        _ask_whether_it_lives(device, case)
    gc.collect()
    return rows


def _fill_rows(rows: list[Row], case: Case, device: torch.device, seconds: float) -> None:
    torch.manual_seed(0)
    made, inputs = case.build(device), case.draw(device)
    error = gate_error(made.timed[0], made.reference, inputs, device)
    for row in rows:
        row.error = error
    for row in rows:
        if row.green:
            row.sides = time_sides(made.timed, inputs, device, row.run == PASSES[1], seconds / 2)


def _in_words(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def _ask_whether_it_lives(device: torch.device, case: Case) -> None:
    """Stop if a kernel's error has ended what this process can do with its GPU."""
    try:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    except RuntimeError as error:
        raise WeftError(
            f"`{case.title}` left this process without its GPU: {_in_words(error)}. "
            "What was measured before is kept; --only chooses other cases."
        ) from error


def gate_error(side: Side, reference: Side, inputs: tuple[Tensor, ...], device: torch.device) -> float:
    """Return the largest relative error ||got - want|| / ||want|| over outputs and every gradient."""
    for one in (side, reference):
        one.module.eval()  # no dropout
    got = _outputs_and_gradients(side, inputs)
    with tf32(False):
        widened = tuple(_widen(x, wide(device)) for x in inputs)
        want = _outputs_and_gradients(reference, widened)
    errors = [_relative_error(one, other) for one, other in zip(got, want, strict=True)]
    return max(errors, key=lambda error: float("inf") if error != error else error)


def _widen(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.detach().to(dtype).requires_grad_() if x.is_floating_point() else x


def _relative_error(got: Tensor, want: Tensor) -> float:
    distance = (got.to(want.dtype) - want).norm()
    return (distance / want.norm().clamp(min=1e-30)).item()


def _outputs_and_gradients(side: Side, inputs: tuple[Tensor, ...]) -> list[Tensor]:
    """Run forward and backward with output gradients that depend on the shapes alone."""
    outputs = side.call(*inputs)
    gradients = torch.autograd.grad(outputs, _leaves(side, inputs), _slopes(outputs))
    return [out.detach() for out in outputs] + list(gradients)


def _leaves(side: Side, inputs: tuple[Tensor, ...]) -> list[Tensor]:
    return [*(x for x in inputs if x.requires_grad), *side.module.parameters()]


def _slopes(outputs: tuple[Tensor, ...]) -> list[Tensor]:
    """Draw the gradients of the outputs, rounded as the narrowest dtype has them."""
    generator = torch.Generator().manual_seed(1)
    drawn = [torch.randn(out.shape, generator=generator).to(torch.bfloat16) for out in outputs]
    return [slope.to(out) for slope, out in zip(drawn, outputs, strict=True)]


def time_sides(
    sides: list[Side], inputs: tuple[Tensor, ...], device: torch.device, backward: bool, seconds: float
) -> dict[str, Timing]:
    """Time all sides alternately, in turned order every other round, until the time is spent."""
    copies = _rotate(inputs, device)
    timings = {side.name: Timing() for side in sides}
    runners: dict[str, Callable[[], object]] = {}
    for side in sides:
        runner = _runner(side, copies, backward)
        try:
            timings[side.name].peak_mib = _warm(runner, device)
            runners[side.name] = runner
        except Exception as error:  # a peer that does not run here has no number, and the reason is shown
            timings[side.name].failed = _in_words(error)
    samples = _alternate(runners, device, seconds)
    for name in samples:
        _fill(timings[name], samples[name], samples.get(sides[0].name))
    return timings


def _rotate(inputs: tuple[Tensor, ...], device: torch.device) -> list[tuple[Tensor, ...]]:
    """Return copies of the inputs that are together twice as large as the GPU's cache (two on a CPU)."""
    size = max(1, sum(x.nbytes for x in inputs))
    cache = torch.cuda.get_device_properties(device).L2_cache_size if device.type == "cuda" else size
    count = min(max(2, -(-2 * cache // size)), _MOST_COPIES)
    return [tuple(x.detach().clone().requires_grad_(x.requires_grad) for x in inputs) for _ in range(count)]


def _runner(side: Side, copies: list[tuple[Tensor, ...]], backward: bool) -> Callable[[], object]:
    """Return a call without arguments that works on the next copy each time."""
    turn: Iterator[tuple[Tensor, ...]] = itertools.cycle(copies)
    side.module.train()
    slopes: list[Tensor] = []

    def forward() -> object:
        with torch.no_grad():
            return side.call(*next(turn))

    def both() -> object:
        inputs = next(turn)
        outputs = side.call(*inputs)
        if not slopes:
            slopes.extend(_slopes(outputs))
        return torch.autograd.grad(outputs, _leaves(side, inputs), slopes, allow_unused=True)

    return both if backward else forward


def _warm(run: Callable[[], object], device: torch.device) -> float | None:
    """Call three times; on a GPU return the MiB that the last call needed beyond what was there."""
    run()
    run()
    if device.type != "cuda":
        run()
        return None
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    run()
    torch.cuda.synchronize(device)
    return round((torch.cuda.max_memory_allocated(device) - before) / 2**20, 1)


def _alternate(
    runners: dict[str, Callable[[], object]], device: torch.device, seconds: float
) -> dict[str, list[float]]:
    """Return the samples of each side, in ms a call."""
    sample = _sample_gpu if device.type == "cuda" else _sample_cpu
    calls = {name: max(1, round(1e3 * _SAMPLE / sample(run, 3))) for name, run in runners.items()}
    samples: dict[str, list[float]] = {name: [] for name in runners}
    end, names = time.perf_counter() + seconds, list(runners)
    while names and (time.perf_counter() < end or len(samples[names[0]]) < 3):
        for name in names:
            samples[name].append(sample(runners[name], calls[name]))
        names.reverse()
    return samples


def _sample_cpu(run: Callable[[], object], calls: int) -> float:
    begin = time.perf_counter()
    for _ in range(calls):
        run()
    return 1e3 * (time.perf_counter() - begin) / calls


def _sample_gpu(run: Callable[[], object], calls: int) -> float:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(calls):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / calls


def _fill(timing: Timing, samples: list[float], base: list[float] | None) -> None:
    low, middle, high = statistics.quantiles(samples, n=4)
    timing.median_ms, timing.quartiles_ms, timing.samples = middle, (low, high), len(samples)
    if base is not None:
        timing.times_slower = statistics.median(mine / weft for mine, weft in zip(samples, base, strict=True))
