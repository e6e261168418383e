"""Bytes that training and use take: what is kept, counted; what a batch adds, weighed on small copies.

It is weighed on the CPU. There cross-entropy keeps logits up to `weft.ops.loss.LARGE` bytes; on a GPU only
up to `LARGE_ON_GPU`, beyond that a chunk of them (`weft.ops.kernels.loss.CHUNK_BYTES`) for a moment. What an
allocator keeps of freed bytes comes on top: the heap of a process on Linux grew by up to two thirds more.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from weft.core.shapes import Tensor
from weft.core.state import leaves
from weft.models import ModelConfig
from weft.nn.families import families
from weft.training import TrainConfig

FLOAT = 4  # bytes; weights, gradients and moments are float32 whatever the forward pass is in
LARGEST_MEASURED = 96  # widths up to here are measured as they are
_MOMENTS = {"adam": 2, "adamw": 2, "rmsprop": 1, "sgd": 0}

Build = Callable[[ModelConfig], nn.Module]
Run = Callable[[nn.Module], Tensor]  # a batch through a model to its loss


class Taken(NamedTuple):
    """Bytes a batch takes at the most: forward and backward, and without gradients."""

    training: int
    use: int


def optimizer_numbers(config: TrainConfig) -> int:
    """Return how many numbers the optimizer (and a moving average) keeps for each weight."""
    momentum = config.optimizer in ("sgd", "rmsprop") and config.momentum > 0
    return _MOMENTS[config.optimizer] + momentum + (config.ema > 0)


def width_unit(config: ModelConfig) -> int:
    """Return what the width must be a multiple of."""
    return math.lcm(2, *(families[side.family].multiple(side.options) for side in config.sides.values()))


def small_width(config: ModelConfig, least: int) -> int:
    """Return the smallest allowed width from `least` on."""
    unit = width_unit(config)
    return unit * -(-least // unit)


def measure_batch(build: Build, config: ModelConfig, run: Run) -> Taken:
    """Measure what running a batch takes.

    What lives after an operation grows as a polynomial of the width, of degree 2 at most (a weight is
    width x width); so three small widths tell of any other, operation by operation, and a model that
    memory cannot hold is explained too.
    """
    width = config.common.width
    if width <= LARGEST_MEASURED:
        return Taken(*map(max, _weigh(build(config), run)))
    least = small_width(config, LARGEST_MEASURED // 3)
    widths = (least, 2 * least, 3 * least)
    weighed = [_weigh(build(config.with_width(w)), run) for w in widths]
    return Taken(*(_most(widths, courses, width) for courses in zip(*weighed, strict=True)))


def state_bytes(model: nn.Module, rows: int, steps: int) -> int:
    """Return the bytes of the state that a causal model carries from step to step; 0 without one."""
    backbone: Any = next((m for name, m in model.named_modules() if name.endswith("backbone")), None)
    if backbone is None:
        return 0
    state: Any = backbone.init_state(rows, steps)
    return sum(leaf.numel() * leaf.element_size() for leaf in leaves(state))


def _most(widths: tuple[int, int, int], courses: Sequence[list[int]], width: int) -> int:
    """Return the most that lives at once at `width`, no less than at the widest measured.

    Where a width takes other operations than the next (attention in chunks), the most of each must do.
    """
    if len(set(map(len, courses))) > 1:
        courses = [[max(course)] for course in courses]
    told = max(_quadratic(widths, moment, width) for moment in zip(*courses, strict=True))
    return max(round(told), *courses[-1])


def _weigh(model: nn.Module, run: Run) -> tuple[list[int], list[int]]:
    """Return the bytes that live after each operation, with a backward pass and without gradients."""
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)  # counted as gradients, not weighed
    with Scales(model) as training:
        run(model.train()).backward()
    with torch.no_grad(), Scales(model) as use:
        run(model.eval())
    return training.course, use.course


class Scales(TorchDispatchMode):
    """Weigh every storage from the operation that makes it until it dies, but those a model holds.

    course  the bytes that live after each operation
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        own = [x for p in model.parameters() for x in (p, p.grad) if x is not None]
        self._met = weakref.WeakSet(x.untyped_storage() for x in own)
        self._living = 0
        self.course: list[int] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        tree_map_only(Tensor, self._meet, result)
        self.course.append(self._living)
        return result

    def _meet(self, x: Tensor) -> None:
        storage = x.untyped_storage()
        if storage not in self._met:
            self._met.add(storage)
            self._living += storage.nbytes()
            weakref.finalize(storage, self._lose, storage.nbytes())

    def _lose(self, size: int) -> None:
        self._living -= size


def _quadratic(xs: tuple[int, int, int], ys: tuple[int, ...], x: int) -> float:
    """Return the value at x of the polynomial of degree 2 through three points."""
    total = 0.0
    for i, (x_i, y_i) in enumerate(zip(xs, ys, strict=True)):
        others = [x_j for j, x_j in enumerate(xs) if j != i]
        total += y_i * math.prod((x - x_j) / (x_i - x_j) for x_j in others)
    return total
