"""Times cuts of a recurrence on a GPU beside their estimates: `python scripts/plans.py [TEXT …]`.

Each layer of `weft bench speed rnn`, in bf16, is cut in the ways that `weft/ops/kernels/plan.py` takes for
the fastest. A line tells the kernel's own time a step, the estimate, and how far the result is from that of
the cut which is planned. Every TEXT must be in a layer's title, such as `lstm B64 T256 1024→1024 backward`.
"""

from __future__ import annotations

import itertools
import statistics
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple
from unittest.mock import patch

import torch

from weft.bench.recurrent import SHAPES, Shape
from weft.ops.kernels import cuda, plan, recurrence
from weft.ops.kernels.plan import CELLS, Problem, Tiles
from weft.ops.kernels.products import layer_size

CUTS, WARM_UPS, RUNS = 12, 2, 5
DEVICE = "cuda"


class Layer(NamedTuple):
    """A layer in one direction, and which of its passes is timed."""

    cell: str
    shape: Shape
    backward: bool

    @property
    def title(self) -> str:
        return f"{self.cell} {self.shape} {'backward' if self.backward else 'forward'}"

    @property
    def problem(self) -> Problem:
        sizes = (self.shape.units, self.shape.batch, 1)
        return recurrence._problem(self.cell, self.backward, torch.bfloat16, *sizes, 0)


def layers(words: list[str]) -> Iterator[Layer]:
    """Yield the layers whose title holds every word."""
    for shape, cell, backward in itertools.product(SHAPES["cuda"], CELLS, (False, True)):
        layer = Layer(cell, shape._replace(layers=1), backward)
        if cell != "relu" and all(word in layer.title for word in words):
            yield layer


def cuts(problem: Problem) -> list[Tiles]:
    """Return what is planned and the cuts that come next; of those that differ in windows alone the first."""
    ranked = sorted(plan.candidates(problem), key=partial(plan.microseconds, problem))
    first = {tiles[:6]: tiles for tiles in reversed(ranked)}
    return [tiles for tiles in ranked if first[tiles[:6]] == tiles][:CUTS]


def runner(layer: Layer) -> Callable[[Tiles], torch.Tensor]:
    """Return what runs the layer's pass with a cut, and gives the outputs or the gradient of the inputs."""
    cell, s = layer.cell, layer.shape
    rows, bound = CELLS[cell].gates * s.units, s.units**-0.5

    def draw(*sizes: int) -> torch.Tensor:
        return torch.randn(sizes, device=DEVICE, dtype=torch.bfloat16)

    x, weights = draw(s.batch, s.steps, s.inputs), [draw(rows, n) * bound for n in (s.inputs, s.units)]
    inputs = (x, weights, None, None, None)
    saved = recurrence.run_forward(*inputs, cell, "forward", True)[0]
    dy = draw(s.steps, s.batch, layer_size(x, weights, cell, "forward").row)

    def run(tiles: Tiles) -> torch.Tensor:
        if layer.backward:
            return recurrence.run_backward(dy, None, None, *inputs, saved, cell, "forward", tiles).x
        return recurrence.run_forward(*inputs, cell, "forward", True, tiles)[0].y

    return run


def kernel_microseconds(run: Callable[[], torch.Tensor]) -> float:
    """Return the median time of the kernel alone."""
    launch, events = recurrence._launch, []

    def timed(*arguments) -> None:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        launch(*arguments)
        end.record()
        events.append((begin, end))

    with patch.object(recurrence, "_launch", timed):
        for _ in range(WARM_UPS + RUNS):
            run()
    torch.cuda.synchronize()
    return 1e3 * statistics.median(begin.elapsed_time(end) for begin, end in events[WARM_UPS:])


def compare(layer: Layer) -> Iterator[str]:
    """Yield a line for each cut, the planned one first."""
    problem, run = layer.problem, runner(layer)
    made = cuts(problem)
    want = run(made[0]).float()
    for tiles in made:
        got = run(tiles).float()
        error = ((got - want).norm() / want.norm()).item()
        took = kernel_microseconds(partial(run, tiles)) / layer.shape.steps
        yield f"{took:8.2f} {plan.microseconds(problem, tiles):8.2f} {error:9.1e}  {tiles}"


def compile_all(chosen: list[Layer]) -> None:
    """Make the machine code of every cut, side by side, into the cache on disk."""
    source, capability = recurrence.SOURCE.read_text(encoding="utf-8"), torch.cuda.get_device_capability()
    forward = (layer._replace(backward=False).problem for layer in chosen)  # backward needs what it leaves
    wanted = {plan.constants(p, t) for p in forward if (t := plan.choose(p))}
    wanted |= {plan.constants(layer.problem, tiles) for layer in chosen for tiles in cuts(layer.problem)}
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda constants: cuda.cubin(source, constants, capability), wanted))


def main() -> None:
    """Print a table for each layer."""
    chosen = list(layers(sys.argv[1:]))
    compile_all(chosen)
    for layer in chosen:
        print(f"{layer.title}\n µs/step estimate     error  cut", flush=True)
        for line in compare(layer):
            print(line, flush=True)


if __name__ == "__main__":
    main()
